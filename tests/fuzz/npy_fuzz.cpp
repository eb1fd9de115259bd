// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a .npy file, as offsets into another one, or as a description of arrays beside
// intact files. The dataset opens and is read, or ends in an `Error`. The first byte selects the
// case.
#include <millrace/dataset.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "fuzz/fuzz_seeds.h"
#include "loader/dataset/array/npy_files.h"
#include "support/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace millrace;
using namespace millrace::testing;

constexpr const char* lists = R"({"format": "arrays", "fields": {
  "words": {"npy": "values.npy", "offsets": "offsets.npy", "max_length": 7},
  "again": {"npy": "values.npy", "offsets": "offsets.npy", "as": "int64"}}})";

constexpr const char* descriptions[] = {
    lists,
    R"({"format": "arrays", "fields": {"t": {"npy": ["values.npy", "values.npy"],
        "window": {"length": 3, "stride": 2}}}})",
    R"({"format": "arrays", "classes": ["cat", "dog"], "raw": "raw.bin", "header_bytes": 4,
        "record_bytes": 13, "fields": {"label": {"dtype": "uint8", "as": "int64"},
        "image": {"offset": 1, "dtype": "uint8", "shape": [3, 2, 2], "image": "chw"}}})",
    R"({"format": "arrays", "fields": {"image": {"raw": ["raw.bin", "raw.bin"], "header_bytes": 5,
        "dtype": "uint8", "shape": [5, 5], "image": "grey"}}})"};

void write_sound_files(const fs::path& folder) {
  std::vector<std::int32_t> values(40);
  std::iota(values.begin(), values.end(), 0);
  write_npy(folder / "values.npy", "<i4", values);
  write_npy(folder / "offsets.npy", "<i8", std::vector<std::int64_t>{0, 3, 3, 40});
  write_bytes(folder / "raw.bin", std::string(4 + 13 * 2, 'r'));
}

void read_all(const fs::path& path, bool mapped) {
  constexpr std::uint64_t max_records = 100;
  try {
    const auto dataset = open_dataset(path, {.map = mapped});
    const auto reader = dataset->make_reader();
    (void)dataset->field_specs();
    std::uint64_t sum = 0;
    for (std::uint64_t number = 0; number < std::min(dataset->size(), max_records); ++number) {
      // Alternates between both ends.
      const std::uint64_t index = number % 2 == 0 ? number / 2 : dataset->size() - 1 - number / 2;
      dataset->prefetch({&index, 1});
      try {
        const Record record = reader->read(index);
        for (const RecordField& field : record.fields())
          for (const std::byte byte : field.bytes) sum += std::to_integer<unsigned>(byte);
      } catch (const Error& error) {
        expect_damage(error);
      }
    }
    static volatile std::uint64_t seen = 0;
    seen = seen + sum;
  } catch (const Error& error) {
    expect_damage(error);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  write_seeds_if_asked(*argc, *argv, [](const fs::path& folder) {
    int number = 0;
    for (const char version : {'\1', '\2', '\3'})
      for (const char* dictionary :
           {"{'descr': '<f2', 'fortran_order': False, 'shape': (3, 4), }",
            "{'descr': '|b1', 'fortran_order': False, 'shape': (12L,), }",
            "{'descr': [('x', '<i4')], 'fortran_order': True, 'shape': (), }"})
        write_bytes(folder / ("npy" + std::to_string(number++)),
                    '\0' + npy_header(dictionary, version) + std::string(24, 'x'));
    for (const char* description : descriptions)
      write_bytes(folder / ("description" + std::to_string(number++)),
                  '\1' + std::string(description));
    write_bytes(folder / "offsets",
                '\2' + npy("<i4", "(4,)", bytes_of(std::vector<std::int32_t>{0, 3, 3, 40})));
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  static const bool written = (write_sound_files(folder.path()), true);
  if (!written || size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const fs::path path = folder / (data[0] % 3 == 0 ? "any.npy" : "any.json");
  if (data[0] % 3 == 2) {
    write_bytes(folder / "offsets.npy", bytes);
    write_bytes(path, lists);
  } else {
    write_bytes(path, bytes);
  }
  for (const bool mapped : {true, false}) read_all(path, mapped);
  if (data[0] % 3 == 2) write_sound_files(folder.path());
  return 0;
}
