// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/file_writer.h"

#include <millrace/detail/errno_text.h>
#include <millrace/detail/json_text.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <utility>

#include "dataset/packed/dataset_file.h"
#include "dataset/packed/dataset_lock.h"

namespace millrace {
namespace {

constexpr std::size_t first_map_bytes = std::size_t{64} << 20;

/// Code of `guarded` for a failed assertion. LMDB's own codes are positive or below -30,000.
constexpr int assertion_failed = -1;

template <typename Fields, typename Name = std::identity>
std::string names_of(const Fields& fields, Name name = {}) {
  std::string names;
  for (const auto& field : fields)
    names += (names.empty() ? "" : ", ") + std::string(std::invoke(name, field));
  return names;
}

}  // namespace

// LMDB's assertion handler. It returns only outside of `guarded`; LMDB then aborts the process.
void FileWriter::on_assertion(MDB_env* environment, const char* message) {
  auto& writer = *static_cast<FileWriter*>(mdb_env_get_userctx(environment));
  if (!writer.is_guarded_) return;
  std::snprintf(writer.assertion_.data(), writer.assertion_.size(), "%s", message);
  std::longjmp(writer.jump_, 1);
}

/// Runs LMDB calls and returns their code, or `assertion_failed`: then only the environment may be
/// closed. It leaks some pages. LMDB is left by `longjmp`, so `calls` and its callees must not hold
/// objects with a destructor.
template <typename Calls>
int FileWriter::guarded(const Calls& calls) {
  if (setjmp(jump_) != 0) {
    is_guarded_ = false;
    return assertion_failed;
  }
  is_guarded_ = true;
  const int code = calls();
  is_guarded_ = false;
  return code;
}

FileWriter::FileWriter(std::filesystem::path path, WriterOptions options,
                       std::vector<std::string> fields)
    : RecordWriter(std::move(path), std::move(options)) {
  description_.fields = std::move(fields);
  description_.source = options_.source;
  description_.created_by = this_version();
  description_.field_specs = options_.field_specs;
  if (options_.resume) lock_ = lock_existing(path_);
  if (lock_)
    take_up();
  else
    begin();
}

void FileWriter::begin() {
  lock_ = create_locked(path_);
  try {
    open_environment();
  } catch (...) {
    unlink(path_.c_str());
    throw;
  }
}

void FileWriter::take_up() {
  try {
    const std::shared_ptr<const DatasetFile> there = DatasetFile::open(path_);
    const Description& found = there->description();
    if (found.format != dataset_format)
      throw Error(ErrorCode::invalid_argument,
                  path_.string() + " cannot be resumed: it has the older dataset format " +
                      std::to_string(found.format) + "; write it again");
    check_same_pack(path_, {found.created_by, found.source},
                    {description_.created_by, description_.source});
    if (!description_.fields.empty() && found.fields != description_.fields)
      throw Error(ErrorCode::invalid_argument,
                  path_.string() + " cannot be resumed: its records have other fields");
    // LMDB does not check the pages of the existing file, so they are checked here.
    if (!found.complete) there->check();
    description_ = found;
    committed_ = found.records;
  } catch (const Error& error) {
    // A file whose writer was interrupted before the first commit is written again from the start.
    if (error.code() != ErrorCode::incomplete) throw;
    if (retry_interrupted([&] { return ftruncate(lock_.get(), 0); }) != 0)
      throw Error(ErrorCode::io, path_.string() + " cannot be emptied: " + errno_text(errno));
  }
  if (!description_.complete) return open_environment();
  // The writer may have been killed between its last commit and the sync that follows.
  if (retry_interrupted([&] { return fsync(lock_.get()); }) != 0)
    throw Error(ErrorCode::io,
                path_.string() + " cannot be synced to storage: " + errno_text(errno));
  lock_ = FileDescriptor();
}

void FileWriter::open_environment() {
  const auto check = [&](int code) {
    if (code != 0)
      throw Error(ErrorCode::io,
                  path_.string() + " cannot be opened for writing: " + reason_of(code) +
                      (code == ENODEV ? "; LMDB needs a file system with shared maps: write to "
                                        "another one and copy the dataset"
                                      : ""));
  };
  // LMDB retries only some of the system calls that a signal interrupts.
  int opened = EINTR;
  while (opened == EINTR) {
    MDB_env* created = nullptr;
    check(mdb_env_create(&created));
    environment_.reset(created);
    mdb_env_set_maxdbs(created, 2);
    mdb_env_set_userctx(created, this);
    mdb_env_set_assert(created, on_assertion);
    mdb_env_set_mapsize(created, first_map_bytes);
    // `lock_` replaces LMDB's lock file. Each commit syncs its records before it writes the meta
    // page that refers to them. The next commit syncs that page.
    opened = guarded([&] {
      return mdb_env_open(created, path_.c_str(), MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOMETASYNC, 0666);
    });
  }
  check(opened);
  // After this commit, readers see the file as an incomplete dataset.
  if (committed_ > 0) return;
  check(try_commit());
  // Throws for LMDB 1.0's development versions: they write its data version but report 0.9.
  (void)LmdbFile::probe(path_);
}

void FileWriter::check_fields(std::span<const RecordField> fields) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::invalid_argument,
                "record " + std::to_string(size()) + " of " + path_.string() + " " + what);
  };
  if (fields.empty()) refuse("has no fields");
  if (description_.fields.empty()) {
    std::vector<std::string> names;
    for (const RecordField& field : fields) {
      if (field.name.empty()) refuse("has a field without a name");
      if (std::ranges::find(names, field.name) != names.end())
        refuse("has two fields named \"" + std::string(field.name) + "\"");
      names.emplace_back(field.name);
    }
    for (const FieldSpec& spec : description_.field_specs)
      if (std::ranges::find(names, spec.name) == names.end())
        refuse("has no field \"" + spec.name + "\", which WriterOptions::field_specs names");
    description_.fields = std::move(names);
  }
  if (!std::ranges::equal(fields, description_.fields, {}, &RecordField::name))
    refuse("has the fields " + names_of(fields, &RecordField::name) +
           "; the records before it have " + cut(names_of(description_.fields)));
  if (const std::size_t bytes = encoded_size(fields); bytes > max_record_bytes)
    refuse("has " + std::to_string(bytes) + " bytes; a record has less than 4 GiB");
}

