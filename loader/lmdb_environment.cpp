// SPDX-License-Identifier: Apache-2.0
#include "lmdb_environment.h"

#include <fcntl.h>
#include <millrace/error.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>

#include "file_descriptor.h"
#include "mutex.h"

namespace millrace {
namespace {

// LMDB's codes are those of the operating system where they are positive.
[[noreturn]] void throw_lmdb(int code, const std::string& what) {
  throw Error(code > 0 ? ErrorCode::io : ErrorCode::corrupt, what + ": " + mdb_strerror(code));
}

// LMDB aborts the process when this returns. Its frames hold nothing that would need unwinding.
void throw_assertion(MDB_env*, const char* message) { throw LmdbAssertion(message); }

/// What matters of the first bytes of LMDB's two meta pages (data version 1, 64 bit).
struct MetaPage {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t page_size;
  std::uint64_t last_page;
  std::uint64_t transaction;
};

MetaPage read_meta_page(int file, std::uint64_t offset) {
  std::byte bytes[152] = {};
  MetaPage page{};
  if (pread(file, bytes, sizeof bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(sizeof bytes)) return page;
  std::memcpy(&page.magic, bytes + 16, sizeof page.magic);
  std::memcpy(&page.version, bytes + 20, sizeof page.version);
  std::memcpy(&page.page_size, bytes + 40, sizeof page.page_size);
  std::memcpy(&page.last_page, bytes + 136, sizeof page.last_page);
  std::memcpy(&page.transaction, bytes + 144, sizeof page.transaction);
  return page;
}

struct stat stat_of(int file, const std::string& name) {
  struct stat status {};
  if (fstat(file, &status) != 0) throw Error(ErrorCode::io, name + ": " + std::generic_category().message(errno));
  return status;
}

// LMDB maps, and divides by, what its meta pages say before it could be asked for it, so they are looked at first: of a file
// that is cut short no page is touched.
void check_meta_pages(int file, const std::string& name) {
  constexpr std::uint32_t magic = 0xBEEFC0DE;
  constexpr std::uint32_t data_version = 1;
  const MetaPage first = read_meta_page(file, 0);
  const bool is_lmdb = first.magic == magic && first.version == data_version && std::has_single_bit(first.page_size) &&
                       first.page_size >= 512 && first.page_size <= 65536;
  if (!is_lmdb)
    throw Error(ErrorCode::corrupt, name + " is no dataset (no LMDB file); make one of a folder of images with `millrace pack`");
  const MetaPage second = read_meta_page(file, first.page_size);
  if (second.magic != magic || second.page_size != first.page_size)
    throw Error(ErrorCode::corrupt, name + " is damaged or cut short within its first two pages; copy or pack it again");
  // Taken behind the pages, for a file that a writer is making longer.
  const auto length = static_cast<std::uint64_t>(stat_of(file, name).st_size);
  const std::uint64_t last_page = second.transaction > first.transaction ? second.last_page : first.last_page;
  if (last_page >= UINT64_MAX / first.page_size || length < (last_page + 1) * first.page_size)
    throw Error(ErrorCode::corrupt, name + " is " + std::to_string(length) + " bytes long but its last page ends at " +
                                        std::to_string((last_page + 1) * first.page_size) +
                                        ": the file was cut short; copy or pack it again");
}

void check_kind(const struct stat& status, const std::filesystem::path& path, const std::string& name) {
  if (S_ISDIR(status.st_mode)) {
    std::error_code ignored;
    const bool lmdb_folder = std::filesystem::exists(path / "data.mdb", ignored);
    throw Error(ErrorCode::corrupt,
                lmdb_folder ? name +
                                  " is a folder with an LMDB environment of another program in it (data.mdb); a dataset is one "
                                  "file, as `millrace pack` makes it of a folder of images"
                            : name + " is a folder; a dataset is one file: make it with `millrace pack " + name + " OUT`");
  }
  if (!S_ISREG(status.st_mode)) throw Error(ErrorCode::corrupt, name + " is no dataset: it is neither file nor folder");
  if (status.st_size == 0)
    throw Error(ErrorCode::incomplete,
                name + " is empty: its packing was interrupted before anything was committed; pack it again");
}

FileDescriptor open_file(const std::filesystem::path& path, const std::string& name) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file) return file;
  const int reason = errno;
  if (reason == ENOENT || reason == ENOTDIR)
    throw Error(ErrorCode::not_found, name + " does not exist; make it with `millrace pack`");
  throw Error(ErrorCode::io, name + " cannot be opened: " + std::generic_category().message(reason));
}

/// The environments that are open in this process, by device and inode. LMDB allows no file to be opened twice.
struct Registry {
  Mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<const LmdbEnvironment>> open MILLRACE_GUARDED_BY(mutex);
};

Registry& registry() {
  static Registry registry;
  return registry;
}

}  // namespace

