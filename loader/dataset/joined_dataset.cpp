// SPDX-License-Identifier: Apache-2.0
#include "dataset/joined_dataset.h"

#include <millrace/detail/json_text.h>
#include <millrace/error.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>

#include "base/exception_text.h"

namespace millrace {
namespace {

/// Maximal memory that all part readers of one joined reader hold together between two reads.
constexpr std::size_t max_held_bytes = std::size_t{16} << 20;

/// Returns the field specs that all non-empty parts have in common.
std::vector<FieldSpec> common_specs(std::span<const std::shared_ptr<const Dataset>> parts) {
  std::vector<FieldSpec> common;
  bool first = true;
  for (const auto& part : parts) {
    if (part->size() == 0) continue;
    const std::vector<FieldSpec> specs = part->field_specs();
    if (std::exchange(first, false))
      common = specs;
    else
      std::erase_if(common, [&](const FieldSpec& spec) {
        return std::ranges::find(specs, spec) == specs.end();
      });
  }
  return common;
}

/// Location of a record: its part and its index in that part.
struct RecordLocation {
  std::size_t part;
  std::uint64_t index;
};

class JoinedDataset final : public Dataset, public std::enable_shared_from_this<JoinedDataset> {
 public:
  JoinedDataset(std::vector<std::shared_ptr<const Dataset>> parts, JoinedDescription description)
      : parts_(std::move(parts)),
        specs_(common_specs(parts_)),
        description_(std::move(description)) {
    // Files of one folder often have the same warning.
    std::unordered_set<std::string> known;
    for (const auto& part : parts_) {
      begins_.push_back(begins_.back() + part->size());
      DatasetFacts facts = part->facts();
      std::ranges::move(facts.files, std::back_inserter(description_.facts.files));
      for (std::string& warning : facts.warnings)
        if (known.insert(warning).second) description_.facts.warnings.push_back(std::move(warning));
    }
  }

  std::uint64_t size() const override { return begins_.back(); }
  std::string name() const override { return description_.name; }
  std::vector<std::string> classes() const override { return description_.classes; }
  std::unique_ptr<DatasetReader> make_reader() const override;
  void prefetch(std::span<const std::uint64_t> indices) const override;
  std::string key(std::uint64_t index) const override;
  std::vector<FieldSpec> field_specs() const override { return specs_; }
  DatasetFacts facts() const override { return description_.facts; }
  std::optional<StoredRecord> stored_record(std::uint64_t index) const override;
  std::vector<std::shared_ptr<const Dataset>> parts() const override { return parts_; }
  bool has_stored_hints() const override {
    return std::ranges::any_of(parts_, [](const auto& part) { return part->has_stored_hints(); });
  }
  void stored_hint(std::uint64_t index, std::vector<std::byte>& hint) const override;

 private:
  class Reader;

  /// Returns the location of a record (`index` < `size()`).
  RecordLocation locate(std::uint64_t index) const {
    const auto behind = std::ranges::upper_bound(begins_, index);
    return {static_cast<std::size_t>(behind - begins_.begin() - 1), index - *(behind - 1)};
  }

  std::vector<std::shared_ptr<const Dataset>> parts_;
  std::vector<FieldSpec> specs_;
  /// The number of each part's first record, then the number of all records.
  std::vector<std::uint64_t> begins_{0};
  JoinedDescription description_;
};

class JoinedDataset::Reader final : public DatasetReader {
 public:
  explicit Reader(std::shared_ptr<const JoinedDataset> all)
      : all_(std::move(all)), readers_(all_->parts_.size()) {}

  Record read(std::uint64_t index) override {
    check_index(*all_, index);
    const RecordLocation location = all_->locate(index);
    close_readers(location.part);
    std::unique_ptr<DatasetReader>& reader = readers_[location.part].reader;
    try {
      if (!reader) reader = checked_reader(*all_->parts_[location.part]);
      last_ = location.part;
      const Record record = reader->read(location.index);
      return Record(index, record.fields(), record.checksum());
    } catch (const Error& error) {
      throw Error(error.code(),
                  "record " + std::to_string(index) + " of " + all_->name() + ": " + error.what(),
                  error.stage(), index, reason_of(error, location));
    }
  }

  Status intact() const override {
    return last_ ? readers_[*last_].reader->intact() : Status::ok();
  }

  std::size_t held_bytes() const override {
    return last_ ? held_bytes_ - readers_[*last_].bytes + readers_[*last_].reader->held_bytes()
                 : held_bytes_;
  }

 private:
  /// The reader of a part. While it holds memory (`bytes` is not 0), `holder` is its entry in
  /// `holders_`.
  struct PartReader {
    std::unique_ptr<DatasetReader> reader{};
    std::size_t bytes = 0;
    std::list<std::size_t>::iterator holder{};
  };

