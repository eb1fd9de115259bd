// SPDX-License-Identifier: Apache-2.0
//
//   millrace_tune_check [RUNS] [SAMPLE_US] [BUDGET_S]
//
// Compares the result of `measure::tune` with brute force over workers 1 and 2 and prefetch 2, 4
// and 8. The trainer runs on the host and computes 10 ms per batch. The dataset is an array in
// memory, whose samples take SAMPLE_US of computing each. Both search for the cheapest setting that
// loses at most 5% of the best throughput: the fewest workers, then the smallest prefetch. Exits
// with 0 if they agree in 9 of 10 runs. Needs a machine on which nothing else runs.
#include <millrace/error.h>
#include <millrace/host_device.h>
#include <millrace/measure.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace {

using namespace millrace;
using Clock = std::chrono::steady_clock;

constexpr std::size_t batch_size = 32;
constexpr std::size_t pixels = 64;
constexpr double max_loss = 0.05;

/// A dataset whose records are rows of an array.
class Arrays final : public Dataset {
 public:
  Arrays() {
    for (std::size_t row = 0; row < rows_.size(); ++row)
      rows_[row].fill(static_cast<std::byte>(row));
  }
  std::uint64_t size() const override { return rows_.size(); }
  std::string name() const override { return "arrays"; }
  std::unique_ptr<DatasetReader> make_reader() const override {
    return std::make_unique<Reader>(rows_);
  }

 private:
  using Rows = std::array<std::array<std::byte, pixels>, 4096>;
  class Reader final : public DatasetReader {
   public:
    explicit Reader(const Rows& rows) : rows_(rows) {}
    Record read(std::uint64_t index) override {
      field_ = {.name = "image", .bytes = rows_[index]};
      return Record(index, std::span(&field_, 1));
    }

   private:
    const Rows& rows_;
    RecordField field_;
  };
  Rows rows_{};
};

/// Computes a fixed number of turns. They take longer if other threads use the same processor.
float compute(std::uint64_t turns) {
  float sum = 1;
  for (std::uint64_t turn = 0; turn < turns; ++turn) sum = sum * 0.999F + 0.5F;
  return sum;
}

/// Computes until the calling thread has used this much processor time: a step with a fixed amount
/// of work, which takes longer if workers use its processor.
float compute_for(std::chrono::nanoseconds time) {
  const auto used = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  float sum = 0;
  for (const auto begin = used(); used() - begin < time;) sum += compute(1000);
  return sum;
}

/// Number of turns in a microsecond on a free processor.
double turns_per_us() {
  constexpr std::uint64_t turns = 1'000'000;
  volatile float sink = 0;
  double best = 0;
  for (int time = 0; time < 50; ++time) {
    const Clock::time_point begin = Clock::now();
    sink = sink + compute(turns);
    const std::chrono::duration<double, std::micro> taken = Clock::now() - begin;
    best = std::max(best, static_cast<double>(turns) / taken.count());
  }
  return best;
}

class Computed final : public Transform {
 public:
  explicit Computed(std::uint64_t each) : each_(each) {}
  const SampleSpec& spec() const override { return spec_; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<Worker>(each_);
  }

 private:
  class Worker final : public TransformWorker {
   public:
    explicit Worker(std::uint64_t each) : each_(each) {}
    Status make(const Record& record, Random&, Sample& sample) override {
      std::ranges::copy(record["image"], static_cast<std::byte*>(sample["image"].data));
      sample["mean"].as<float>()[0] = compute(each_);
      return Status::ok();
    }

   private:
    std::uint64_t each_;
  };
  std::uint64_t each_;
  SampleSpec spec_{{{.name = "image", .dtype = DType::uint8, .shape = {pixels}},
                    {.name = "mean", .dtype = DType::float32, .shape = {}}}};
};

using Cost = std::pair<unsigned, std::size_t>;  // workers, prefetch
using Rates = std::map<Cost, double>;

/// Returns the median rates of the settings, which are measured in turn.
Rates brute_force(const measure::Workload& workload, const std::vector<Cost>& settings) {
  constexpr int rounds = 5;
  std::map<Cost, std::vector<double>> measured;
  for (int round = 0; round < rounds; ++round)
    for (const auto& [workers, prefetch] : settings) {
      measure::Workload set = workload;
      set.pipeline.runtime = make_runtime({.workers = workers});
      set.pipeline.slots.prefetch = prefetch;
      const auto result =
          measure::bench(set, {.warmup = 20, .duration = std::chrono::milliseconds(300)});
      measured[{workers, prefetch}].push_back(result.samples_per_second);
    }
  Rates rates;
  for (auto& [setting, each] : measured) {
    std::ranges::nth_element(each, each.begin() + rounds / 2);
    rates[setting] = each[rounds / 2];
  }
  return rates;
}

/// Whether `tune` chooses the same setting as the brute force, which also tries the choice of
/// `tune`.
bool agrees(const measure::Workload& workload, double budget_seconds) {
  const auto tuned = measure::tune(
      workload, {.max_workers = 2, .budget = std::chrono::duration<double>(budget_seconds)});
  const Cost chosen{tuned.chosen.workers, tuned.chosen.prefetch};
  std::vector<Cost> settings = {{1, 2}, {1, 4}, {1, 8}, {2, 2}, {2, 4}, {2, 8}};
  if (std::ranges::find(settings, chosen) == settings.end()) settings.push_back(chosen);
  const Rates rates = brute_force(workload, settings);
  const double best = std::ranges::max_element(rates, {}, &Rates::value_type::second)->second;
  const auto cheapest = std::ranges::find_if(
      rates, [&](const auto& rate) { return rate.second >= (1 - max_loss) * best; });
  for (const auto& [setting, rate] : rates)
    std::printf("  %u x %zu: %.0f/s (%.1f%%)\n", setting.first, setting.second, rate,
                100 * rate / best);
  std::printf("tune: %u workers, prefetch %zu; brute force: %u workers, prefetch %zu%s\n",
              chosen.first, chosen.second, cheapest->first.first, cheapest->first.second,
              tuned.doubtful ? "; the tune says that it is doubtful" : "");
  std::fflush(stdout);
  return chosen == cheapest->first;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto argument = [&](int number, double otherwise) {
    return argc > number ? std::strtod(argv[number], nullptr) : otherwise;
  };
  const int runs = static_cast<int>(argument(1, 10));
  const double sample_us = argument(2, 100);
  const double turns = turns_per_us();
  const auto turns_of = [=](double us) { return static_cast<std::uint64_t>(turns * us); };
  volatile float sink = 0;
  measure::Workload workload{
      .dataset = std::make_shared<Arrays>(),
      .transform = std::make_shared<Computed>(turns_of(sample_us)),
      .device = std::make_shared<HostDevice>(),
      .step = [&](const Batch&,
                  Stream&) { sink = sink + compute_for(std::chrono::milliseconds(10)); },
      .pipeline = {.batch_size = batch_size}};
  int agreed = 0;
  for (int run = 0; run < runs; ++run) agreed += agrees(workload, argument(3, 30)) ? 1 : 0;
  std::printf("agreed in %d of %d runs\n", agreed, runs);
  return 10 * agreed >= 9 * runs ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "millrace_tune_check: %s\n", error.what());
  return 2;
}
