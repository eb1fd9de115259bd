// SPDX-License-Identifier: Apache-2.0
//
// Cost of a draw in each order, and of beginning an order. Argument: the number of records.
// 1,281,167 is ImageNet's training set. 4^n + 1 is the worst case of a permutation, in which 3 of 4
// passes through the network give numbers that are out of range.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <millrace/sampler.h>

#include <numeric>
#include <vector>

namespace {

using millrace::Order;
using millrace::Sampler;

Order shuffled(std::uint64_t) { return Order::shuffled(); }
Order sequential(std::uint64_t) { return Order::sequential(); }
Order blocks(std::uint64_t) { return Order::blocks(); }
Order repeated(std::uint64_t) { return Order::shuffled().repeated(3); }
Order mixed(std::uint64_t records) {
  return Order::mixed(
      {{records / 4, 3}, {records / 4, 1}, {records / 4, 1}, {records - records / 4 * 3, 2}});
}
Order weighted(std::uint64_t records) {
  std::vector<double> weights(records);
  std::iota(weights.begin(), weights.end(), 1);
  return Order::weighted(std::move(weights));
}
Order bucketed_by(std::uint64_t records, std::uint64_t window) {
  std::vector<std::uint32_t> lengths(records);
  for (std::uint64_t n = 0; n < records; ++n)
    lengths[n] = static_cast<std::uint32_t>(n * 0x9E3779B97F4A7C15 >> 52);
  return Order::bucketed(std::move(lengths), {.window_records = window, .group_records = 256});
}
Order bucketed(std::uint64_t records) { return bucketed_by(records, 8192); }
Order bucketed_whole(std::uint64_t records) { return bucketed_by(records, std::uint64_t{1} << 32); }
Order subset(std::uint64_t records) {
  std::vector<std::uint64_t> every_second(records / 2);
  for (std::uint64_t n = 0; n < every_second.size(); ++n) every_second[n] = 2 * n;
  return Order::shuffled().subset(std::move(every_second));
}

/// Draws as a pipeline does: batches of 256 consecutive positions. Items are draws.
void draw(benchmark::State& state, Order (*order)(std::uint64_t)) {
  const auto size = static_cast<std::uint64_t>(state.range(0));
  const Sampler sampler(order(size), size, 7);
  std::vector<std::uint64_t> positions(256);
  std::vector<std::uint64_t> records(positions.size());
  std::uint64_t position = 0;
  for ([[maybe_unused]] auto _ : state) {
    for (std::uint64_t& each : positions) each = position++;
    sampler.draw(positions, records);
    benchmark::DoNotOptimize(records.data());
    benchmark::ClobberMemory();
  }
  const auto draws =
      static_cast<double>(state.iterations()) * static_cast<double>(positions.size());
  state.counters["per_draw"] =
      benchmark::Counter(draws, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// Draws single records. Each draw waits for the previous one.
void draw_one(benchmark::State& state, Order (*order)(std::uint64_t)) {
  const auto size = static_cast<std::uint64_t>(state.range(0));
  const Sampler sampler(order(size), size, 7);
  std::uint64_t position = 0;
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(sampler(position++));
}

/// Draws a million records in succession.
void draw_million(benchmark::State& state, Order (*order)(std::uint64_t)) {
  const auto size = static_cast<std::uint64_t>(state.range(0));
  const Sampler sampler(order(size), size, 7);
  std::vector<std::uint64_t> records(1'000'000);
  for ([[maybe_unused]] auto _ : state) {
    std::iota(records.begin(), records.end(), 0);
    sampler.draw(records, records);
    benchmark::DoNotOptimize(records.data());
  }
}

/// Begins an order and draws the first record. `heap_bytes` is the sampler's memory after that.
void begin(benchmark::State& state, Order (*order)(std::uint64_t)) {
  const auto size = static_cast<std::uint64_t>(state.range(0));
  for ([[maybe_unused]] auto _ : state) {
    const Sampler sampler(order(size), size, 7);
    benchmark::DoNotOptimize(sampler(0));
  }
  const auto before = mallinfo2().uordblks;
  const Sampler sampler(order(size), size, 7);
  benchmark::DoNotOptimize(sampler(0));
  state.counters["heap_bytes"] =
      static_cast<double>(mallinfo2().uordblks - before) + sizeof(Sampler);
}

constexpr std::int64_t imagenet = 1'281'167;
constexpr std::int64_t worst = (1 << 28) + 1;
constexpr std::int64_t billion = 1'000'000'000;

void any_size(benchmark::internal::Benchmark* bench) {
  for (const std::int64_t size : {std::int64_t{1000}, std::int64_t{4097}, imagenet, worst, billion})
    bench->Arg(size);
}
void lists(benchmark::internal::Benchmark* bench) {
  for (const std::int64_t size :
       {std::int64_t{1000}, std::int64_t{4097}, imagenet, std::int64_t{10'000'000}})
    bench->Arg(size);
}

BENCHMARK_CAPTURE(draw, shuffled, shuffled)->Name("OrderDraw/shuffled")->Apply(any_size);
BENCHMARK_CAPTURE(draw, sequential, sequential)->Name("OrderDraw/sequential")->Apply(any_size);
// 4^9 + 1 blocks of 1024 records, and one more block.
BENCHMARK_CAPTURE(draw, blocks, blocks)
    ->Name("OrderDraw/blocks")
    ->Apply(any_size)
    ->Arg(((1 << 18) + 1) * 1024 + 1);
BENCHMARK_CAPTURE(draw, repeated, repeated)->Name("OrderDraw/repeated")->Apply(any_size);
BENCHMARK_CAPTURE(draw, mixed, mixed)->Name("OrderDraw/mixed")->Apply(any_size);
BENCHMARK_CAPTURE(draw, weighted, weighted)->Name("OrderDraw/weighted")->Apply(lists);
BENCHMARK_CAPTURE(draw, bucketed, bucketed)->Name("OrderDraw/bucketed")->Apply(lists);
BENCHMARK_CAPTURE(draw, bucketed_whole, bucketed_whole)
    ->Name("OrderDraw/bucketed_whole_epoch")
    ->Arg(imagenet);
BENCHMARK_CAPTURE(draw, subset, subset)->Name("OrderDraw/subset")->Apply(lists);
BENCHMARK_CAPTURE(draw_one, shuffled, shuffled)->Name("OrderDrawOne/shuffled")->Apply(any_size);
BENCHMARK_CAPTURE(draw_million, shuffled, shuffled)
    ->Name("OrderMillion/shuffled")
    ->Arg(billion)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(begin, shuffled, shuffled)->Name("OrderBegin/shuffled")->Arg(billion);
BENCHMARK_CAPTURE(begin, sequential, sequential)->Name("OrderBegin/sequential")->Arg(billion);
BENCHMARK_CAPTURE(begin, blocks, blocks)->Name("OrderBegin/blocks")->Arg(billion);
BENCHMARK_CAPTURE(begin, mixed, mixed)->Name("OrderBegin/mixed")->Arg(billion);
BENCHMARK_CAPTURE(draw_one, bucketed, bucketed)->Name("OrderDrawOne/bucketed")->Arg(imagenet);
BENCHMARK_CAPTURE(begin, bucketed, bucketed)->Name("OrderBegin/bucketed")->Arg(imagenet);
BENCHMARK_CAPTURE(begin, weighted, weighted)
    ->Name("OrderBegin/weighted")
    ->Arg(imagenet)
    ->Unit(benchmark::kMillisecond);

}  // namespace