  /// Closes readers until all of them together hold at most `max_held_bytes`. Keeps the reader of
  /// part `next`, which reads now. The view of the last record becomes invalid.
  void close_readers(std::size_t next) {
    if (last_) count_bytes(*last_);
    for (auto holder = holders_.end();
         held_bytes_ > max_held_bytes && holder != holders_.begin();) {
      --holder;
      if (*holder == next) continue;
      if (last_ == *holder) last_.reset();
      held_bytes_ -= readers_[*holder].bytes;
      readers_[*holder] = {};
      holder = holders_.erase(holder);
    }
  }

  /// Updates the held bytes of a part's reader, and marks it as the one used last.
  void count_bytes(std::size_t number) {
    PartReader& part = readers_[number];
    const std::size_t bytes = part.reader->held_bytes();
    if (part.bytes > 0) {
      holders_.splice(holders_.begin(), holders_, part.holder);
    } else if (bytes > 0) {
      holders_.push_front(number);
      part.holder = holders_.begin();
    }
    if (part.bytes > 0 && bytes == 0) holders_.erase(part.holder);
    held_bytes_ += bytes - part.bytes;
    part.bytes = bytes;
  }

  /// Returns the error's reason. For a bad record, adds the part's name and the record's index in
  /// that part, because a caller that sees only the reason may not know the part.
  std::string reason_of(const Error& error, const RecordLocation& location) const {
    const std::string name = all_->parts_[location.part]->name();
    if (error.code() != ErrorCode::bad_record || error.reason().find(name) != std::string::npos)
      return error.reason();
    return "record " + std::to_string(location.index) + " of " + name + ": " + error.reason();
  }

  std::shared_ptr<const JoinedDataset> all_;
  std::vector<PartReader> readers_;
  /// The part that was read last. It has a reader.
  std::optional<std::size_t> last_;
  /// Parts whose readers hold memory, the most recently used one first, and the sum of their bytes.
  std::list<std::size_t> holders_;
  std::size_t held_bytes_ = 0;
};

std::unique_ptr<DatasetReader> JoinedDataset::make_reader() const {
  return std::make_unique<Reader>(shared_from_this());
}

void JoinedDataset::prefetch(std::span<const std::uint64_t> indices) const {
  std::vector<std::vector<std::uint64_t>> of_parts(parts_.size());
  for (const std::uint64_t index : indices) {
    if (index >= size()) continue;
    const RecordLocation at = locate(index);
    of_parts[at.part].push_back(at.index);
  }
  for (std::size_t part = 0; part < of_parts.size(); ++part)
    if (!of_parts[part].empty()) parts_[part]->prefetch(of_parts[part]);
}

std::string JoinedDataset::key(std::uint64_t index) const {
  if (index >= size()) return Dataset::key(index);
  const RecordLocation at = locate(index);
  std::string key = parts_[at.part]->key(at.index);
  return key == Dataset::key(at.index) ? Dataset::key(index) : key;
}

std::optional<StoredRecord> JoinedDataset::stored_record(std::uint64_t index) const {
  if (index >= size()) return {};
  const RecordLocation at = locate(index);
  return parts_[at.part]->stored_record(at.index);
}

void JoinedDataset::stored_hint(std::uint64_t index, std::vector<std::byte>& hint) const {
  if (index >= size()) return hint.clear();
  const RecordLocation at = locate(index);
  parts_[at.part]->stored_hint(at.index, hint);
}

}  // namespace

std::shared_ptr<const Dataset> join_datasets(std::vector<std::shared_ptr<const Dataset>> parts,
                                             JoinedDescription description) {
  return std::make_shared<JoinedDataset>(std::move(parts), std::move(description));
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return line;
}

std::string record_name(const Dataset& dataset, std::uint64_t index, std::string_view reason) {
  const std::string number = "record " + std::to_string(index);
  const std::string key = key_or_number(dataset, index);
  const std::string name = dataset.name();
  return number + (key == number ? "" : " (" + cut(key) + ")") +
         (reason.find(name) == reason.npos ? " of " + name : "");
}

std::string key_or_number(const Dataset& dataset, std::uint64_t index, std::string* failure) {
  try {
    return dataset.key(index);
  } catch (...) {
    if (failure != nullptr) *failure = text_of_exception();
    return "record " + std::to_string(index);
  }
}

std::unique_ptr<DatasetReader> checked_reader(const Dataset& dataset) {
  std::unique_ptr<DatasetReader> reader = dataset.make_reader();
  if (reader == nullptr)
    throw Error(ErrorCode::io,
                dataset.name() + ": make_reader() returned null; it must return a reader or throw");
  return reader;
}

void check_index(const Dataset& dataset, std::uint64_t index) {
  if (index >= dataset.size())
    throw Error(ErrorCode::invalid_argument,
                "record " + std::to_string(index) + " was asked for, but " + dataset.name() +
                    " has " + std::to_string(dataset.size()) + " records",
                "", index);
}

}  // namespace millrace
