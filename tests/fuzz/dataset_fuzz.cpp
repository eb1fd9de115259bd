// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a dataset file: it is read completely or ends in an `Error`. If a resumed writer
// accepts a file, it continues it, and the result must be intact. libFuzzer reports uncaught
// exceptions.
#include <millrace/dataset.h>
#include <millrace/dataset_writer.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "fuzz/fuzz_seeds.h"
#include "fuzz/read_all.h"
#include "support/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace millrace;
using namespace millrace::testing;

/// Writes a few records, small and large ones, in separate commits.
void write_dataset(const fs::path& path, bool finish, std::size_t bytes) {
  DatasetWriter writer(path, {.commit_bytes = 1});
  for (std::uint64_t number = 0; number < 4; ++number) {
    const std::vector<std::byte> image(number % 2 == 0 ? 40 : bytes, std::byte{7});
    const std::string name = std::to_string(number) + ".jpg";
    const RecordField fields[] = {{"image", image}, {"path", std::as_bytes(std::span(name))}};
    writer.append(fields);
    writer.leave_out("no image");
  }
  if (finish) writer.finish();
}

/// Continues after the existing records, as far as possible.
void write_on(const fs::path& path) {
  const std::vector<std::byte> bytes(5000, std::byte{9});
  const RecordField fields[] = {{"image", bytes}, {"path", bytes}};
  try {
    DatasetWriter writer(path, {.resume = true, .commit_bytes = 1});
    if (writer.complete()) return;
    for (int record = 0; record < 3; ++record) writer.append(fields);
    writer.finish();
  } catch (const Error& error) {
    // Another version or source, or other fields.
    if (error.code() != ErrorCode::invalid_argument) expect_damage(error);
    return;
  }
  const auto dataset = open_dataset(path);
  const auto reader = dataset->make_reader();
  for (std::uint64_t index = 0; index < dataset->size(); ++index) (void)reader->read(index);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  write_seeds_if_asked(*argc, *argv, [](const fs::path& folder) {
    for (const bool finish : {false, true})
      for (const unsigned bytes : {300U, 5000U})
        write_dataset(folder / ((finish ? "complete" : "incomplete") + std::to_string(bytes)),
                      finish, bytes);
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  const fs::path path = folder / "a.lmdb";
  // A new file each time, because an open file is identified by its inode.
  fs::remove(path);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  for (const bool checksums : {true, false}) {
    try {
      read_all(*open_dataset(path, {.verify_checksums = checksums}));
    } catch (const Error& error) {
      expect_damage(error);
    }
  }
  write_on(path);
  return 0;
}
