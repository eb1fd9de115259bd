// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset_writer.h>
#include <millrace/error.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "dataset_lock.h"
#include "lmdb_environment.h"
#include "record_format.h"

namespace millrace {
namespace {

struct HashDeleter {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

class DatasetWriter::Impl {
 public:
  Impl(std::filesystem::path path, WriterOptions options);

  void append(std::span<const RecordField> fields);
  void set_classes(std::vector<std::string> names);
  void finish();
  std::uint64_t size() const { return committed_ + batch_ends_.size(); }
  std::uint64_t committed() const { return committed_; }

 private:
  void open_environment();
  void check_open() const;
  void check_fields(std::span<const RecordField> fields);
  void commit();
  int try_commit();
  int put_records(MDB_txn* transaction);
  int put_description(MDB_txn* transaction);
  void grow_map();
  [[noreturn]] void fail(const std::string& reason);

  std::filesystem::path path_;
  WriterOptions options_;
  FileDescriptor lock_;
  LmdbEnvironmentHandle environment_;
  std::size_t map_bytes_ = std::size_t{64} << 20;

  Description description_;
  std::unique_ptr<XXH3_state_t, HashDeleter> fingerprint_{XXH3_createState()};
  std::uint64_t committed_ = 0;
  /// Encoded records that wait for the next commit, and where each of them ends.
  std::vector<std::byte> batch_;
  std::vector<std::size_t> batch_ends_;
  std::optional<Error> failure_;
};

DatasetWriter::Impl::Impl(std::filesystem::path path, WriterOptions options)
    : path_(std::move(path)), options_(options), lock_(create_locked(path_, options.overwrite)) {
  description_.created_by = std::string("millrace ") + MILLRACE_VERSION;
  XXH3_64bits_reset(fingerprint_.get());
  try {
    open_environment();
    // Readers know the file as incomplete from here on.
    if (const int code = try_commit()) throw Error(ErrorCode::io, path_.string() + " cannot be created: " + mdb_strerror(code));
  } catch (...) {
    unlink(path_.c_str());
    throw;
  }
}

void DatasetWriter::Impl::open_environment() {
  environment_ = create_lmdb_environment();
  mdb_env_set_mapsize(environment_.get(), map_bytes_);
  // LMDB's lock file is replaced by `lock_`. Each commit's records are synced before the meta page that leads to them is
  // written; that page is synced with the next commit.
  const unsigned flags = MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOMETASYNC;
  if (const int code = mdb_env_open(environment_.get(), path_.c_str(), flags, 0666))
    throw Error(ErrorCode::io, path_.string() + " cannot be created: " + mdb_strerror(code));
}

void DatasetWriter::Impl::check_open() const {
  if (failure_) throw *failure_;
  if (description_.complete) throw Error(ErrorCode::invalid_argument, path_.string() + " is finished; nothing can be added");
}

void DatasetWriter::Impl::check_fields(std::span<const RecordField> fields) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::invalid_argument, "record " + std::to_string(size()) + " of " + path_.string() + " " + what);
  };
  if (fields.empty()) refuse("has no fields");
  if (size() == 0) {
    std::vector<std::string> names;
    for (const RecordField& field : fields) {
      if (field.name.empty()) refuse("has a field without a name");
      if (std::ranges::find(names, field.name) != names.end()) refuse("has two fields named \"" + std::string(field.name) + "\"");
      names.emplace_back(field.name);
    }
    description_.fields = std::move(names);
  }
  if (!std::ranges::equal(fields, description_.fields, {}, &RecordField::name)) {
    std::string given, expected;
    for (const RecordField& field : fields) given += (given.empty() ? "" : ", ") + std::string(field.name);
    for (const std::string& name : description_.fields) expected += (expected.empty() ? "" : ", ") + name;
    refuse("has the fields " + given + "; the records before it have " + expected);
  }
  if (const std::size_t bytes = encoded_size(fields); bytes > max_record_bytes)
    refuse("has " + std::to_string(bytes) + " bytes; a record has less than 4 GiB");
}

void DatasetWriter::Impl::append(std::span<const RecordField> fields) {
  check_open();
  check_fields(fields);
  const std::uint64_t checksum = encode_record(fields, batch_);
  XXH3_64bits_update(fingerprint_.get(), &checksum, sizeof checksum);
  batch_ends_.push_back(batch_.size());
  if (batch_.size() >= options_.commit_bytes) commit();
}

