// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/lmdb_file.h"

#include <fcntl.h>
#include <millrace/detail/errno_text.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/mutex.h"
#include "base/read_full.h"

namespace millrace {
namespace {

/// Reads into `to` and returns the number of bytes read. Throws `Error` (`io`).
std::size_t read_at(int file, const std::string& name, std::uint64_t offset,
                    std::span<std::byte> to) {
  const std::size_t done = read_full(file, offset, to);
  if (done < to.size() && errno != 0)
    throw Error(ErrorCode::io, unreadable_text(name, offset + done, errno_text(errno)));
  return done;
}

std::optional<LmdbMeta> read_meta_page(int file, const std::string& name, std::uint64_t offset) {
  std::array<std::byte, LmdbMeta::bytes> bytes{};
  if (read_at(file, name, offset, bytes) != bytes.size()) return {};
  return parse_lmdb_meta(bytes);
}

struct stat stat_of(int file, const std::string& name) {
  struct stat status {};
  if (fstat(file, &status) != 0) throw Error(ErrorCode::io, name + ": " + errno_text(errno));
  return status;
}

/// Returns the newer meta page. Throws `Error` if the file is shorter than that page says, so that
/// the missing pages of a truncated file are never touched.
LmdbMeta newest_meta(int file, const std::string& name) {
  const std::optional<LmdbMeta> first = read_meta_page(file, name, 0);
  const auto second = first ? read_meta_page(file, name, first->page_bytes) : std::nullopt;
  if (!second || second->page_bytes != first->page_bytes)
    throw Error(
        ErrorCode::corrupt,
        name + " is damaged or cut short within its first two pages; copy or pack it again");
  // Read after the pages, since a writer may be extending the file.
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
  FileDescriptor file = FileDescriptor::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file) return file;
  const int reason = errno;
  if (reason == ENOENT || reason == ENOTDIR)
    throw Error(ErrorCode::not_found, name + " does not exist; make it with `millrace pack`");
  throw Error(ErrorCode::io, name + " cannot be opened: " + errno_text(reason));
}

/// Returns the kind of an unsupported LMDB file, such as "data version 2 (LMDB 1.0)"; empty for any
/// other file. The magic number and the version follow a page header: the page number and, since
/// LMDB 1.0, a transaction number, then 8 bytes. These numbers have 8 bytes, or 4 in a 32-bit
/// program. (A 32-bit program built with MDB_VL32 uses 8 bytes, so its files are supported.)
std::string other_lmdb_kind(int file, const std::string& name) {
  std::array<std::byte, 32> bytes{};
  read_at(file, name, 0, bytes);
  for (const std::size_t header_bytes : {12UL, 16UL, 24UL}) {
    const auto magic = lmdb::load<std::uint32_t>(bytes.data() + header_bytes);
    const bool swapped = magic == __builtin_bswap32(lmdb::lmdb_magic);
    if (magic != lmdb::lmdb_magic && !swapped) continue;
    auto version = lmdb::load<std::uint32_t>(bytes.data() + header_bytes + 4);
    if (swapped) version = __builtin_bswap32(version);
    if (header_bytes == 16 && version == 1 && !swapped) return {};
    return "data version " + std::to_string(version) + (version == 2 ? " (LMDB 1.0)" : "") +
           (header_bytes == 12 || (header_bytes == 16 && version == 2) ? " of a 32-bit program"
                                                                       : "") +
           (swapped ? " of a big-endian machine" : "");
  }
  return {};
}

/// Returns whether an open file is an LMDB file or empty.
Status probe_open(int file, const struct stat& status, const std::string& name) {
  if (S_ISDIR(status.st_mode)) return Status::bad("it is a folder without a file data.mdb");
  if (!S_ISREG(status.st_mode)) return Status::bad("it is neither file nor folder");
  if (status.st_size == 0 || read_meta_page(file, name, 0)) return Status::ok();
  if (const std::string kind = other_lmdb_kind(file, name); !kind.empty())
    throw Error(ErrorCode::corrupt,
                name + ": LMDB file of " + kind +
                    ", expected data version 1 (LMDB 0.9) of a 64-bit program; convert it: "
                    "`mdb_dump -a -n " +
                    name +
                    " | mdb_load -n NEW`, mdb_dump of the LMDB that wrote it, mdb_load of "
                    "LMDB 0.9 for 64 bits");
  return Status::bad("it is not an LMDB file");
}

}  // namespace

void check_lmdb_version(const std::string& name, int major, int minor, int patch) {
  if (major < 1) return;
  throw Error(ErrorCode::invalid_argument,
              name + ": cannot be written with LMDB " + std::to_string(major) + "." +
                  std::to_string(minor) + "." + std::to_string(patch) +
                  " (data version 2 or newer, expected 1 as LMDB 0.9 writes); run millrace with "
                  "LMDB 0.9");
}

/// The open files that this process shares.
struct LmdbFileRegistry {
  Mutex mutex;
  std::map<LmdbFile::Id, std::weak_ptr<const LmdbFile>> open MILLRACE_GUARDED_BY(mutex);

  static Mutex& the_mutex() { return LmdbFile::registry().mutex; }
};

