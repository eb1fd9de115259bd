// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/dataset_file.h"

#include <fcntl.h>
#include <millrace/error.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <system_error>
#include <utility>

#include "base/file_descriptor.h"
#include "base/mutex.h"

namespace millrace {
namespace {

std::string reason_of(int error) { return std::generic_category().message(error); }

std::optional<LmdbMeta> read_meta_page(int file, std::uint64_t offset) {
  std::array<std::byte, LmdbMeta::bytes> bytes{};
  if (pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)) !=
      static_cast<ssize_t>(bytes.size()))
    return {};
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
  const std::optional<LmdbMeta> first = read_meta_page(file, 0);
  const auto second = first ? read_meta_page(file, first->page_bytes) : std::nullopt;
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

/// The dataset files that are open in this process, by device and inode.
struct Registry {
  Mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<const DatasetFile>> open
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
  if (status.st_size > 0 && !read_meta_page(file, 0)) return Status::bad("it is no LMDB file");
  return Status::ok();
}

}  // namespace

DatasetRoot read_dataset_root(const LmdbPages& pages, const LmdbTree& main,
                              const std::string& name) {
  if (main.entries == 0)
    throw_nothing_committed(name + " is an LMDB file with nothing in it; if it is a dataset");
  try {
    const auto meta = pages.find_tree(main, meta_database);
    const auto records = pages.find_tree(main, records_database);
    constexpr std::uint16_t integer_keys = 0x08;
    const bool have_both =
        main.flags == 0 && meta && records && meta->flags == 0 && records->flags == integer_keys;
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

std::shared_ptr<const DatasetFile> DatasetFile::open(const std::filesystem::path& path) {
  const std::string name = path.string();
  const FileDescriptor file = open_file(path, name);
  const struct stat status = stat_of(file.get(), name);
  if (const Status found = probe_open(file.get(), status, path); !found.is_ok())
    throw Error(ErrorCode::corrupt, name + " is no dataset: " + found.reason() +
                                        "; make one of a folder of images with `millrace pack`");
  if (status.st_size == 0) throw_nothing_committed(name + " is empty; if it is a dataset");

  Registry& all = registry();
  const MutexLock lock(all.mutex);
  std::erase_if(all.open, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const DatasetFile>& entry = all.open[{status.st_dev, status.st_ino}];
  if (std::shared_ptr<const DatasetFile> opened = entry.lock()) return opened;
  const LmdbMeta meta = newest_meta(file.get(), name);
  std::shared_ptr<const DatasetFile> opened(new DatasetFile(file.get(), meta, name));
  // An incomplete file may hold more the next time.
  if (opened->description().complete) entry = opened;
  return opened;
}

DatasetFile::DatasetFile(int file, const LmdbMeta& meta, const std::string& name) {
  const std::size_t bytes = (meta.last_page + 1) * meta.page_bytes;
  void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (map == MAP_FAILED)
    throw Error(ErrorCode::io, name + " cannot be mapped: " + reason_of(errno));
  map_ = {static_cast<const std::byte*>(map), Unmap{bytes}};
  // Records are read in any order, so what lies behind one is not wanted with it.
  madvise(map, bytes, MADV_RANDOM);
  pages_ = LmdbPages({map_.get(), bytes}, meta.page_bytes);
  root_ = read_dataset_root(pages_, meta.main, name);
}

void DatasetFile::Unmap::operator()(const std::byte* begin) const {
  munmap(const_cast<std::byte*>(begin), bytes);
}

}  // namespace millrace
