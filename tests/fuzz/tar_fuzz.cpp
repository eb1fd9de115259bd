// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a tar: it is read completely, with both ways of reading, or ends in an `Error`.
// After a first byte of 0xFF, which does not occur in a tar, any numbers as the stored index of an
// intact tar.
#include <millrace/dataset.h>
#include <millrace/detail/tar_members.h>
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_seeds.h"
#include "fuzz/read_all.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace millrace;
using namespace millrace::testing;

constexpr std::uint8_t index_mark = 0xFF;

void write_tar(const fs::path& path, bool extended) {
  TarFile tar;
  for (const char* key : {"a/0", "a/1", "b"}) {
    const std::string name = key;
    if (extended) {
      tar.add("././@LongLink", std::string(110, 'n') + name + ".jpg", 'L');
      tar.add("a", "12 size=700\n16 path=long/" + name.substr(0, 1) + "\n", 'x');
    }
    tar.add(name + ".jpg", std::string(700, 'i'));
    tar.add(name + ".json", R"({"label": 3})");
    tar.add(name + ".seg.png", "mask");
    tar.add("folder/", "", '5');
  }
  tar.write(path);
}

void write_bytes(const fs::path& path, const std::uint8_t* data, std::size_t size) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

/// Writes an index with the right identity and checksum; the input determines the samples.
void write_index(const fs::path& tar, const std::uint8_t* data, std::size_t size) {
  const fs::path path = tar.string() + ".members";
  static const std::string head = [&] {
    (void)save_tar_members(*open_dataset(tar));
    std::ifstream file(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }();
  constexpr std::size_t count_at = 56, head_bytes = 64;
  const std::uint64_t count = size / sizeof(std::uint64_t);
  std::string index = head.substr(0, head_bytes);
  std::memcpy(&index[count_at], &count, sizeof count);
  index.append(reinterpret_cast<const char*>(data), count * sizeof count);
  const std::uint64_t checksum = XXH3_64bits(index.data(), index.size());
  index.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  write_bytes(path, reinterpret_cast<const std::uint8_t*>(index.data()), index.size());
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  write_seeds_if_asked(*argc, *argv, [](const fs::path& folder) {
    write_tar(folder / "plain.tar", false);
    write_tar(folder / "extended.tar", true);
    const std::uint32_t samples[] = {0, 6, 6, 6, 14, 3};  // begin and count of each
    std::string index(1, static_cast<char>(index_mark));
    index.append(reinterpret_cast<const char*>(samples), sizeof samples);
    std::ofstream(folder / "index", std::ios::binary) << index;
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  const bool is_index = size > 0 && data[0] == index_mark;
  const fs::path path = folder / (is_index ? "sound.tar" : "a.tar");
  if (is_index) {
    if (!fs::exists(path)) write_tar(path, false);
    write_index(path, data + 1, size - 1);
  } else {
    write_bytes(path, data, size);
  }
  for (const bool map : {true, false}) {
    try {
      read_all(*open_dataset(path, {.map = map, .format = "tars"}));
    } catch (const Error& error) {
      expect_damage(error);
    }
  }
  return 0;
}