LmdbFileRegistry& LmdbFile::registry() {
  // A child of fork() would wait forever for a static object that another thread was constructing.
  // `std::call_once` begins again in the child.
  static LmdbFileRegistry* registry = nullptr;
  static std::once_flag once;
  std::call_once(once, [] {
    if (registry == nullptr) registry = new LmdbFileRegistry;
    keep_free_in_children<LmdbFileRegistry::the_mutex>();
  });
  return *registry;
}

std::filesystem::path lmdb_file_at(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path inside = path / "data.mdb";
  return std::filesystem::is_directory(path, ignored) && std::filesystem::exists(inside, ignored)
             ? inside
             : path;
}

Status LmdbFile::probe(const std::filesystem::path& path) {
  const FileDescriptor file = open_file(path, path.string());
  return probe_open(file.get(), stat_of(file.get(), path.string()), path.string());
}

std::shared_ptr<const LmdbFile> LmdbFile::open(const std::filesystem::path& path, bool mapped) {
  const std::string name = path.string();
  FileDescriptor file = open_file(path, name);
  const struct stat status = stat_of(file.get(), name);
  if (const Status found = probe_open(file.get(), status, name); !found.is_ok())
    throw Error(ErrorCode::corrupt, name + " is not a dataset: " + found.reason() +
                                        "; make one of a folder of images with `millrace pack`");
  if (status.st_size == 0) throw_nothing_committed(name + " is empty; if it is a dataset");
  const Id id{status.st_dev, status.st_ino, mapped};
  {
    LmdbFileRegistry& all = registry();
    const MutexLock lock(all.mutex);
    const auto entry = all.open.find(id);
    if (entry != all.open.end())
      if (std::shared_ptr<const LmdbFile> opened = entry->second.lock()) return opened;
  }
  const LmdbMeta meta = newest_meta(file.get(), name);
  if (meta.transaction == 0 && meta.main.entries == 0 && meta.main.root == LmdbTree::no_page)
    throw_nothing_committed(name + " is an LMDB file with nothing in it; if it is a dataset");
  return std::shared_ptr<const LmdbFile>(new LmdbFile(std::move(file), meta, name, id));
}

std::shared_ptr<const LmdbFile> LmdbFile::share(const std::shared_ptr<const LmdbFile>& file) {
  LmdbFileRegistry& all = registry();
  const MutexLock lock(all.mutex);
  std::erase_if(all.open, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const LmdbFile>& entry = all.open[file->id_];
  if (std::shared_ptr<const LmdbFile> shared = entry.lock()) return shared;
  entry = file;
  return file;
}

LmdbFile::LmdbFile(FileDescriptor file, const LmdbMeta& meta, std::string name, Id id)
    : name_(std::move(name)), meta_(meta), id_(id) {
  if (std::get<bool>(id)) map_ = SigbusSafeMap::make(file.get(), bytes(), name_, warnings_);
  if (!map_) file_ = std::move(file);
  expect_random_reads(map_.get(), file_.get());
}

std::uint64_t LmdbFile::length_now() const {
  struct stat status {};
  if (stat(name_.c_str(), &status) != 0 ||
      Id{status.st_dev, status.st_ino, std::get<bool>(id_)} != id_)
    return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

void LmdbFile::read_ahead(std::vector<FileRange> ranges) const {
  millrace::read_ahead(std::move(ranges), map_.get(), file_.get());
}

Error LmdbFile::unreadable(std::uint64_t offset, const std::string& reason) const {
  return {ErrorCode::io, unreadable_text(name_, offset, reason)};
}

void LmdbFile::check_not_lost(FileRange range) const {
  if (whole()) return;
  if (const auto lost = map_->first_lost(map().subspan(range.offset, range.bytes)))
    throw unreadable(*lost, "an I/O error, or the file was made shorter");
}

LmdbCursor::LmdbCursor(const LmdbFile& file)
    : file_(file),
      pages_(file.map_ ? LmdbPages(file.map(), file.meta().page_bytes)
                       : LmdbPages(*this, file.pages(), file.meta().page_bytes)) {}

void LmdbCursor::throw_if_lost(const LmdbDamage& damage) const {
  if (file_.whole() || damage.page >= file_.pages()) return;
  const std::uint64_t page_bytes = file_.meta().page_bytes;
  file_.check_not_lost({damage.page * page_bytes, page_bytes});
  throw file_.unreadable(damage.page * page_bytes, shorter_or_damaged);
}

Status LmdbCursor::check_intact(std::span<const std::byte> bytes) const {
  if (bytes.empty() || file_.whole()) return Status::ok();
  try {
    file_.check_not_lost({offset_of(bytes), bytes.size()});
    return Status::ok();
  } catch (const Error& error) {
    return Status::bad(error.reason());
  }
}

const std::byte* LmdbCursor::read(FileRange range) {
  // The buffer already has this page: callers often read its next entry.
  if (range.offset == held_.offset && range.bytes == held_.bytes) return buffer_.data();
  held_ = {};
  if (buffer_.size() < range.bytes) buffer_.resize(range.bytes);
  const std::size_t done =
      read_at(file_.file_.get(), file_.name_, range.offset, std::span(buffer_).first(range.bytes));
  if (done < range.bytes)
    throw file_.unreadable(range.offset + done, "the file ends there: it was made shorter");
  held_ = range;
  return buffer_.data();
}

}  // namespace millrace
