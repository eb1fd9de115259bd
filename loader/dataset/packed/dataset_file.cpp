// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/dataset_file.h"

#include <fcntl.h>
#include <millrace/error.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/mutex.h"

namespace millrace {
namespace {

std::string reason_of(int error) { return std::generic_category().message(error); }

/// Why bytes of a page are wrong of which no fault told.
constexpr const char* shorter_or_damaged = "the file was made shorter, or it is damaged there";

std::string cannot_be_read(const std::string& name, std::uint64_t offset,
                           const std::string& reason) {
  return name + " cannot be read at byte " + std::to_string(offset) + ": " + reason;
}

/// Reads into `to`; returns how much was there. Throws `Error` (`io`).
std::size_t read_at(int file, const std::string& name, std::uint64_t offset,
                    std::span<std::byte> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t read =
        pread(file, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (read == 0) break;
    if (read > 0)
      done += static_cast<std::size_t>(read);
    else if (errno != EINTR)
      throw Error(ErrorCode::io, cannot_be_read(name, offset + done, reason_of(errno)));
  }
  return done;
}

std::optional<LmdbMeta> read_meta_page(int file, const std::string& name, std::uint64_t offset) {
  std::array<std::byte, LmdbMeta::bytes> bytes{};
  if (read_at(file, name, offset, bytes) != bytes.size()) return {};
  return parse_lmdb_meta(bytes);
}

struct stat stat_of(int file, const std::string& name) {
  struct stat status {};
  if (fstat(file, &status) != 0) throw Error(ErrorCode::io, name + ": " + reason_of(errno));
  return status;
}

/// The newer one of the two meta pages. Throws `Error` unless the file is as long as that says, so
/// that no page of a file that is cut short is touched.
LmdbMeta newest_meta(int file, const std::string& name) {
  const std::optional<LmdbMeta> first = read_meta_page(file, name, 0);
  const auto second = first ? read_meta_page(file, name, first->page_bytes) : std::nullopt;
  if (!second || second->page_bytes != first->page_bytes)
    throw Error(
        ErrorCode::corrupt,
        name + " is damaged or cut short within its first two pages; copy or pack it again");
  // Asked for after the pages were read, since a writer may be making the file longer.
  const auto length = static_cast<std::uint64_t>(stat_of(file, name).st_size);
  const LmdbMeta& newest = second->transaction > first->transaction ? *second : *first;
  if (newest.last_page >= UINT64_MAX / newest.page_bytes ||
      length < (newest.last_page + 1) * newest.page_bytes)
    throw Error(ErrorCode::corrupt, name + " is " + std::to_string(length) +
                                        " bytes long but its last page ends at " +
                                        std::to_string((newest.last_page + 1) * newest.page_bytes) +
                                        ": the file was cut short; copy or pack it again");
  return newest;
}

[[noreturn]] void throw_nothing_committed(const std::string& what) {
  throw Error(ErrorCode::incomplete,
              what + ", its packing was interrupted before anything was committed: pack it again");
}

FileDescriptor open_file(const std::filesystem::path& path, const std::string& name) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file) return file;
  const int reason = errno;
  if (reason == ENOENT || reason == ENOTDIR)
    throw Error(ErrorCode::not_found, name + " does not exist; make it with `millrace pack`");
  throw Error(ErrorCode::io, name + " cannot be opened: " + reason_of(reason));
}

/// The dataset files that are open in this process, by device and inode, and whether mapped.
struct Registry {
  Mutex mutex;
  std::map<std::tuple<dev_t, ino_t, bool>, std::weak_ptr<const DatasetFile>> open
      MILLRACE_GUARDED_BY(mutex);
};

Registry& registry() {
  static Registry registry;
  return registry;
}

/// Whether an open file is one of LMDB's, or is empty.
Status probe_open(int file, const struct stat& status, const std::filesystem::path& path) {
  if (S_ISDIR(status.st_mode)) {
    std::error_code ignored;
    return Status::bad(std::filesystem::exists(path / "data.mdb", ignored)
                           ? "it is a folder, and a packed dataset is one file; if millrace packed "
                             "its data.mdb, open that"
                           : "it is a folder, and a packed dataset is one file");
  }
  if (!S_ISREG(status.st_mode)) return Status::bad("it is neither file nor folder");
  if (status.st_size > 0 && !read_meta_page(file, path.string(), 0))
    return Status::bad("it is no LMDB file");
  return Status::ok();
}

}  // namespace

