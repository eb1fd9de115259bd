// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a list of shards, beside two intact ones: it opens and is read completely, or ends
// in an `Error`.
#include <millrace/dataset.h>
#include <millrace/dataset_writer.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "fuzz/fuzz_seeds.h"
#include "support/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace millrace;
using namespace millrace::testing;

/// Writes the list a.lmdb of two shards.
void write_shards(const fs::path& folder, bool finish) {
  DatasetWriter writer(folder / "a.lmdb", {.shards = 2, .source_items = 6});
  for (std::uint64_t number = 0; number < 6; ++number) {
    const std::string name = std::to_string(number) + ".jpg";
    const RecordField fields[] = {{"path", std::as_bytes(std::span(name))}};
    writer.append(fields);
  }
  writer.set_classes({"cat", "dog"});
  if (finish) writer.finish();
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  write_seeds_if_asked(*argc, *argv, [](const fs::path& folder) {
    for (const bool finish : {false, true}) {
      const TemporaryFolder shards;
      write_shards(shards.path(), finish);
      fs::copy(shards / "a.lmdb", folder / (finish ? "complete" : "incomplete"));
    }
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  static const bool written = (write_shards(folder.path(), true), true);
  const fs::path path = folder / "a.lmdb";
  write_text(path, {reinterpret_cast<const char*>(data), size});
  if (!written) return 0;
  try {
    const auto dataset = open_dataset(path);
    const auto reader = dataset->make_reader();
    for (std::uint64_t record = 0; record < dataset->size(); ++record)
      (void)reader->read(record).text("path");
  } catch (const Error& error) {
    expect_damage(error);
  }
  return 0;
}
