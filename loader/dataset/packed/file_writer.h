// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lmdb.h>

#include <array>
#include <csetjmp>
#include <memory>

#include "dataset/packed/record_format.h"
#include "dataset/packed/record_writer.h"

namespace millrace {

struct LmdbDeleter {
  void operator()(MDB_env* environment) const { mdb_env_close(environment); }
};

/// Writes one dataset file with LMDB; datasets are read with `LmdbPages`. Ignores the options about
/// shards and `overwrite`.
class FileWriter final : public RecordWriter {
 public:
  /// `fields`: the field names that all records must have. If it is empty, the first record
  /// determines them.
  FileWriter(std::filesystem::path path, WriterOptions options,
             std::vector<std::string> fields = {});

  void append(std::span<const RecordField> fields) override;
  void leave_out(std::string reason) override;
  void set_classes(std::vector<std::string> names) override;
  void finish() override;
  bool complete() const override { return description_.complete; }
  std::uint64_t size() const override { return committed_ + batch_ends_.size(); }
  std::uint64_t committed() const override { return committed_; }
  std::uint64_t items() const override { return description_.items; }
  std::vector<LeftOutItem> left_out() const override { return description_.left_out; }

  /// The description that the next commit stores, except for the number of records.
  const Description& description() const { return description_; }

 private:
  void take_up();
  void begin();
  void open_environment();
  static void on_assertion(MDB_env* environment, const char* message);
  template <typename Calls>
  int guarded(const Calls& calls);
  void check_fields(std::span<const RecordField> fields);
  void commit();
  int try_commit();
  int write(MDB_txn*& transaction, std::string& json);
  int put_records(MDB_txn* transaction);
  int put_description(MDB_txn* transaction, std::string& json);
  void grow_map();
  std::string reason_of(int code) const;
  [[noreturn]] void fail_to_write(const std::string& reason);

  std::unique_ptr<MDB_env, LmdbDeleter> environment_;
  /// State at the entry of `guarded`, for longjmp; valid while `is_guarded_`.
  std::jmp_buf jump_{};
  bool is_guarded_ = false;
  /// Message of a failed assertion in LMDB, which means a damaged page.
  std::array<char, 400> assertion_{};
  Description description_;
  std::uint64_t committed_ = 0;
  /// Encoded records that wait for the next commit, and the end of each in `batch_`.
  std::vector<std::byte> batch_;
  std::vector<std::size_t> batch_ends_;
};

}  // namespace millrace
