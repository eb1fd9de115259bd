// SPDX-License-Identifier: Apache-2.0
//
// What it takes to read a record that lies in the page cache and compare its checksum: through a
// map, or call by call (`OpenOptions::map`). The argument is the record's length.
#include <benchmark/benchmark.h>
#include <millrace/dataset.h>
#include <millrace/dataset_writer.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace millrace {
namespace {

constexpr std::uint64_t records = 500;

void read_records(benchmark::State& state, bool map) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("millrace-read-" + std::to_string(getpid()) + ".lmdb");
  {
    DatasetWriter writer(path, {.overwrite = true});
    const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{7});
    const RecordField field{"image", bytes};
    for (std::uint64_t index = 0; index < records; ++index) writer.append({&field, 1});
    writer.finish();
  }
  const auto reader = open_dataset(path, {.map = map})->make_reader();
  std::filesystem::remove(path);
  std::uint64_t step = 0;
  while (state.KeepRunning())
    benchmark::DoNotOptimize(reader->read(step++ * 211 % records).fields().data());
}

BENCHMARK_CAPTURE(read_records, mapped, true)->Arg(2 << 10)->Arg(110 << 10);
BENCHMARK_CAPTURE(read_records, call_by_call, false)->Arg(2 << 10)->Arg(110 << 10);

}  // namespace
}  // namespace millrace