DatasetRoot read_dataset_root(const LmdbPages& pages, const LmdbTree& main,
                              const std::string& name) {
  if (main.entries == 0)
    throw Error(ErrorCode::corrupt, name + " is no dataset: it is an LMDB file with nothing in it");
  try {
    const auto meta = pages.find_tree(main, meta_database);
    const auto records = pages.find_tree(main, records_database);
    const bool have_both = main.flags == 0 && meta && records && meta->flags == 0 &&
                           records->flags == lmdb::integer_keys;
    const auto value = have_both ? pages.find_value(*meta, description_key) : std::nullopt;
    if (!value)
      throw Error(
          ErrorCode::corrupt,
          name + " is an LMDB file, but no millrace dataset; make one with `millrace pack`");

    DatasetRoot root{
        parse_description({reinterpret_cast<const char*>(value->data()), value->size()}, name),
        *records};
    if (root.description.records != records->entries)
      throw Error(ErrorCode::corrupt, name + " says it has " +
                                          std::to_string(root.description.records) +
                                          " records, but " + std::to_string(records->entries) +
                                          " are there: it is damaged; pack it again");
    return root;
  } catch (const LmdbDamage& damage) {
    throw Error(ErrorCode::corrupt,
                name + " has damaged pages (" + damage.what() + "); copy or pack it again");
  }
}

Status DatasetFile::probe(const std::filesystem::path& path) {
  const FileDescriptor file = open_file(path, path.string());
  return probe_open(file.get(), stat_of(file.get(), path.string()), path);
}

