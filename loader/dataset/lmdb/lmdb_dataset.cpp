// SPDX-License-Identifier: Apache-2.0
#include "dataset/lmdb/lmdb_dataset.h"

#include <millrace/detail/page_table.h>

#include <algorithm>
#include <utility>

#include "dataset/joined_dataset.h"
#include "dataset/lmdb/page_table.h"
#include "dataset/stored_hints.h"

namespace millrace {
namespace {

std::string_view key_from(std::string_view key, std::size_t begin) {
  return key.substr(std::min(begin, key.size()));
}

class LmdbDataset final : public Dataset, public std::enable_shared_from_this<LmdbDataset> {
 public:
  LmdbDataset(LmdbParts parts, const OpenOptions& options) : parts_(std::move(parts)) {
    if (options.hints && options.verify_checksums)
      hints_ = StoredHints::open(name(), {.records = size()}, options.map, parts_.facts.warnings);
  }

  std::uint64_t size() const override { return parts_.records.size(); }
  std::string name() const override { return parts_.records.file().name(); }
  std::vector<std::string> classes() const override { return parts_.schema->classes(); }
  DatasetFacts facts() const override { return parts_.facts; }
  std::unique_ptr<DatasetReader> make_reader() const override;
  void prefetch(std::span<const std::uint64_t> indices) const override;
  std::string key(std::uint64_t index) const override;
  bool has_stored_hints() const override { return hints_ != nullptr; }
  void stored_hint(std::uint64_t index, std::vector<std::byte>& hint) const override {
    hint.clear();
    if (hints_ != nullptr) hints_->read(index, hint);
  }

  void store_tables() const {
    std::vector<const Entries*> databases = {&parts_.records};
    if (parts_.labels && parts_.labels->entries.tree().root != parts_.records.tree().root)
      databases.push_back(&parts_.labels->entries);
    millrace::store_tables(databases);
  }

 private:
  class Reader;

  LmdbParts parts_;
  std::unique_ptr<const StoredHints> hints_;
};

class LmdbDataset::Reader final : public DatasetReader {
 public:
  explicit Reader(std::shared_ptr<const LmdbDataset> dataset)
      : dataset_(std::move(dataset)),
        cursor_(dataset_->parts_.records),
        parser_(dataset_->parts_.schema->make_parser()) {
    if (const auto& labels = dataset_->parts_.labels) label_cursor_.emplace(labels->entries);
  }

  Record read(std::uint64_t index) override {
    check_index(*dataset_, index);
    unreadable_ = Status::ok();
    std::string reason, cannot_be_read = " cannot be read";
    try {
      if (const Status made = make(index); made.is_ok())
        return Record(index, fields_);
      else if (const Status kept = intact(); kept.is_ok())
        reason = made.reason();
      else
        reason = kept.reason(), cannot_be_read.clear();
    } catch (const LmdbDamage& damage) {
      reason = std::string("the file's pages that lead to it are damaged: ") + damage.what();
    } catch (const Error& error) {
      reason = error.reason(), cannot_be_read.clear();
      unreadable_ = Status::bad(reason);
    }
    throw Error(ErrorCode::bad_record,
                record_name(*dataset_, index, reason) + cannot_be_read + ": " + reason, "", index,
                reason);
  }

  Status intact() const override {
    if (!unreadable_.is_ok()) return unreadable_;
    if (Status kept = cursor_.check_intact(value_); !kept.is_ok()) return kept;
    return label_cursor_ ? label_cursor_->check_intact(label_value_) : Status::ok();
  }
  std::size_t held_bytes() const override {
    return cursor_.held_bytes() + parser_->held_bytes() +
           (label_cursor_ ? label_cursor_->held_bytes() : 0);
  }

