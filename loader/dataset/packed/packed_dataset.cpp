// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/packed_dataset.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "dataset/joined_dataset.h"
#include "dataset/packed/dataset_file.h"
#include "dataset/packed/dataset_lock.h"
#include "dataset/packed/shard_index.h"

namespace millrace {
namespace {

/// Whole pages of the map.
struct PageRange {
  const std::byte* begin;
  const std::byte* end;
};

PageRange pages_of(std::span<const std::byte> bytes, std::size_t page_bytes) {
  const std::size_t into_page = reinterpret_cast<std::uintptr_t>(bytes.data()) % page_bytes;
  const std::byte* begin = bytes.data() - into_page;
  return {begin, begin + (into_page + bytes.size() + page_bytes - 1) / page_bytes * page_bytes};
}

void read_ahead(PageRange pages) {
  // Linux reads no more per call than the device takes in one go, and leaves out the rest.
  constexpr std::ptrdiff_t step = 128 << 10;
  for (const std::byte* at = pages.begin; at < pages.end; at += std::min(step, pages.end - at))
    madvise(const_cast<std::byte*>(at), static_cast<std::size_t>(std::min(step, pages.end - at)),
            MADV_WILLNEED);
}

/// `text` without control characters, since a zero byte of a damaged name would end a message.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return line;
}

class PackedDataset final : public Dataset, public std::enable_shared_from_this<PackedDataset> {
 public:
  PackedDataset(std::string name, std::shared_ptr<const DatasetFile> file, OpenOptions options)
      : name_(std::move(name)), file_(std::move(file)), options_(options) {}

  std::uint64_t size() const override { return file_->description().records; }
  std::string name() const override { return name_; }
  std::vector<std::string> classes() const override { return file_->description().classes; }
  std::unique_ptr<DatasetReader> make_reader() const override;
  void prefetch(std::span<const std::uint64_t> indices) const override;
  std::string key(std::uint64_t index) const override;
  DatasetFacts facts() const override;
  std::optional<StoredRecord> stored(std::uint64_t index) const override;

 private:
  class Reader;

  std::string name_;
  std::shared_ptr<const DatasetFile> file_;
  OpenOptions options_;
};

class PackedDataset::Reader final : public DatasetReader {
 public:
  explicit Reader(std::shared_ptr<const PackedDataset> dataset) : dataset_(std::move(dataset)) {}

  Record read(std::uint64_t index) override {
    check_index(*dataset_, index);
    const DatasetFile& file = *dataset_->file_;
    std::string reason;
    try {
      const std::span<const std::byte> value = file.find(index, place_);
      Status status = parse_record(value, file.description().fields, fields_);
      if (status.is_ok() && dataset_->options_.verify_checksums) status = check_checksum(value);
      if (status.is_ok()) return Record(index, fields_);
      reason = status.reason();
    } catch (const LmdbDamage& damage) {
      reason = std::string("the file's pages that lead to it are damaged: ") + damage.what();
    }
    throw Error(ErrorCode::bad_record, record_name(*dataset_, index) + " cannot be read: " + reason,
                "", index, reason);
  }

 private:
  std::shared_ptr<const PackedDataset> dataset_;
  LmdbPlace place_;
  std::vector<RecordField> fields_;
};

std::unique_ptr<DatasetReader> PackedDataset::make_reader() const {
  return std::make_unique<Reader>(shared_from_this());
}

void PackedDataset::prefetch(std::span<const std::uint64_t> indices) const {
  static const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<PageRange> ranges;
  ranges.reserve(indices.size());
  LmdbPlace place;
  for (const std::uint64_t index : indices) {
    if (index >= size()) continue;
    try {
      ranges.push_back(pages_of(file_->locate(index, place), page_bytes));
    } catch (const LmdbDamage&) {
      // Whoever reads the record gets the error.
    }
  }
  std::ranges::sort(ranges, {}, &PageRange::begin);
  for (std::size_t first = 0; first < ranges.size();) {
    PageRange merged = ranges[first++];
    for (; first < ranges.size() && ranges[first].begin <= merged.end; ++first)
      merged.end = std::max(merged.end, ranges[first].end);
    read_ahead(merged);
  }
}

std::string PackedDataset::key(std::uint64_t index) const {
  try {
    LmdbPlace place;
    std::vector<RecordField> fields;
    if (index < size() &&
        parse_record(file_->find(index, place), file_->description().fields, fields).is_ok()) {
      const Record record(index, fields);
      if (record.has("path")) return one_line(record.text("path"));
    }
  } catch (const LmdbDamage&) {
    // The record has its number for a name.
  }
  return Dataset::key(index);
}

DatasetFacts PackedDataset::facts() const {
  const Description& description = file_->description();
  return {
      .files = {name_},
      .fields = description.fields,
      .fingerprint = description.format > 1 ? std::optional(description.fingerprint) : std::nullopt,
      .created_by = description.created_by};
}

std::optional<StoredRecord> PackedDataset::stored(std::uint64_t index) const {
  try {
    if (index >= size()) return {};
    LmdbPlace place;
    const std::span<const std::byte> value = file_->find(index, place);
    const std::optional<std::uint64_t> checksum = stored_checksum(value);
    if (!checksum) return {};
    return StoredRecord{.file = name_, .bytes = value.size(), .checksum = *checksum};
  } catch (const LmdbDamage&) {
    return {};
  }
}

/// How many records of a dataset that is written in shards are committed.
std::uint64_t committed_records(const std::filesystem::path& path, const ShardIndex& index) {
  if (index.begun.empty()) return index.records;
  try {
    return index.records + DatasetFile::open(shard_path(path, index.begun))->description().records;
  } catch (const Error&) {
    return index.records;
  }
}

}  // namespace

Status probe_packed_file(const std::filesystem::path& path) { return DatasetFile::probe(path); }

std::shared_ptr<const Dataset> open_packed_file(const std::filesystem::path& path,
                                                OpenOptions options) {
  std::shared_ptr<const DatasetFile> file = DatasetFile::open(path);
  if (!file->description().complete) throw_incomplete(path, file->description().records);
  return std::make_shared<PackedDataset>(path.string(), std::move(file), options);
}

Status probe_shard_list(const std::filesystem::path& path) {
  return is_shard_index(path) ? Status::ok() : Status::bad("it is no file that begins with \"{\"");
}

std::shared_ptr<const Dataset> open_shard_list(const std::filesystem::path& path,
                                               OpenOptions options) {
  ShardIndex index = read_shard_index(path);
  if (!index.complete) throw_incomplete(path, committed_records(path, index));
  std::vector<std::shared_ptr<const Dataset>> shards;
  std::vector<std::string> fields;
  for (const ShardEntry& entry : index.shards) {
    std::shared_ptr<const DatasetFile> shard = open_listed_shard(path, entry);
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
                                           .facts = {.fields = std::move(fields),
                                                     .fingerprint = index.fingerprint,
                                                     .created_by = std::move(index.created_by)}});
}

}  // namespace millrace
