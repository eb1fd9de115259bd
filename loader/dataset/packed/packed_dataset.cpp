// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/packed_dataset.h"

#include <utility>

#include "dataset/joined_dataset.h"
#include "dataset/packed/dataset_file.h"
#include "dataset/packed/dataset_lock.h"
#include "dataset/packed/shard_index.h"
#include "dataset/stored_dataset.h"

namespace millrace {
namespace {

class PackedDataset final : public StoredDataset {
 public:
  PackedDataset(std::string name, std::shared_ptr<const DatasetFile> file,
                const OpenOptions& options)
      : name_(std::move(name)),
        file_(std::move(file)),
        options_(options),
        warnings_(file_->warnings()) {
    if (options_.hints && options_.verify_checksums)
      hints_ = StoredHints::open(
          name_, {.records = size(), .fingerprint = facts().fingerprint.value_or(0)}, options_.map,
          warnings_);
  }

  std::uint64_t size() const override { return file_->description().records; }
  std::string name() const override { return name_; }
  std::vector<std::string> classes() const override { return file_->description().classes; }
  std::vector<FieldSpec> field_specs() const override { return file_->description().field_specs; }
  std::unique_ptr<DatasetReader> make_reader() const override;
  void prefetch(std::span<const std::uint64_t> indices) const override {
    file_->read_ahead(locate_all(indices, DatasetCursor(*file_)));
  }
  std::string key(std::uint64_t index) const override;
  DatasetFacts facts() const override;
  std::optional<StoredRecord> stored_record(std::uint64_t index) const override;

 private:
  class Reader;

  std::string name_;
  std::shared_ptr<const DatasetFile> file_;
  OpenOptions options_;
  std::vector<std::string> warnings_;
};

class PackedDataset::Reader final : public RecordReader {
 public:
  explicit Reader(const PackedDataset& dataset)
      : RecordReader(dataset.shared_from_this(), " cannot be read"),
        dataset_(dataset),
        cursor_(*dataset.file_) {}

  Status intact() const override {
    return unreadable_.is_ok() ? cursor_.check_intact(value_) : unreadable_;
  }
  std::size_t held_bytes() const override { return cursor_.held_bytes(); }

 private:
  Status make(std::uint64_t index, Record& record) override try {
    const bool verifies = dataset_.options_.verify_checksums;
    value_ = {};
    value_ = cursor_.find(index);
    Status status = parse_record(value_, dataset_.file_->description().fields, fields_);
    if (status.is_ok() && verifies) status = check_checksum(value_);
    record = Record(index, fields_, verifies ? stored_checksum(value_) : std::nullopt);
    return status;
  } catch (const LmdbDamage& damage) {
    return damage.record_status();
  }

  const PackedDataset& dataset_;
  DatasetCursor cursor_;
  std::span<const std::byte> value_;
  std::vector<RecordField> fields_;
};

std::unique_ptr<DatasetReader> PackedDataset::make_reader() const {
  return std::make_unique<Reader>(*this);
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
