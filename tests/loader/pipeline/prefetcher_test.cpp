// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetcher.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "loader/pipeline/slots/small_queues.h"
#include "support/fake_dataset.h"
#include "support/small_run.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::eventually;
using testing::Gate;
using ::testing::HasSubstr;
using testing::MemoryDataset;
using testing::OpensAtEnd;
using testing::patience;
using testing::SmallQueues;
using testing::SmallRun;

class Prefetching : public ::testing::Test {
 protected:
  Prefetching() {
    dataset->on_prefetch = [this](std::span<const std::uint64_t> indices) {
      const std::lock_guard lock(mutex);
      told.insert(told.end(), indices.begin(), indices.end());
    };
  }
  ~Prefetching() override {
    prefetcher.close();
    if (thread.joinable()) thread.join();
  }

  std::vector<std::uint64_t> told_so_far() {
    const std::lock_guard lock(mutex);
    return told;
  }
  std::vector<std::uint64_t> records(std::uint64_t first, std::uint64_t end) const {
    std::vector<std::uint64_t> positions;
    for (std::uint64_t position = first; position < end; ++position) positions.push_back(position);
    sampler->current()->draw(positions, positions);
    return positions;
  }
  void start() {
    thread = std::thread([this] { prefetcher.run(*small.queues); });
  }

  const std::shared_ptr<MemoryDataset> dataset = std::make_shared<MemoryDataset>(20);
  const std::shared_ptr<const RunSampler> sampler =
      std::make_shared<RunSampler>(Sampler(Order{}, 20, 7));
  SmallQueues small{{.micro_batches = {8, 1}, .end = 3}};
  std::mutex mutex;
  std::vector<std::uint64_t> told;
  Prefetcher prefetcher{dataset, sampler,
                        Schedule{20, {.batch_size = 8, .epochs = 1, .last_batch = LastBatch::pad}},
                        0, 1};
  std::thread thread;
};

TEST_F(Prefetching, TellsOfEachBatchOnceAndSomeAhead) {
  start();
  prefetcher.note_planned(0);
  EXPECT_TRUE(eventually([&] { return told_so_far() == records(0, 16); }));
  prefetcher.note_planned(1);
  EXPECT_TRUE(eventually([&] { return told_so_far().size() == 24; })) << "padding is told of, too";
  prefetcher.note_planned(2);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(told_so_far().size(), 24U) << "there is no batch behind the last one";
}

TEST_F(Prefetching, AnErrorIsAWarningAndTheNextBatchIsToldOf) {
  std::atomic<int> calls{0};
  dataset->on_prefetch = [&calls](std::span<const std::uint64_t>) {
    ++calls;
    throw std::runtime_error("torn");
  };
  start();
  prefetcher.note_planned(0);
  EXPECT_TRUE(eventually([&calls] { return calls == 2; }));
  EXPECT_TRUE(eventually([this] { return !prefetcher.warnings().empty(); }));
  EXPECT_THAT(prefetcher.warnings().front(), HasSubstr("memory: prefetch() threw: torn"));
  EXPECT_FALSE(small.queues->closed());
}

// A dataset on a slow disk: batches are made nevertheless.
TEST(PipelinePrefetch, HoldsUpNoBatch) {
  const auto gate = std::make_shared<Gate>();
  const OpensAtEnd opens(*gate);
  SmallRun run(80);
  run.dataset->on_prefetch = [gate](std::span<const std::uint64_t>) { EXPECT_TRUE(gate->pass()); };
  Pipeline pipeline = run.pipeline();
  for (int batch = 0; batch < 10; ++batch)
    EXPECT_TRUE(pipeline.next({.timeout = patience / 3})) << "batch " << batch;
  EXPECT_TRUE(eventually([&] { return gate->arrived() == 1; }));
}

TEST(PipelinePrefetch, AStuckOneIsNamed) {
  const auto gate = std::make_shared<Gate>();
  const OpensAtEnd opens(*gate);
  SmallRun run(80);
  run.options.debug.stop_timeout = 50ms;
  run.dataset->on_prefetch = [gate](std::span<const std::uint64_t>) { EXPECT_TRUE(gate->pass()); };
  Pipeline pipeline = run.pipeline();
  ASSERT_TRUE(eventually([&] { return gate->arrived() == 1; }));
  std::optional<Error> error;  // other threads may end late, and would be named first
  EXPECT_TRUE(eventually([&] {
    error = error_of([&] { pipeline.stop(); });
    return error->stage() == "plan";
  }));
  EXPECT_THAT(error->what(), HasSubstr("prefetching from memory"));
}

TEST(PipelinePrefetch, ReadsAheadWithinBounds) {
  SmallRun run(80);
  run.options.epochs = 0;
  for (const std::size_t read_ahead : {std::size_t{4097}, SIZE_MAX}) {
    run.options.slots.read_ahead = read_ahead;
    const Error error = error_of([&] { (void)run.pipeline(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("read_ahead is " + std::to_string(read_ahead)));
  }
  run.options.slots.read_ahead = 4096;
  Pipeline pipeline = run.pipeline();
  EXPECT_TRUE(pipeline.next({.timeout = patience}));
  EXPECT_TRUE(eventually([&] { return run.dataset->prefetched() > 4096 * 8; }));
}

}  // namespace
}  // namespace millrace