LmdbEnvironmentHandle create_lmdb_environment() {
  MDB_env* created = nullptr;
  if (const int code = mdb_env_create(&created)) throw_lmdb(code, "an LMDB environment cannot be made");
  LmdbEnvironmentHandle environment(created);
  mdb_env_set_maxdbs(created, 2);
  mdb_env_set_assert(created, throw_assertion);
  return environment;
}

LmdbTransaction begin_transaction(MDB_env* environment, unsigned flags) {
  MDB_txn* transaction = nullptr;
  if (const int code = mdb_txn_begin(environment, nullptr, flags, &transaction))
    throw_lmdb(code, "an LMDB transaction cannot be begun");
  return LmdbTransaction(transaction);
}

std::shared_ptr<const LmdbEnvironment> LmdbEnvironment::open(const std::filesystem::path& path) {
  const std::string name = path.string();
  const FileDescriptor file = open_file(path, name);
  const struct stat status = stat_of(file.get(), name);
  check_kind(status, path, name);

  Registry& all = registry();
  const MutexLock lock(all.mutex);
  std::erase_if(all.open, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const LmdbEnvironment>& entry = all.open[{status.st_dev, status.st_ino}];
  if (std::shared_ptr<const LmdbEnvironment> environment = entry.lock()) return environment;
  check_meta_pages(file.get(), name);
  std::shared_ptr<const LmdbEnvironment> environment(new LmdbEnvironment(path));
  // An incomplete one may be another the next time.
  if (environment->description().complete) entry = environment;
  return environment;
}

LmdbEnvironment::LmdbEnvironment(const std::filesystem::path& path) : environment_(create_lmdb_environment()) {
  const std::string name = path.string();
  const unsigned flags = MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS | MDB_NORDAHEAD;
  if (const int code = mdb_env_open(environment_.get(), path.c_str(), flags, 0)) throw_lmdb(code, name + " cannot be opened");
  try {
    open_databases(name);
  } catch (const LmdbAssertion& failed) {
    throw Error(ErrorCode::corrupt, name + " has damaged pages (LMDB: " + failed.what() + "); copy or pack it again");
  }
}

void LmdbEnvironment::open_databases(const std::string& name) {
  LmdbTransaction transaction = begin_transaction(environment_.get(), MDB_RDONLY);
  MDB_stat all{};
  mdb_env_stat(environment_.get(), &all);
  if (all.ms_entries == 0)
    throw Error(ErrorCode::incomplete,
                name + " is incomplete: its packing was interrupted before anything was committed; pack it again");

  const std::string no_dataset = name + " is an LMDB file, but no millrace dataset; make one with `millrace pack`";
  MDB_dbi meta = 0;
  if (mdb_dbi_open(transaction.get(), meta_database, 0, &meta) != 0 ||
      mdb_dbi_open(transaction.get(), records_database, 0, &records_) != 0)
    throw Error(ErrorCode::corrupt, no_dataset);
  unsigned flags = 0;
  MDB_stat records{};
  MDB_val key{description_key.size(), const_cast<char*>(description_key.data())};
  MDB_val value{};
  if (mdb_dbi_flags(transaction.get(), records_, &flags) != 0 || flags != MDB_INTEGERKEY ||
      mdb_stat(transaction.get(), records_, &records) != 0 || mdb_get(transaction.get(), meta, &key, &value) != 0)
    throw Error(ErrorCode::corrupt, no_dataset);

  description_ = parse_description({static_cast<const char*>(value.mv_data), value.mv_size}, name);
  if (description_.records != records.ms_entries)
    throw Error(ErrorCode::corrupt, name + " says it has " + std::to_string(description_.records) + " records, but " +
                                        std::to_string(records.ms_entries) + " are there: it is damaged; pack it again");
  // The handle of `records` outlives the transaction only by a commit.
  if (const int code = mdb_txn_commit(transaction.release())) throw_lmdb(code, name + " cannot be read");
}

LmdbReader::LmdbReader(std::shared_ptr<const LmdbEnvironment> environment)
    : environment_(std::move(environment)), transaction_(begin_transaction(environment_->environment_.get(), MDB_RDONLY)) {
  MDB_cursor* cursor = nullptr;
  if (const int code = mdb_cursor_open(transaction_.get(), environment_->records_, &cursor))
    throw_lmdb(code, "an LMDB cursor cannot be opened");
  cursor_.reset(cursor);
}

std::span<const std::byte> LmdbReader::find(std::uint64_t index) {
  static_assert(sizeof(std::size_t) == sizeof index, "LMDB's integer keys are of the machine's word");
  MDB_val key{sizeof index, &index};
  MDB_val value{};
  std::string reason;
  try {
    const int code = mdb_cursor_get(cursor_.get(), &key, &value, MDB_SET);
    if (code == 0) return {static_cast<const std::byte*>(value.mv_data), value.mv_size};
    reason = mdb_strerror(code);
  } catch (const LmdbAssertion& failed) {
    reason = failed.what();
  }
  throw Error(ErrorCode::bad_record, "the file's pages that lead to it are damaged: " + reason, "", index);
}

}  // namespace millrace
