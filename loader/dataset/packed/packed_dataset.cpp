// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/packed_dataset.h"

#include <utility>

#include "dataset/joined_dataset.h"
#include "dataset/packed/dataset_file.h"
#include "dataset/packed/dataset_lock.h"
#include "dataset/packed/shard_index.h"
#include "dataset/stored_hints.h"

namespace millrace {
namespace {

class PackedDataset final : public Dataset, public std::enable_shared_from_this<PackedDataset> {
 public:
  PackedDataset(std::string name, std::shared_ptr<const DatasetFile> file,
                const OpenOptions& options)
      : name_(std::move(name)),
        file_(std::move(file)),
        options_(options),
        warnings_(file_->warnings()) {
    if (options_.hints && options_.verify_checksums)
      hints_ = StoredHints::open(
          name_,
          {.records = file_->description().records, .fingerprint = facts().fingerprint.value_or(0)},
          options_.map, warnings_);
  }

  std::uint64_t size() const override { return file_->description().records; }
  std::string name() const override { return name_; }
  std::vector<std::string> classes() const override { return file_->description().classes; }
  std::vector<FieldSpec> field_specs() const override { return file_->description().field_specs; }
  std::unique_ptr<DatasetReader> make_reader() const override;
  void prefetch(std::span<const std::uint64_t> indices) const override;
  std::string key(std::uint64_t index) const override;
  DatasetFacts facts() const override;
  std::optional<StoredRecord> stored_record(std::uint64_t index) const override;
  bool has_stored_hints() const override { return hints_ != nullptr; }
  void stored_hint(std::uint64_t index, std::vector<std::byte>& hint) const override {
    hint.clear();
    if (hints_ != nullptr) hints_->read(index, hint);
  }

 private:
  class Reader;

  std::string name_;
  std::shared_ptr<const DatasetFile> file_;
  OpenOptions options_;
  std::vector<std::string> warnings_;
  std::unique_ptr<const StoredHints> hints_;
};

class PackedDataset::Reader final : public DatasetReader {
 public:
  explicit Reader(std::shared_ptr<const PackedDataset> dataset)
      : dataset_(std::move(dataset)), cursor_(*dataset_->file_) {}

