// SPDX-License-Identifier: Apache-2.0
//
// Cost of opening another program's LMDB whose keys are hashes, and of drawing records at random,
// compared with millrace's format with the same bytes. Arguments: number of records and their
// length. All data is in the page cache.
#include <benchmark/benchmark.h>
#include <lmdb.h>
#include <millrace/dataset.h>
#include <millrace/dataset_writer.h>
#include <millrace/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace millrace {
namespace {

/// Returns bytes that begin like a JPEG, so that the schema is recognised.
std::vector<std::byte> image_of(std::size_t bytes) {
  std::vector<std::byte> image(bytes, std::byte{7});
  constexpr std::array signature = {std::byte{0xFF}, std::byte{0xD8}, std::byte{0xFF}};
  std::ranges::copy(signature, image.begin());
  return image;
}

/// A file that is deleted when the benchmark ends.
class BenchmarkFile {
 public:
  BenchmarkFile(std::uint64_t records, std::size_t bytes, bool foreign) {
    const std::vector<std::byte> image = image_of(bytes);
    foreign ? write_foreign(records, image) : write_own(records, image);
  }
  ~BenchmarkFile() { std::filesystem::remove(path_); }
  BenchmarkFile(const BenchmarkFile&) = delete;
  BenchmarkFile& operator=(const BenchmarkFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  void write_own(std::uint64_t records, std::span<const std::byte> image) const {
    DatasetWriter writer(path_, {.overwrite = true});
    const RecordField field{"image", image};
    for (std::uint64_t index = 0; index < records; ++index) writer.append({&field, 1});
    writer.finish();
  }

  void write_foreign(std::uint64_t records, std::span<const std::byte> image) const {
    std::vector<std::array<std::uint64_t, 2>> keys(records);
    for (std::uint64_t index = 0; index < records; ++index) {
      Random random(3, index);
      keys[index] = {random(), random()};
    }
    // Sorts the keys bytewise, as LMDB does.
    std::ranges::sort(keys, [](const auto& a, const auto& b) {
      return std::memcmp(a.data(), b.data(), sizeof a) < 0;
    });
    MDB_env* environment = nullptr;
    MDB_txn* transaction = nullptr;
    MDB_dbi handle = 0;
    const auto check = [](int result) {
      if (result != 0) throw std::runtime_error(mdb_strerror(result));
    };
    check(mdb_env_create(&environment));
    check(mdb_env_set_mapsize(environment, std::size_t{1} << 33));
    check(mdb_env_open(environment, path_.c_str(), MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0600));
    check(mdb_txn_begin(environment, nullptr, 0, &transaction));
    check(mdb_dbi_open(transaction, nullptr, 0, &handle));
    for (auto& key : keys) {
      MDB_val stored_key{sizeof key, key.data()};
      MDB_val stored_value{image.size(), const_cast<std::byte*>(image.data())};
      check(mdb_put(transaction, handle, &stored_key, &stored_value, MDB_APPEND));
    }
    check(mdb_txn_commit(transaction));
    mdb_env_close(environment);
  }

  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("millrace-foreign-" + std::to_string(getpid()) + ".mdb");
};

BenchmarkFile file_of(const benchmark::State& state, bool foreign) {
  return {static_cast<std::uint64_t>(state.range(0)), static_cast<std::size_t>(state.range(1)),
          foreign};
}

void draw_records(benchmark::State& state, bool foreign) {
  const BenchmarkFile file = file_of(state, foreign);
  const auto dataset = open_dataset(file.path());
  const auto reader = dataset->make_reader();
  constexpr std::uint64_t step = 7'368'787;  // a prime
  std::uint64_t drawn = 0;
  while (state.KeepRunning())
    benchmark::DoNotOptimize(
        reader->read(drawn++ * step % dataset->size()).fields()[0].bytes.data());
}

void open_and_draw(benchmark::State& state, bool foreign) {
  const BenchmarkFile file = file_of(state, foreign);
  while (state.KeepRunning()) {
    const auto dataset = open_dataset(file.path());
    benchmark::DoNotOptimize(
        dataset->make_reader()->read(dataset->size() / 2).fields()[0].bytes.data());
  }
}

constexpr std::int64_t imagenet = 1'300'000;
BENCHMARK_CAPTURE(draw_records, foreign, true)
    ->Args({imagenet, 100})
    ->Args({500, 2 << 10})
    ->Args({500, 110 << 10});
BENCHMARK_CAPTURE(draw_records, own, false)
    ->Args({imagenet, 100})
    ->Args({500, 2 << 10})
    ->Args({500, 110 << 10});
BENCHMARK_CAPTURE(open_and_draw, foreign, true)
    ->Args({imagenet, 100})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace millrace
