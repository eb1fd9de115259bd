// SPDX-License-Identifier: Apache-2.0
//
// Tests with one stage slowed on purpose: the verdict must name it.
#include <gtest/gtest.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <thread>

#include "support/fake_dataset.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::best_of_longer;

/// Durations of the stages: read, decode and augment per sample, copy and step per batch.
struct Costs {
  nanoseconds read = 1ms;
  nanoseconds decode = 1ms;
  nanoseconds augment = 1ms;
  nanoseconds copy = 12ms;
  nanoseconds step = 12ms;

  Costs operator*(int factor) const {
    return {read * factor, decode * factor, augment * factor, copy * factor, step * factor};
  }
};

/// A sample of two stages with given durations, spent asleep or at work.
class TwoStages final : public Transform {
 public:
  TwoStages(nanoseconds decode, nanoseconds augment, bool at_work = false)
      : decode_(decode), augment_(augment), at_work_(at_work) {}
  const SampleSpec& spec() const override { return spec_; }
  std::vector<std::string> stages() const override { return {"decode", "augment"}; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<Worker>(*this);
  }

 private:
  class Worker final : public TransformWorker {
   public:
    explicit Worker(const TwoStages& stages) : stages_(stages) {}
    Status make(const Record& record, Random&, Sample& sample) override {
      spend(stages_.decode_);
      sample.enter_stage(1);
      std::ranges::fill(sample["image"].as<std::uint8_t>(), std::uint8_t{0});
      sample["label"].as<std::int64_t>()[0] = record.integer("label");
      spend(stages_.augment_);
      return Status::ok();
    }

   private:
    void spend(nanoseconds duration) const {
      if (!stages_.at_work_) return std::this_thread::sleep_for(duration);
      const auto cpu_time = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
      };
      const nanoseconds end = cpu_time() + duration;
      while (cpu_time() < end) continue;
    }
    const TwoStages& stages_;
  };

  // Large enough that the alignment of fields does not matter.
  SampleSpec spec_{{{"image", DType::uint8, {8192}, false}, {"label", DType::int64, {}, false}}};
  nanoseconds decode_;
  nanoseconds augment_;
  bool at_work_;
};

struct Verdicts {
  Verdict with_idle;
  Verdict alone;
};

constexpr std::size_t batch_size = 8;

