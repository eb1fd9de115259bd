// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <lmdb.h>
#include <millrace/dataset.h>
#include <millrace/error.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/jpeg_samples.h"
#include "support/run_program.h"

namespace millrace::testing {

inline RunningProgram::Result millrace_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), MILLRACE_COMMAND);
  return run_program(arguments);
}

inline RunningProgram::Result pack(const std::filesystem::path& input,
                                   const std::filesystem::path& out,
                                   std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"pack", input.string(), out.string()});
  return millrace_command(more);
}

inline void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  write_bytes(path, std::as_bytes(std::span(text)));
}

inline Bytes jpeg(int width, int height) {
  return encode(noise(width, height, static_cast<unsigned>(width * 1000 + height)), {});
}

inline void write_jpeg(const std::filesystem::path& path, int width = 24, int height = 16) {
  write_bytes(path, jpeg(width, height));
}

/// Returns "path label" of each record.
inline std::vector<std::string> contents(const std::filesystem::path& dataset_path) {
  const auto dataset = open_dataset(dataset_path);
  const auto reader = dataset->make_reader();
  std::vector<std::string> lines;
  for (std::uint64_t index = 0; index < dataset->size(); ++index) {
    const Record record = reader->read(index);
    lines.push_back(std::string(record.text("path")) + " " +
                    std::to_string(record.integer("label")));
  }
  return lines;
}

/// Returns all fields of each record, concatenated.
inline std::vector<std::string> all_bytes(const std::filesystem::path& dataset_path) {
  const auto dataset = open_dataset(dataset_path);
  const auto reader = dataset->make_reader();
  std::vector<std::string> records;
  for (std::uint64_t index = 0; index < dataset->size(); ++index) {
    std::string& bytes = records.emplace_back();
    const Record record = reader->read(index);
    for (const RecordField& field : record.fields()) {
      bytes += std::string(field.name) + "=";
      bytes.append(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
    }
  }
  return records;
}

/// Code of the error when opening a dataset; nullopt if it opens.
inline std::optional<ErrorCode> refusal(const std::filesystem::path& dataset_path) {
  try {
    (void)open_dataset(dataset_path);
    return {};
  } catch (const Error& error) {
    return error.code();
  }
}

/// Description and values of a dataset file, complete or not, read by LMDB alone. The description
/// is null if nothing was committed.
struct RawFile {
  nlohmann::json description;
  /// The stored values in the order of their numbers, from 0.
  std::vector<std::string> values;
};

inline RawFile read_raw(const std::filesystem::path& path) {
  RawFile raw;
  if (!std::filesystem::exists(path) || std::filesystem::file_size(path) == 0) return raw;
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  EXPECT_EQ(mdb_env_create(&environment), 0);
  mdb_env_set_maxdbs(environment, 2);
  EXPECT_EQ(mdb_env_open(environment, path.c_str(), MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK, 0), 0)
      << path;
  EXPECT_EQ(mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction), 0);
  MDB_dbi meta = 0, records = 0;
  if (mdb_dbi_open(transaction, "meta", 0, &meta) == 0 &&
      mdb_dbi_open(transaction, "records", 0, &records) == 0) {
    MDB_val key{11, const_cast<char*>("description")}, value{};
    EXPECT_EQ(mdb_get(transaction, meta, &key, &value), 0);
    raw.description =
        nlohmann::json::parse(std::string(static_cast<const char*>(value.mv_data), value.mv_size));
    MDB_cursor* cursor = nullptr;
    EXPECT_EQ(mdb_cursor_open(transaction, records, &cursor), 0);
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
      std::uint64_t index = 0;  // a key may be unaligned
      std::memcpy(&index, key.mv_data, sizeof index);
      EXPECT_EQ(index, raw.values.size());
      raw.values.emplace_back(static_cast<const char*>(value.mv_data), value.mv_size);
    }
    mdb_cursor_close(cursor);
  }
  mdb_txn_abort(transaction);
  mdb_env_close(environment);
  return raw;
}

}  // namespace millrace::testing
