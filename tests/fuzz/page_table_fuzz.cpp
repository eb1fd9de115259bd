// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the page table beside an intact LMDB, with a matching checksum: the dataset opens
// and is read, or ends in an `Error`.
#include <millrace/dataset.h>
#include <millrace/detail/page_table.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "fuzz/foreign_seeds.h"
#include "fuzz/fuzz_seeds.h"
#include "support/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace millrace;
using namespace millrace::testing;

void write_table(const fs::path& path, std::string bytes) {
  if (bytes.size() >= sizeof(XXH64_hash_t)) {
    const std::size_t end = bytes.size() - sizeof(XXH64_hash_t);
    const XXH64_hash_t checksum = XXH3_64bits(bytes.data(), end);
    std::memcpy(bytes.data() + end, &checksum, sizeof checksum);
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  write_seeds_if_asked(*argc, *argv, [](const fs::path& folder) {
    const TemporaryFolder made;
    write_pairs(made / "a.mdb", seed_images(40));
    save_page_table(*open_dataset(made / "a.mdb"));
    fs::copy(page_table_path(made / "a.mdb"), folder / "table");
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  const fs::path path = folder / "a.mdb";
  static const bool written = (write_pairs(path, seed_images(40)), true);
  if (!written) return 0;
  write_table(page_table_path(path), {reinterpret_cast<const char*>(data), size});
  try {
    const auto dataset = open_dataset(path, {.format = "images"});
    const auto reader = dataset->make_reader();
    const std::uint64_t records = std::min<std::uint64_t>(dataset->size(), 2000);
    for (std::uint64_t record = 0; record < records; ++record) {
      try {
        (void)reader->read(record);
      } catch (const Error& error) {
        expect_damage(error);
      }
    }
  } catch (const Error& error) {
    expect_damage(error);
  }
  return 0;
}