/// 30 batches of 8 on two workers, after 6 of warm-up.
Verdicts train_once(const Costs& costs) {
  const auto dataset = std::make_shared<testing::MemoryDataset>(10'000);
  dataset->on_read = [&costs](std::uint64_t) { std::this_thread::sleep_for(costs.read); };
  const auto transform = std::make_shared<TwoStages>(costs.decode, costs.augment);
  const double copy_seconds = std::chrono::duration<double>(costs.copy).count();
  const auto device = std::make_shared<HostDevice>(HostDeviceOptions{
      .copies = true,
      .copy_bytes_per_second =
          static_cast<double>(batch_size * transform->spec().bytes_per_sample()) / copy_seconds});
  Pipeline pipeline(dataset, transform, device,
                    {.batch_size = batch_size, .runtime = make_runtime({.workers = 2})});
  HostStream stream;
  const std::array<std::unique_ptr<Event>, 2> ends{device->make_event(), device->make_event()};
  const auto step = [&](std::size_t number) {
    const Batch batch = pipeline.next(stream);
    stream.step(costs.step);
    stream.record(*ends[number % 2]);
    ends[(number + 1) % 2]->wait(testing::patience);  // the step before
  };
  for (std::size_t number = 0; number < 6; ++number) step(number);
  pipeline.restart_report();
  stream.reset_steps();
  for (std::size_t number = 0; number < 30; ++number) step(number);
  const Report report = pipeline.report();
  stream.synchronize();
  const StepStatistics steps = stream.steps();
  const double idle = static_cast<double>(steps.idle.count()) /
                      static_cast<double>((steps.idle + steps.busy).count());
  return {judge(report, idle), report.verdict};
}

/// Tries several times with ever longer stages, since a busy machine slows a stage by itself.
template <typename IsRight>
Verdicts train(const Costs& costs, IsRight is_right) {
  return best_of_longer([&costs](int factor) { return train_once(costs * factor); },
                        [&is_right](const Verdicts& outcome) {
                          return is_right(outcome.with_idle) && is_right(outcome.alone);
                        });
}

/// Returns a predicate: whether a verdict names this bound.
auto names(Bound bound) {
  return [bound](const Verdict& verdict) { return verdict.bound == bound; };
}
auto names(const char* stage) {
  return [stage](const Verdict& verdict) { return verdict.stage == stage; };
}

TEST(VerdictOfARun, NamesSlowReading) {
  const Verdicts outcome = train({.read = 3ms}, names(Bound::storage));
  EXPECT_EQ(outcome.with_idle.bound, Bound::storage) << outcome.with_idle.text;
  EXPECT_EQ(outcome.alone.bound, Bound::storage) << outcome.alone.text;
}

TEST(VerdictOfARun, NamesASlowFirstStage) {
  const Verdicts outcome = train({.decode = 3ms}, names("decode"));
  EXPECT_EQ(outcome.with_idle.stage, "decode") << outcome.with_idle.text;
  EXPECT_EQ(outcome.alone.stage, "decode") << outcome.alone.text;
}

TEST(VerdictOfARun, NamesASlowSecondStage) {
  const Verdicts outcome = train({.augment = 3ms}, names("augment"));
  EXPECT_EQ(outcome.with_idle.stage, "augment") << outcome.with_idle.text;
  EXPECT_EQ(outcome.alone.stage, "augment") << outcome.alone.text;
}

TEST(VerdictOfARun, NamesSlowCopies) {
  const Verdicts outcome = train({.copy = 36ms}, names(Bound::copy));
  EXPECT_EQ(outcome.with_idle.bound, Bound::copy) << outcome.with_idle.text;
  EXPECT_EQ(outcome.alone.bound, Bound::copy) << outcome.alone.text;
}

TEST(VerdictOfARun, NamesASlowStep) {
  // The pipeline sees only that its trainer takes the time. It cannot tell whether the trainer does
  // so in steps or between them.
  const auto names_the_trainer = [](const Verdict& verdict) {
    return verdict.bound == Bound::trainer || verdict.bound == Bound::step;
  };
  const Verdicts outcome = best_of_longer(
      [](int factor) { return train_once(Costs{.step = 36ms} * factor); },
      [&names_the_trainer](const Verdicts& verdicts) {
        return verdicts.with_idle.bound == Bound::step && names_the_trainer(verdicts.alone);
      });
  EXPECT_EQ(outcome.with_idle.bound, Bound::step) << outcome.with_idle.text;
  EXPECT_TRUE(names_the_trainer(outcome.alone)) << outcome.alone.text;
}

TEST(VerdictOfARun, BlamesNobodyWhereAHostTrainerComputes) {
  const auto compute = [](int factor) {
    Pipeline pipeline(std::make_shared<testing::MemoryDataset>(10'000),
                      std::make_shared<TwoStages>(1ms * factor, 100us * factor),
                      std::make_shared<HostDevice>(),
                      {.batch_size = batch_size, .runtime = make_runtime({.workers = 2})});
    // So long that one wait of a thread for a processor does not matter.
    for (int number = 0; number < 30; ++number) {
      const Batch batch = pipeline.next();
      std::this_thread::sleep_for(20ms * factor);
    }
    return pipeline.report().verdict;
  };
  const Verdict verdict = best_of_longer(compute, names(Bound::trainer));
  EXPECT_EQ(verdict.bound, Bound::trainer) << verdict.text;
}

TEST(VerdictOfARun, NamesMissingCores) {
  if (!std::ifstream("/proc/thread-self/schedstat"))
    GTEST_SKIP() << "this system does not tell how long threads wait for a processor";
  bool bound = true;
  const auto compute = [&bound](int factor) {
    Verdict verdict;
    // A thread of its own, since the threads that it starts inherit its one processor.
    std::thread([&] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(sched_getcpu(), &one);
      if ((bound = sched_setaffinity(0, sizeof one, &one) == 0) == false) return;
      Pipeline pipeline(std::make_shared<testing::MemoryDataset>(10'000),
                        std::make_shared<TwoStages>(1ms * factor, 100us * factor, true),
                        std::make_shared<HostDevice>(),
                        {.batch_size = batch_size, .runtime = make_runtime({.workers = 4})});
      for (int number = 0; number < 4; ++number) (void)pipeline.next();
      pipeline.restart_report();
      // Long compared to a time slice: a wait is counted when it is over.
      for (int number = 0; number < 100; ++number) (void)pipeline.next();
      verdict = pipeline.report().verdict;
    }).join();
    return verdict;
  };
  const Verdict verdict = best_of_longer(compute, [&bound](const Verdict& found) {
    return !bound || (found.bound == Bound::cores && found.share > 0.5);
  });
  if (!bound) GTEST_SKIP() << "this system does not let a thread be bound to a processor";
  EXPECT_EQ(verdict.bound, Bound::cores) << verdict.text;
  EXPECT_GT(verdict.share, 0.5)
      << "four workers on one processor: each waits three quarters of the time";
}

}  // namespace
}  // namespace millrace