 private:
  Status make(std::uint64_t index) {
    value_ = label_value_ = {};
    fields_.clear();
    key_ = cursor_.key(index);
    RecordField label{};
    if (label_cursor_) {
      const LabelEntries& labels = *dataset_->parts_.labels;
      if (key_from(label_cursor_->key(index), labels.own_key_begin) !=
          key_from(key_, labels.image_key_begin))
        return Status::bad("its label in the same place has another key");
      label_value_ = label_cursor_->value(index);
      if (Status read = labels.values.read(label_value_, label_number_, label); !read.is_ok())
        return read;
    }
    value_ = cursor_.value(index);
    if (Status parsed = parser_->parse(key_, value_, fields_); !parsed.is_ok()) return parsed;
    if (!label_cursor_) return Status::ok();
    std::erase_if(fields_, [](const RecordField& field) { return field.name == "label"; });
    fields_.push_back(label);
    return Status::ok();
  }

  std::shared_ptr<const LmdbDataset> dataset_;
  EntryCursor cursor_;
  std::optional<EntryCursor> label_cursor_;
  std::unique_ptr<EntryParser> parser_;
  std::string key_;
  std::span<const std::byte> value_, label_value_;
  std::int64_t label_number_ = 0;
  std::vector<RecordField> fields_;
  Status unreadable_ = Status::ok();
};

std::unique_ptr<DatasetReader> LmdbDataset::make_reader() const {
  return std::make_unique<Reader>(shared_from_this());
}

void LmdbDataset::prefetch(std::span<const std::uint64_t> indices) const {
  std::vector<FileRange> ranges;
  const auto add_all = [&](const Entries& entries) {
    EntryCursor cursor(entries);
    for (const std::uint64_t index : indices) {
      if (index >= size()) continue;
      try {
        ranges.push_back(cursor.locate(index));
      } catch (const std::runtime_error&) {
        // Ignored here: reading the record reports this error.
      }
    }
  };
  add_all(parts_.records);
  if (parts_.labels) add_all(parts_.labels->entries);
  parts_.records.file().read_ahead(std::move(ranges));
}

std::string LmdbDataset::key(std::uint64_t index) const {
  try {
    if (index < size()) return parts_.key_names.name(EntryCursor(parts_.records).key(index));
  } catch (const std::runtime_error&) {
    // Falls back to the record's number.
  }
  return Dataset::key(index);
}

}  // namespace

void check_joined(const LmdbParts& parts) {
  const LabelEntries& labels = *parts.labels;
  EntryCursor records(parts.records);
  EntryCursor others(labels.entries);
  const std::uint16_t flags = parts.records.tree().flags;
  const auto less = [&](std::string_view a, std::string_view b) {
    return lmdb_key_less(flags, std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
  };
  const auto refuse = [&](std::string_view key, const char* what) {
    throw Error(ErrorCode::corrupt, parts.records.file().name() + " has " + what + " the key " +
                                        parts.key_names.name(key));
  };
  for (std::uint64_t n = 0; n < std::max(parts.records.size(), labels.entries.size()); ++n) {
    const bool has_record = n < parts.records.size();
    const bool has_label = n < labels.entries.size();
    const std::string_view record = has_record ? records.key(n) : "";
    const std::string_view label = has_label ? others.key(n) : "";
    const std::string_view of_record = key_from(record, labels.image_key_begin);
    const std::string_view of_label = key_from(label, labels.own_key_begin);
    if (has_record && (!has_label || less(of_record, of_label))) refuse(record, "no label for");
    if (has_label && (!has_record || less(of_label, of_record)))
      refuse(label, "a label but no image for");
  }
}

bool save_page_table(const Dataset& dataset) {
  if (const auto* lmdb = dynamic_cast<const LmdbDataset*>(&dataset)) {
    lmdb->store_tables();
    return true;
  }
  bool stored = false;
  for (const auto& part : dataset.parts()) stored = save_page_table(*part) || stored;
  return stored;
}

std::shared_ptr<const Dataset> make_lmdb_dataset(LmdbParts parts, const OpenOptions& options) {
  return std::make_shared<LmdbDataset>(std::move(parts), options);
}

}  // namespace millrace
