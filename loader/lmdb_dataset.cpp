// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "dataset_lock.h"
#include "lmdb_environment.h"
#include "mutex.h"

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
    madvise(const_cast<std::byte*>(at), static_cast<std::size_t>(std::min(step, pages.end - at)), MADV_WILLNEED);
}

class LmdbDataset : public Dataset {
 public:
  LmdbDataset(std::string name, std::shared_ptr<const LmdbEnvironment> environment, OpenOptions options)
      : name_(std::move(name)), environment_(std::move(environment)), options_(options) {}

  std::uint64_t size() const override { return environment_->description().records; }
  std::string name() const override { return name_; }
  std::vector<std::string> classes() const override { return environment_->description().classes; }
  Record read(std::uint64_t index, ReadBuffer& buffer) const override;
  void prefetch(std::span<const std::uint64_t> indices) const override;
  std::string key(std::uint64_t index) const override;

 private:
  LmdbReader& reader_of(ReadBuffer& buffer) const;
  std::vector<PageRange> page_ranges(std::span<const std::uint64_t> indices) const;

  std::string name_;
  std::shared_ptr<const LmdbEnvironment> environment_;
  OpenOptions options_;
  mutable Mutex prefetch_mutex_;
  mutable std::optional<LmdbReader> prefetch_reader_ MILLRACE_GUARDED_BY(prefetch_mutex_);
};

LmdbReader& LmdbDataset::reader_of(ReadBuffer& buffer) const {
  if (!buffer.reader || buffer.reader_owner != environment_.get()) {
    buffer.reader = std::make_shared<LmdbReader>(environment_);
    buffer.reader_owner = environment_.get();
  }
  return *static_cast<LmdbReader*>(buffer.reader.get());
}

Record LmdbDataset::read(std::uint64_t index, ReadBuffer& buffer) const {
  if (index >= size())
    throw Error(
        ErrorCode::invalid_argument,
        "record " + std::to_string(index) + " was asked for, but " + name_ + " has " + std::to_string(size()) + " records", "",
        index);
  std::string reason;
  try {
    const std::span<const std::byte> value = reader_of(buffer).find(index);
    Status status = parse_record(value, environment_->description().fields, buffer.fields);
    if (status.is_ok() && options_.verify_checksums) status = check_checksum(value);
    if (status.is_ok()) return Record(index, buffer.fields);
    reason = status.reason();
  } catch (const Error& error) {
    buffer.reader.reset();
    if (error.code() != ErrorCode::bad_record) throw;
    reason = error.what();
  }
  throw Error(ErrorCode::bad_record,
              "record " + std::to_string(index) + " (" + key(index) + ") of " + name_ + " cannot be read: " + reason, "", index);
}

std::vector<PageRange> LmdbDataset::page_ranges(std::span<const std::uint64_t> indices) const {
  static const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<PageRange> ranges;
  ranges.reserve(indices.size());
  const MutexLock lock(prefetch_mutex_);
  for (const std::uint64_t index : indices) {
    if (index >= size()) continue;
    try {
      if (!prefetch_reader_) prefetch_reader_.emplace(environment_);
      ranges.push_back(pages_of(prefetch_reader_->find(index), page_bytes));
    } catch (const Error&) {
      // Whoever reads the record is told.
      prefetch_reader_.reset();
    }
  }
  return ranges;
}

void LmdbDataset::prefetch(std::span<const std::uint64_t> indices) const {
  std::vector<PageRange> ranges = page_ranges(indices);
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
    LmdbReader reader(environment_);
    std::vector<RecordField> fields;
    if (index < size() && parse_record(reader.find(index), environment_->description().fields, fields).is_ok()) {
      const Record record(index, fields);
      if (record.has("path")) return std::string(record.text("path"));
    }
  } catch (const Error&) {
    // Falls back.
  }
  return Dataset::key(index);
}

[[noreturn]] void throw_incomplete(const std::filesystem::path& path, std::uint64_t committed) {
  const std::string records = std::to_string(committed) + (committed == 1 ? " record was" : " records were");
  throw Error(ErrorCode::incomplete, is_being_written(path)
                                         ? path.string() + " is incomplete: it is being written at this moment (" + records +
                                               " committed so far); wait for its end"
                                         : path.string() + " is incomplete: its packing was interrupted after " + records +
                                               " committed; pack it again (`millrace pack --force` replaces it)");
}

}  // namespace

std::shared_ptr<const Dataset> open_dataset(const std::filesystem::path& path, OpenOptions options) {
  std::shared_ptr<const LmdbEnvironment> environment = LmdbEnvironment::open(path);
  if (!environment->description().complete) throw_incomplete(path, environment->description().records);
  return std::make_shared<LmdbDataset>(path.string(), std::move(environment), options);
}

}  // namespace millrace
