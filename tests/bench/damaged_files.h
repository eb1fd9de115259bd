// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lmdb.h>
#include <millrace/dataset_writer.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/pictures.h"

namespace millrace::testing {

inline std::string contents_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_contents(const std::filesystem::path& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
}

/// Writes a dataset of images like `millrace pack` does, with keys "class/0.jpg" up and two
/// classes.
inline void write_images(const std::filesystem::path& path, const std::vector<Bytes>& images,
                         bool wrong_size_of_last = false) {
  DatasetWriter writer(path, {.overwrite = true});
  for (std::size_t index = 0; index < images.size(); ++index) {
    const auto label = static_cast<std::int64_t>(index % 2);
    const std::string key =
        std::string(label == 0 ? "cat/" : "dog/") + std::to_string(index) + ".jpg";
    const std::int64_t side = wrong_size_of_last && index + 1 == images.size() ? 7 : 40;
    const RecordField fields[] = {{"image", images[index]},
                                  {"label", std::as_bytes(std::span(&label, 1))},
                                  {"path", std::as_bytes(std::span(key))},
                                  {"width", std::as_bytes(std::span(&side, 1))},
                                  {"height", std::as_bytes(std::span(&side, 1))}};
    writer.append(fields);
  }
  writer.set_classes({"cat", "dog"});
  writer.finish();
}

/// Makes different images of 40 x 40 pixels.
inline std::vector<Bytes> images_of(std::size_t count) { return pictures(count, 40, 40); }

/// Offset of `bytes` in a file's contents.
inline std::size_t place_of(const std::string& contents, const Bytes& bytes) {
  const std::size_t at =
      contents.find(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  if (at == std::string::npos) throw std::runtime_error("the image is not in the file");
  return at;
}

/// Offsets of the pages with these LMDB flags (1 = branch, 2 = leaf, 4 = first page of a large
/// value).
inline std::vector<std::size_t> pages_with(const std::string& contents, std::uint16_t flags) {
  std::uint32_t page_bytes = 0;
  std::memcpy(&page_bytes, &contents[40], sizeof page_bytes);
  std::vector<std::size_t> pages;
  for (std::size_t page = 2 * std::size_t{page_bytes}; page < contents.size(); page += page_bytes) {
    std::uint64_t number = 0;
    std::uint16_t found = 0;
    std::memcpy(&number, &contents[page], sizeof number);
    std::memcpy(&found, &contents[page + 10], sizeof found);
    if (number == page / page_bytes && found == flags) pages.push_back(page);
  }
  return pages;
}

/// Writes an LMDB file like another program's.
inline void write_foreign_lmdb(const std::filesystem::path& path) {
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi database = 0;
  char word[] = "word";
  MDB_val item{sizeof word, word};
  mdb_env_create(&environment);
  const bool written =
      mdb_env_open(environment, path.c_str(), MDB_NOSUBDIR | MDB_NOLOCK, 0644) == 0 &&
      mdb_txn_begin(environment, nullptr, 0, &transaction) == 0 &&
      mdb_dbi_open(transaction, nullptr, 0, &database) == 0 &&
      mdb_put(transaction, database, &item, &item, 0) == 0 && mdb_txn_commit(transaction) == 0;
  mdb_env_close(environment);
  if (!written) throw std::runtime_error("cannot write an LMDB file");
}

}  // namespace millrace::testing
