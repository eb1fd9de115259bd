// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as another program's LMDB, asked of each flavour: it is read in full or ends in an
// `Error`.
#include <millrace/dataset.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "fuzz/foreign_seeds.h"
#include "fuzz/fuzz_seeds.h"
#include "support/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace millrace;
using namespace millrace::testing;

constexpr std::uint64_t most_records = 2000;

void read_all(const fs::path& path, const OpenOptions& options) {
  const auto dataset = open_dataset(path, options);
  const auto reader = dataset->make_reader();
  std::vector<std::uint64_t> indices;
  unsigned sum = 0;
  for (std::uint64_t index = 0; index < std::min(dataset->size(), most_records); ++index) {
    indices.push_back(index);
    (void)dataset->key(index);
    try {
      for (const RecordField& field : reader->read(index).fields())
        for (const std::byte byte : field.bytes) sum += std::to_integer<unsigned>(byte);
    } catch (const Error& error) {
      expect_damage(error);
    }
  }
  dataset->prefetch(indices);
  static volatile unsigned seen = 0;
  seen = seen + sum;  // so that the bytes are read
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  write_seeds_if_asked(*argc, *argv, write_foreign_seeds);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  const fs::path path = folder / "a.mdb";
  // Another file each time, since one that is open is known by its inode.
  fs::remove(path);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  for (const char* format :
       {"", "images", "ocr", "caffe-datum", "caffe2-tensors", "tuples", "databases"}) {
    try {
      read_all(path, {.map = size % 2 == 0, .format = format});
    } catch (const Error& error) {
      expect_damage(error);
    }
  }
  return 0;
}