void FileWriter::append(std::span<const RecordField> fields) {
  check_open();
  check_fields(fields);
  const std::size_t begin = batch_.size();
  const std::uint64_t checksum = encode_record(fields, batch_);
  description_.fingerprint = fingerprint_with(description_.fingerprint, checksum);
  description_.bytes += batch_.size() - begin;
  ++description_.items;
  batch_ends_.push_back(batch_.size());
  if (batch_.size() >= options_.commit_bytes) commit();
}

void FileWriter::leave_out(std::string reason) {
  check_open();
  description_.left_out.push_back({description_.items++, std::move(reason)});
}

void FileWriter::set_classes(std::vector<std::string> names) {
  check_open();
  description_.classes = std::move(names);
}

void FileWriter::finish() {
  if (failure_) throw *failure_;
  if (description_.complete) return;
  description_.complete = true;
  commit();
  int code = mdb_env_sync(environment_.get(), 1);
  while (code == EINTR) code = mdb_env_sync(environment_.get(), 1);
  if (code != 0) {
    description_.complete = false;
    fail(path_.string() + " cannot be synced to storage: " + mdb_strerror(code) +
         "; write it again");
  }
  environment_.reset();
  lock_ = FileDescriptor();
}

void FileWriter::commit() {
  int code = try_commit();
  for (; code == MDB_MAP_FULL; code = try_commit()) grow_map();
  if (code != 0) fail_to_write(reason_of(code));
  committed_ += batch_ends_.size();
  batch_.clear();
  batch_ends_.clear();
}

int FileWriter::try_commit() {
  description_.records = size();
  std::string json = to_json(description_);
  int code = EINTR;
  while (code == EINTR) {
    MDB_txn* transaction = nullptr;
    code = guarded([&] { return write(transaction, json); });
    // After a failed assertion the transaction may refer to stack frames of LMDB that no longer
    // exist.
    if (transaction != nullptr && code != assertion_failed) mdb_txn_abort(transaction);
  }
  return code;
}

/// Writes the pending records and the description in one transaction. If it fails while
/// `transaction` is set, the caller must abort that transaction.
int FileWriter::write(MDB_txn*& transaction, std::string& json) {
  if (const int code = mdb_txn_begin(environment_.get(), nullptr, 0, &transaction)) return code;
  if (const int code = put_records(transaction)) return code;
  if (const int code = put_description(transaction, json)) return code;
  return mdb_txn_commit(std::exchange(transaction, nullptr));
}

int FileWriter::put_records(MDB_txn* transaction) {
  MDB_dbi records = 0;
  if (const int code =
          mdb_dbi_open(transaction, records_database, MDB_CREATE | MDB_INTEGERKEY, &records))
    return code;
  std::size_t begin = 0;
  for (std::size_t record = 0; record < batch_ends_.size(); ++record) {
    std::uint64_t index = committed_ + record;
    MDB_val key{sizeof index, &index};
    MDB_val value{batch_ends_[record] - begin, batch_.data() + begin};
    if (const int code = mdb_put(transaction, records, &key, &value, MDB_APPEND)) return code;
    begin = batch_ends_[record];
  }
  return 0;
}

int FileWriter::put_description(MDB_txn* transaction, std::string& json) {
  MDB_dbi meta = 0;
  if (const int code = mdb_dbi_open(transaction, meta_database, MDB_CREATE, &meta)) return code;
  MDB_val key{description_key.size(), const_cast<char*>(description_key.data())};
  MDB_val value{json.size(), json.data()};
  return mdb_put(transaction, meta, &key, &value, 0);
}

void FileWriter::grow_map() {
  MDB_envinfo info{};
  mdb_env_info(environment_.get(), &info);
  if (const int code = mdb_env_set_mapsize(environment_.get(), info.me_mapsize * 2))
    fail_to_write(mdb_strerror(code));
}

std::string FileWriter::reason_of(int code) const {
  if (code == assertion_failed) return assertion_.data();
  // LMDB also returns EIO for a short write.
  if (code != EIO) return mdb_strerror(code);
  struct statvfs room {};
  const bool full = statvfs(path_.c_str(), &room) == 0 &&
                    std::size_t{room.f_bavail} * room.f_frsize < batch_.size();
  return full ? "No space left on device, the disk is full"
              : std::string(mdb_strerror(code)) + ", or the disk is full";
}

void FileWriter::fail_to_write(const std::string& reason) {
  description_.complete = false;
  fail(path_.string() + " cannot be written: " + reason + ". " + std::to_string(committed_) +
       " records are committed and stay in it, but it is incomplete: make room and resume it "
       "(`millrace pack --resume`)");
}

}  // namespace millrace