std::shared_ptr<const DatasetFile> DatasetFile::open(const std::filesystem::path& path,
                                                     bool mapped) {
  const std::string name = path.string();
  FileDescriptor file = open_file(path, name);
  const struct stat status = stat_of(file.get(), name);
  if (const Status found = probe_open(file.get(), status, path); !found.is_ok())
    throw Error(ErrorCode::corrupt, name + " is no dataset: " + found.reason() +
                                        "; make one of a folder of images with `millrace pack`");
  if (status.st_size == 0) throw_nothing_committed(name + " is empty; if it is a dataset");

  Registry& all = registry();
  const MutexLock lock(all.mutex);
  std::erase_if(all.open, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const DatasetFile>& entry = all.open[{status.st_dev, status.st_ino, mapped}];
  if (std::shared_ptr<const DatasetFile> opened = entry.lock()) return opened;
  const LmdbMeta meta = newest_meta(file.get(), name);
  if (meta.transaction == 0 && meta.main.entries == 0 && meta.main.root == LmdbTree::no_page)
    throw_nothing_committed(name + " is an LMDB file with nothing in it; if it is a dataset");
  std::shared_ptr<const DatasetFile> opened(new DatasetFile(std::move(file), meta, name, mapped));
  // An incomplete file may hold more the next time.
  if (opened->description().complete) entry = opened;
  return opened;
}

DatasetFile::DatasetFile(FileDescriptor file, const LmdbMeta& meta, std::string name, bool mapped)
    : name_(std::move(name)), pages_(meta.last_page + 1), page_bytes_(meta.page_bytes) {
  if (mapped) {
    const std::size_t bytes = pages_ * page_bytes_;
    map_ = std::make_unique<GuardedMap>(file.get(), bytes, name_);
    // Records are read in any order, so what lies behind one is not wanted with it.
    madvise(const_cast<std::byte*>(map_->bytes().data()), bytes, MADV_RANDOM);
  } else {
    file_ = std::move(file);
    posix_fadvise(file_.get(), 0, 0, POSIX_FADV_RANDOM);
  }
  try {
    root_ = read_dataset_root(DatasetCursor(*this).pages_, meta.main, name_);
  } catch (const Error&) {
    check_not_lost({0, pages_ * page_bytes_});
    throw;
  }
}

void DatasetFile::check() const {
  const auto refuse = [&](const std::string& what) {
    check_not_lost({0, pages_ * page_bytes_});
    throw Error(ErrorCode::corrupt, name_ + " is damaged, so nothing is added to it: " + what +
                                        "; copy or pack it again");
  };
  // Nearly in the order of the records, unlike all other reading.
  const std::span<const std::byte> file = map_->bytes();
  madvise(const_cast<std::byte*>(file.data()), file.size(), MADV_SEQUENTIAL);
  try {
    const LmdbPages pages(file, page_bytes_);
    pages.check();
    LmdbPlace place;
    std::vector<RecordField> fields;
    std::uint64_t fingerprint = 0;
    for (std::uint64_t index = 0; index < root_.description.records; ++index) {
      const std::span<const std::byte> value = pages.find_record(root_.records, index, place);
      Status status = check_checksum(value);
      if (status.is_ok()) status = parse_record(value, root_.description.fields, fields);
      if (!status.is_ok()) refuse("record " + std::to_string(index) + ": " + status.reason());
      fingerprint = fingerprint_with(fingerprint, *stored_checksum(value));
    }
    if (fingerprint != root_.description.fingerprint)
      refuse("its records are not those that were written, or not in their order");
  } catch (const LmdbDamage& damage) {
    refuse(damage.what());
  }
  check_not_lost({0, file.size()});
}

void DatasetFile::read_ahead(std::vector<FileRange> ranges) const {
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (FileRange& range : ranges) {
    const std::size_t into_page = range.offset % page_bytes;
    range.offset -= into_page;
    range.bytes = (into_page + range.bytes + page_bytes - 1) / page_bytes * page_bytes;
  }
  std::ranges::sort(ranges, {}, &FileRange::offset);
  for (std::size_t first = 0; first < ranges.size();) {
    std::uint64_t at = ranges[first].offset, end = at;
    for (; first < ranges.size() && ranges[first].offset <= end; ++first)
      end = std::max(end, ranges[first].offset + ranges[first].bytes);
    // Linux reads no more per call than the device takes in one go, and leaves out the rest.
    for (std::size_t bytes = 0; at < end; at += bytes) {
      bytes = std::min(std::size_t{128} << 10, end - at);
      if (map_)
        madvise(const_cast<std::byte*>(map_->bytes().data() + at), bytes, MADV_WILLNEED);
      else
        posix_fadvise(file_.get(), static_cast<off_t>(at), static_cast<off_t>(bytes),
                      POSIX_FADV_WILLNEED);
    }
  }
}

Error DatasetFile::unreadable(std::uint64_t offset, const std::string& reason) const {
  return {ErrorCode::io, cannot_be_read(name_, offset, reason)};
}

void DatasetFile::check_not_lost(FileRange range) const {
  if (!map_ || map_->whole()) return;
  if (const auto lost = map_->first_lost(map_->bytes().subspan(range.offset, range.bytes)))
    throw unreadable(*lost, "an I/O error, or the file was made shorter");
}

DatasetCursor::DatasetCursor(const DatasetFile& file)
    : file_(file),
      pages_(file.map_ ? LmdbPages(file.map_->bytes(), file.page_bytes_)
                       : LmdbPages(*this, file.pages_, file.page_bytes_)) {}

template <typename Find>
auto DatasetCursor::guarded(Find find) const {
  try {
    return find();
  } catch (const LmdbDamage& damage) {
    if (!file_.map_ || file_.map_->whole() || damage.page >= file_.pages_) throw;
    const FileRange page{damage.page * file_.page_bytes_, file_.page_bytes_};
    file_.check_not_lost(page);
    throw file_.unreadable(page.offset, shorter_or_damaged);
  }
}

std::span<const std::byte> DatasetCursor::find(std::uint64_t index) {
  return guarded([&] { return pages_.find_record(file_.root_.records, index, place_); });
}

FileRange DatasetCursor::locate(std::uint64_t index) {
  return guarded([&] { return pages_.locate_record(file_.root_.records, index, place_); });
}

Status DatasetCursor::check_kept(std::span<const std::byte> value) const {
  if (value.empty() || !file_.map_ || file_.map_->whole()) return Status::ok();
  const auto offset = static_cast<std::uint64_t>(value.data() - file_.map_->bytes().data());
  try {
    file_.check_not_lost({offset, value.size()});
  } catch (const Error& error) {
    return Status::bad(error.reason());
  }
  // The page in which the file ends now has zeros behind that.
  if (check_checksum(value).is_ok()) return Status::ok();
  return Status::bad(file_.unreadable(offset, shorter_or_damaged).reason());
}

const std::byte* DatasetCursor::read(FileRange range) {
  if (buffer_.size() < range.bytes) buffer_.resize(range.bytes);
  const std::size_t done =
      read_at(file_.file_.get(), file_.name_, range.offset, std::span(buffer_).first(range.bytes));
  if (done < range.bytes)
    throw file_.unreadable(range.offset + done, "the file ends there: it was made shorter");
  return buffer_.data();
}

}  // namespace millrace