void DatasetWriter::Impl::set_classes(std::vector<std::string> names) {
  check_open();
  description_.classes = std::move(names);
}

void DatasetWriter::Impl::finish() {
  if (failure_) throw *failure_;
  if (description_.complete) return;
  description_.complete = true;
  commit();
  if (const int code = mdb_env_sync(environment_.get(), 1)) {
    failure_ = Error(ErrorCode::io, path_.string() + " cannot be synced to storage: " + mdb_strerror(code) + "; write it again");
    throw *failure_;
  }
  environment_.reset();
  lock_ = FileDescriptor();
}

void DatasetWriter::Impl::commit() {
  try {
    int code = try_commit();
    for (; code == MDB_MAP_FULL; code = try_commit()) grow_map();
    // LMDB has this code for a write that came back short, too.
    if (code != 0) fail(std::string(mdb_strerror(code)) + (code == EIO ? ", or the disk is full" : ""));
  } catch (const LmdbAssertion& failed) {
    fail(failed.what());
  }
  committed_ += batch_ends_.size();
  batch_.clear();
  batch_ends_.clear();
}

int DatasetWriter::Impl::try_commit() {
  MDB_txn* begun = nullptr;
  if (const int code = mdb_txn_begin(environment_.get(), nullptr, 0, &begun)) return code;
  LmdbTransaction transaction(begun);
  if (const int code = put_records(transaction.get())) return code;
  if (const int code = put_description(transaction.get())) return code;
  return mdb_txn_commit(transaction.release());
}

int DatasetWriter::Impl::put_records(MDB_txn* transaction) {
  MDB_dbi records = 0;
  if (const int code = mdb_dbi_open(transaction, records_database, MDB_CREATE | MDB_INTEGERKEY, &records)) return code;
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

int DatasetWriter::Impl::put_description(MDB_txn* transaction) {
  MDB_dbi meta = 0;
  if (const int code = mdb_dbi_open(transaction, meta_database, MDB_CREATE, &meta)) return code;
  description_.records = size();
  description_.fingerprint = XXH3_64bits_digest(fingerprint_.get());
  std::string json = to_json(description_);
  MDB_val key{description_key.size(), const_cast<char*>(description_key.data())};
  MDB_val value{json.size(), json.data()};
  return mdb_put(transaction, meta, &key, &value, 0);
}

void DatasetWriter::Impl::grow_map() {
  map_bytes_ *= 2;
  if (const int code = mdb_env_set_mapsize(environment_.get(), map_bytes_)) fail(mdb_strerror(code));
}

void DatasetWriter::Impl::fail(const std::string& reason) {
  failure_ =
      Error(ErrorCode::io, path_.string() + " cannot be written: " + reason + ". " + std::to_string(committed_) +
                               " records are committed and stay in it, but it is incomplete: make room and write it again");
  throw *failure_;
}

DatasetWriter::DatasetWriter(std::filesystem::path path, WriterOptions options)
    : impl_(std::make_unique<Impl>(std::move(path), options)) {}
DatasetWriter::~DatasetWriter() = default;
DatasetWriter::DatasetWriter(DatasetWriter&&) noexcept = default;
DatasetWriter& DatasetWriter::operator=(DatasetWriter&&) noexcept = default;

namespace {

template <typename Impl>
Impl& not_moved_from(const std::unique_ptr<Impl>& impl) {
  if (!impl) throw Error(ErrorCode::invalid_argument, "this DatasetWriter was moved from; use the one it was moved to");
  return *impl;
}

}  // namespace

void DatasetWriter::append(std::span<const RecordField> fields) { not_moved_from(impl_).append(fields); }
void DatasetWriter::set_classes(std::vector<std::string> names) { not_moved_from(impl_).set_classes(std::move(names)); }
void DatasetWriter::finish() { not_moved_from(impl_).finish(); }
std::uint64_t DatasetWriter::size() const { return impl_ ? impl_->size() : 0; }
std::uint64_t DatasetWriter::committed() const { return impl_ ? impl_->committed() : 0; }

}  // namespace millrace
