// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "dataset/packed/dataset_file.h"
#include "dataset/packed/dataset_lock.h"
#include "dataset/packed/shard_index.h"
#include "dataset/packed/sharded_dataset.h"

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

/// For messages, which a zero byte in a damaged name would end.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return line;
}

/// What a `ReadBuffer` keeps of a file.
struct Reader {
  std::shared_ptr<const DatasetFile> file;
  LmdbPlace place;
};

class LmdbDataset : public Dataset {
 public:
  LmdbDataset(std::string name, std::shared_ptr<const DatasetFile> file, OpenOptions options)
      : name_(std::move(name)), file_(std::move(file)), options_(options) {}

  std::uint64_t size() const override { return file_->description().records; }
  std::string name() const override { return name_; }
  std::vector<std::string> classes() const override { return file_->description().classes; }
  Record read(std::uint64_t index, ReadBuffer& buffer) const override;
  void prefetch(std::span<const std::uint64_t> indices) const override;
  std::string key(std::uint64_t index) const override;
  DatasetFacts facts() const override;
  std::optional<StoredRecord> stored(std::uint64_t index) const override;

 private:
  LmdbPlace& place_of(ReadBuffer& buffer) const;

  std::string name_;
  std::shared_ptr<const DatasetFile> file_;
  OpenOptions options_;
};

LmdbPlace& LmdbDataset::place_of(ReadBuffer& buffer) const {
  if (!buffer.reader || buffer.reader_owner != file_.get()) {
    buffer.reader = std::make_shared<Reader>(Reader{file_, {}});
    buffer.reader_owner = file_.get();
  }
  return static_cast<Reader*>(buffer.reader.get())->place;
}

Record LmdbDataset::read(std::uint64_t index, ReadBuffer& buffer) const {
  if (index >= size())
    throw Error(ErrorCode::invalid_argument,
                "record " + std::to_string(index) + " was asked for, but " + name_ + " has " +
                    std::to_string(size()) + " records",
                "", index);
  std::string reason;
  try {
    const std::span<const std::byte> value = file_->find(index, place_of(buffer));
    Status status = parse_record(value, file_->description().fields, buffer.fields);
    if (status.is_ok() && options_.verify_checksums) status = check_checksum(value);
    if (status.is_ok()) return Record(index, buffer.fields);
    reason = status.reason();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_record) throw;
    reason = error.what();
  }
  throw Error(ErrorCode::bad_record,
              "record " + std::to_string(index) + " (" + key(index) + ") of " + name_ +
                  " cannot be read: " + reason,
              "", index);
}

void LmdbDataset::prefetch(std::span<const std::uint64_t> indices) const {
  static const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<PageRange> ranges;
  ranges.reserve(indices.size());
  LmdbPlace place;
  for (const std::uint64_t index : indices) {
    if (index >= size()) continue;
    try {
      ranges.push_back(pages_of(file_->locate(index, place), page_bytes));
    } catch (const Error&) {
      // Whoever reads the record is told.
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

std::string LmdbDataset::key(std::uint64_t index) const {
  try {
    LmdbPlace place;
    std::vector<RecordField> fields;
    if (index < size() &&
        parse_record(file_->find(index, place), file_->description().fields, fields).is_ok()) {
      const Record record(index, fields);
      if (record.has("path")) return one_line(record.text("path"));
    }
  } catch (const Error&) {
    // Falls back.
  }
  return Dataset::key(index);
}

DatasetFacts LmdbDataset::facts() const {
  const Description& description = file_->description();
  return {
      .files = {name_},
      .fields = description.fields,
      .fingerprint = description.format > 1 ? std::optional(description.fingerprint) : std::nullopt,
      .created_by = description.created_by};
}

std::optional<StoredRecord> LmdbDataset::stored(std::uint64_t index) const {
  try {
    if (index >= size()) return {};
    LmdbPlace place;
    const std::span<const std::byte> value = file_->find(index, place);
    const std::optional<std::uint64_t> checksum = stored_checksum(value);
    if (!checksum) return {};
    return StoredRecord{.file = name_, .bytes = value.size(), .checksum = *checksum};
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::shared_ptr<const Dataset> open_dataset(const std::filesystem::path& path,
                                            OpenOptions options) {
  if (is_shard_index(path)) return open_sharded_dataset(path, options);
  std::shared_ptr<const DatasetFile> file = DatasetFile::open(path);
  if (!file->description().complete) throw_incomplete(path, file->description().records);
  return std::make_shared<LmdbDataset>(path.string(), std::move(file), options);
}

}  // namespace millrace
