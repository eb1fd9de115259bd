// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/dataset_writer.h>
#include <millrace/error.h>
#include <millrace/random.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace millrace::testing {

/// Page size of LMDB, which is the machine's.
inline const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// Returns the error that a call throws.
template <typename Function>
Error thrown_by(Function&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::internal, "nothing was thrown");
}

/// Bytes of record `index`: random, with a length between 0 and 20000 that differs from record to
/// record.
inline std::vector<std::byte> stored_bytes(std::uint64_t index) {
  Random random(99, index);
  std::vector<std::byte> bytes(index == 0 ? 0 : random.below(index % 3 == 0 ? 200 : 20000));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

inline std::string stored_path(std::uint64_t index) {
  return "folder/file " + std::to_string(index) + ".bin";
}

inline void append_record(DatasetWriter& writer, std::uint64_t index) {
  const std::vector<std::byte> bytes = stored_bytes(index);
  const std::string path = stored_path(index);
  const std::int64_t label = static_cast<std::int64_t>(index) - 5;
  const RecordField fields[] = {{"image", bytes},
                                {"label", std::as_bytes(std::span(&label, 1))},
                                {"path", std::as_bytes(std::span(path))}};
  writer.append(fields);
}

inline void expect_record(const Record& record, std::uint64_t index) {
  ASSERT_EQ(record.index(), index);
  ASSERT_EQ(record.fields().size(), 3u);
  const std::vector<std::byte> bytes = stored_bytes(index);
  ASSERT_TRUE(std::ranges::equal(record["image"], bytes)) << "record " << index;
  ASSERT_EQ(record.integer("label"), static_cast<std::int64_t>(index) - 5);
  ASSERT_EQ(record.text("path"), stored_path(index));
}

inline void write_dataset(const std::filesystem::path& path, std::uint64_t records) {
  DatasetWriter writer(path, {.overwrite = true});
  for (std::uint64_t index = 0; index < records; ++index) append_record(writer, index);
  writer.set_classes({"cat", "dog"});
  writer.finish();
}

inline std::string file_contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::filesystem::path& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
}

/// A mapping of a file in this process: the addresses [begin, end).
struct Mapping {
  std::uintptr_t begin;
  std::uintptr_t end;
};
inline std::vector<Mapping> mappings_of(const std::filesystem::path& path) {
  std::vector<Mapping> mappings;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with(" " + path.string())) continue;
    std::size_t dash = 0;
    const std::uintptr_t begin = std::stoull(line, &dash, 16);
    mappings.push_back({begin, std::stoull(line.substr(dash + 1), nullptr, 16)});
  }
  return mappings;
}

}  // namespace millrace::testing