  Record read(std::uint64_t index) override {
    check_index(*dataset_, index);
    unreadable_ = Status::ok();
    std::string reason, cannot_be_read = " cannot be read";
    try {
      value_ = cursor_.find(index);
      Status status = parse_record(value_, dataset_->file_->description().fields, fields_);
      if (status.is_ok() && dataset_->options_.verify_checksums) status = check_checksum(value_);
      if (status.is_ok())
        return Record(index, fields_,
                      dataset_->options_.verify_checksums ? stored_checksum(value_) : std::nullopt);
      if (Status kept = intact(); kept.is_ok())
        reason = status.reason();
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
    return unreadable_.is_ok() ? cursor_.check_intact(value_) : unreadable_;
  }
  std::size_t held_bytes() const override { return cursor_.held_bytes(); }

 private:
  std::shared_ptr<const PackedDataset> dataset_;
  DatasetCursor cursor_;
  std::span<const std::byte> value_;
  std::vector<RecordField> fields_;
  Status unreadable_ = Status::ok();
};

std::unique_ptr<DatasetReader> PackedDataset::make_reader() const {
  return std::make_unique<Reader>(shared_from_this());
}

void PackedDataset::prefetch(std::span<const std::uint64_t> indices) const {
  std::vector<FileRange> ranges;
  ranges.reserve(indices.size());
  DatasetCursor cursor(*file_);
  for (const std::uint64_t index : indices) {
    if (index >= size()) continue;
    try {
      ranges.push_back(cursor.locate(index));
    } catch (const std::runtime_error&) {
      // Ignored here: reading the record reports this error.
    }
  }
  file_->read_ahead(std::move(ranges));
}

std::string PackedDataset::key(std::uint64_t index) const {
  try {
    DatasetCursor cursor(*file_);
    std::vector<RecordField> fields;
    const auto value = index < size() ? cursor.find(index) : std::span<const std::byte>();
    if (parse_record(value, file_->description().fields, fields).is_ok()) {
      const Record record(index, fields);
      const std::string_view path = record.has("path") ? record.text("path") : "";
      const bool lost = path.find('\0') != path.npos && !cursor.check_intact(value).is_ok();
      if (record.has("path") && !lost) return one_line(path);
    }
  } catch (const std::runtime_error&) {
    // Falls back to the record's number.
  }
  return Dataset::key(index);
}

DatasetFacts PackedDataset::facts() const {
  const Description& description = file_->description();
  return {
      .format = "packed file",
      .format_reason = "it has the description that millrace writes",
      .files = {name_},
      .fields = description.fields,
      .fingerprint = description.format > 1 ? std::optional(description.fingerprint) : std::nullopt,
      .created_by = description.created_by,
      .warnings = warnings_};
}

std::optional<StoredRecord> PackedDataset::stored_record(std::uint64_t index) const {
  try {
    if (index >= size()) return {};
    DatasetCursor cursor(*file_);
    const std::span<const std::byte> value = cursor.find(index);
    const std::optional<std::uint64_t> checksum = stored_checksum(value);
    if (!checksum || !cursor.check_intact(value).is_ok()) return {};
    return StoredRecord{.file = name_, .bytes = value.size(), .checksum = *checksum};
  } catch (const std::runtime_error&) {
    return {};
  }
}

/// Returns the number of committed records of a dataset that is being written in shards.
std::uint64_t committed_records(const std::filesystem::path& path, const ShardIndex& index) {
  if (index.begun.empty()) return index.records;
  try {
    return index.records + DatasetFile::open(shard_path(path, index.begun))->description().records;
  } catch (const Error&) {
    return index.records;
  }
}

}  // namespace

Status probe_packed_file(const std::filesystem::path& path) {
  const std::filesystem::path file = lmdb_file_at(path);
  Status found = DatasetFile::probe(file);
  return found.is_ok() || file == path ? found : Status::bad("of its data.mdb: " + found.reason());
}

std::shared_ptr<const Dataset> open_packed_file(const std::filesystem::path& folder_or_file,
                                                const OpenOptions& options) {
  const std::filesystem::path path = lmdb_file_at(folder_or_file);
  std::shared_ptr<const DatasetFile> file = DatasetFile::open(path, options.map);
  if (!file->description().complete) throw_incomplete(path, file->description().records);
  return std::make_shared<PackedDataset>(path.string(), std::move(file), options);
}

Status probe_shard_list(const std::filesystem::path& path) {
  return is_shard_index(path) ? Status::ok() : Status::bad("it does not begin with \"{\"");
}

std::shared_ptr<const Dataset> open_shard_list(const std::filesystem::path& path,
                                               const OpenOptions& options) {
  ShardIndex index = read_shard_index(path);
  if (!index.complete) throw_incomplete(path, committed_records(path, index));
  std::vector<std::shared_ptr<const Dataset>> shards;
  std::vector<std::string> fields;
  for (const ShardEntry& entry : index.shards) {
    std::shared_ptr<const DatasetFile> shard = open_listed_shard(path, entry, options.map);
    const std::vector<std::string>& its_fields = shard->description().fields;
    if (fields.empty()) fields = its_fields;
    if (entry.records > 0 && its_fields != fields)
      throw Error(ErrorCode::corrupt, "the records of " + entry.file + ", a shard of " +
                                          path.string() +
                                          ", have other fields than those before; pack it again");
    shards.push_back(std::make_shared<PackedDataset>(shard_path(path, entry.file).string(),
                                                     std::move(shard), options));
  }
  return join_datasets(std::move(shards), {.name = path.string(),
                                           .classes = std::move(index.classes),
                                           .facts = {.format = "list of shards",
                                                     .format_reason = "it begins with \"{\"",
                                                     .fields = std::move(fields),
                                                     .fingerprint = index.fingerprint,
                                                     .created_by = std::move(index.created_by)}});
}

}  // namespace millrace
