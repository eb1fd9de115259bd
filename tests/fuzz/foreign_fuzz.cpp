// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as another program's LMDB, opened with each schema: it is read completely or ends in an
// `Error`.
#include <millrace/dataset.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "fuzz/foreign_seeds.h"
#include "fuzz/fuzz_seeds.h"
#include "fuzz/read_all.h"
#include "support/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace millrace;
using namespace millrace::testing;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  write_seeds_if_asked(*argc, *argv, write_foreign_seeds);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  const fs::path path = folder / "a.mdb";
  // A new file each time, because an open file is identified by its inode.
  fs::remove(path);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  for (const char* format :
       {"", "images", "ocr", "caffe-datum", "caffe2-tensors", "tuples", "databases"}) {
    try {
      read_all(*open_dataset(path, {.map = size % 2 == 0, .format = format}), 2000);
    } catch (const Error& error) {
      expect_damage(error);
    }
  }
  return 0;
}
