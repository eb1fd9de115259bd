// SPDX-License-Identifier: Apache-2.0
//
// Cost of reading a record in the page cache, and of comparing its checksum if it has one. Records
// are read from a packed dataset, a tar and a folder, through a map or with pread
// (`OpenOptions::map`). Argument: the length of the image.
#include <benchmark/benchmark.h>
#include <millrace/dataset.h>
#include <millrace/dataset_writer.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace millrace {
namespace {

constexpr std::uint64_t records = 500;

void write_packed(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  DatasetWriter writer(path, {.overwrite = true});
  const RecordField field{"image", bytes};
  for (std::uint64_t index = 0; index < records; ++index) writer.append({&field, 1});
  writer.finish();
}

void write_tar(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  constexpr std::size_t block = 512;
  std::ofstream tar(path, std::ios::binary);
  const auto octal = [](std::size_t value, int digits) {
    char text[16];
    std::snprintf(text, sizeof text, "%0*zo", digits, value);
    return std::string(text);
  };
  const auto add = [&](const std::string& name, std::string contents) {
    std::string header(block, '\0');
    const auto put = [&](std::size_t at, const std::string& text) {
      header.replace(at, text.size(), text);
    };
    put(0, name);
    put(124, octal(contents.size(), 11));
    put(148, "        ");
    put(156, "0");
    unsigned sum = 0;
    for (const char byte : header) sum += static_cast<unsigned char>(byte);
    put(148, octal(sum, 6) + '\0');
    contents.resize((contents.size() + block - 1) / block * block);
    tar << header << contents;
  };
  for (std::uint64_t index = 0; index < records; ++index) {
    add(std::to_string(index) + ".jpg",
        std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    add(std::to_string(index) + ".cls", "7");
  }
  tar << std::string(2 * block, '\0');
}

void write_folder(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(path / "class");
  for (std::uint64_t index = 0; index < records; ++index)
    std::ofstream(path / "class" / (std::to_string(index) + ".jpg"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

void read_records(benchmark::State& state,
                  void (*write)(const std::filesystem::path&, std::span<const std::byte>),
                  bool map) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("millrace-read-" + std::to_string(getpid()));
  write(path, std::vector<std::byte>(static_cast<std::size_t>(state.range(0)), std::byte{7}));
  const auto reader = open_dataset(path, {.map = map})->make_reader();
  std::uint64_t step = 0;
  while (state.KeepRunning())
    benchmark::DoNotOptimize(reader->read(step++ * 211 % records).fields().data());
  std::filesystem::remove_all(path);
}

BENCHMARK_CAPTURE(read_records, mapped, write_packed, true)->Arg(2 << 10)->Arg(110 << 10);
BENCHMARK_CAPTURE(read_records, call_by_call, write_packed, false)->Arg(2 << 10)->Arg(110 << 10);
BENCHMARK_CAPTURE(read_records, tar_mapped, write_tar, true)->Arg(2 << 10)->Arg(110 << 10);
BENCHMARK_CAPTURE(read_records, tar_call_by_call, write_tar, false)->Arg(2 << 10)->Arg(110 << 10);
BENCHMARK_CAPTURE(read_records, folder, write_folder, false)->Arg(2 << 10)->Arg(110 << 10);

}  // namespace
}  // namespace millrace
