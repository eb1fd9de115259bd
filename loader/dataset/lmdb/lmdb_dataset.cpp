// SPDX-License-Identifier: Apache-2.0
#include "dataset/lmdb/lmdb_dataset.h"

#include <millrace/detail/page_table.h>

#include <algorithm>
#include <utility>

#include "dataset/lmdb/page_table.h"
#include "dataset/stored_dataset.h"

namespace millrace {
namespace {

std::string_view key_from(std::string_view key, std::size_t begin) {
  return key.substr(std::min(begin, key.size()));
}

class LmdbDataset final : public StoredDataset {
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

  void store_tables() const {
    std::vector<const Entries*> databases = {&parts_.records};
    if (parts_.labels && parts_.labels->entries.tree().root != parts_.records.tree().root)
      databases.push_back(&parts_.labels->entries);
    millrace::store_tables(databases);
  }

 private:
  class Reader;

  LmdbParts parts_;
};

class LmdbDataset::Reader final : public RecordReader {
 public:
  explicit Reader(const LmdbDataset& dataset)
      : RecordReader(dataset.shared_from_this(), " cannot be read"),
        parts_(dataset.parts_),
        cursor_(parts_.records),
        parser_(parts_.schema->make_parser()) {
    if (const auto& labels = parts_.labels) label_cursor_.emplace(labels->entries);
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
  Status make(std::uint64_t index, Record& record) override try {
    value_ = label_value_ = {};
    fields_.clear();
    key_ = cursor_.key(index);
    RecordField label{};
    if (label_cursor_) {
      const LabelEntries& labels = *parts_.labels;
      if (key_from(label_cursor_->key(index), labels.own_key_begin) !=
          key_from(key_, labels.image_key_begin))
        return Status::bad("its label in the same place has another key");
      label_value_ = label_cursor_->value(index);
      if (Status read = labels.values.read(label_value_, label_number_, label); !read.is_ok())
        return read;
    }
    value_ = cursor_.value(index);
    Status parsed = parser_->parse(key_, value_, fields_);
    if (label_cursor_) {
      std::erase_if(fields_, [](const RecordField& field) { return field.name == "label"; });
      fields_.push_back(label);
    }
    record = Record(index, fields_);
    return parsed;
  } catch (const LmdbDamage& damage) {
    return damage.record_status();
  }

  const LmdbParts& parts_;
  EntryCursor cursor_;
  std::optional<EntryCursor> label_cursor_;
  std::unique_ptr<EntryParser> parser_;
  std::string key_;
  std::span<const std::byte> value_, label_value_;
  std::int64_t label_number_ = 0;
  std::vector<RecordField> fields_;
};

std::unique_ptr<DatasetReader> LmdbDataset::make_reader() const {
  return std::make_unique<Reader>(*this);
}

void LmdbDataset::prefetch(std::span<const std::uint64_t> indices) const {
  std::vector<FileRange> ranges = locate_all(indices, EntryCursor(parts_.records));
  if (parts_.labels)
    std::ranges::copy(locate_all(indices, EntryCursor(parts_.labels->entries)),
                      std::back_inserter(ranges));
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
