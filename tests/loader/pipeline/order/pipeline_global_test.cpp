// SPDX-License-Identifier: Apache-2.0
//
// Tests of the global sequence of batches: the same for any number of ranks and workers, and from
// any point of resuming.
#include <gmock/gmock.h>
#include <millrace/detail/placement.h>
#include <millrace/pipeline.h>

#include <vector>

#include "loader/pipeline/order/global_sequence.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using testing::BatchContents;
using ::testing::ElementsAre;
using testing::error_of;
using testing::global_sequence;
using testing::hash_of;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::SmallRun;
using testing::take;
using testing::uneven_run;

std::vector<BatchContents> behind(const std::vector<BatchContents>& batches, std::size_t number) {
  return {batches.begin() + static_cast<std::ptrdiff_t>(number), batches.end()};
}

TEST(GlobalSequence, IsTheSameForAnyWorkersPrefetchWorldAndResume) {
  SmallRun run = uneven_run(53);
  run.options.epochs = 2;
  run.options.ranks.global_batch_size = 12;
  run.workers(1);
  const std::vector<BatchContents> reference = global_sequence(run, 1);
  ASSERT_EQ(reference.size(), 10U);
  Random random(2026, 0);
  std::vector<std::size_t> resumed_after;
  while (resumed_after.size() < 5) resumed_after.push_back(1 + random.below(9));

  for (const unsigned workers : {1U, 2U, 4U}) {
    run.workers(workers);
    for (const std::size_t prefetch : {1U, 4U}) {
      run.options.slots.prefetch = prefetch;
      for (const std::uint32_t world : {1U, 2U, 3U, 4U}) {
        SCOPED_TRACE(::testing::Message()
                     << workers << " workers, prefetch " << prefetch << ", world " << world);
        ASSERT_EQ(global_sequence(run, world), reference);
        for (const std::size_t number : resumed_after) {
          const auto rest =
              global_sequence(run, world, State::from_json(reference[number - 1].after.to_json()));
          ASSERT_EQ(rest, behind(reference, number)) << "resumed after batch " << number - 1;
          ASSERT_EQ(hash_of(rest), hash_of(behind(reference, number)));
        }
      }
    }
  }
}

// The ends of epochs, whole and resumed, if the ranks' shares of the last batch are small.
TEST(GlobalSequence, IsTheSameForAnyWorldAtTheEndsOfEpochs) {
  for (const LastBatch last_batch : {LastBatch::drop, LastBatch::partial, LastBatch::pad})
    for (const std::uint64_t records : {24U, 25U, 26U, 35U}) {
      SmallRun run(records);
      run.options.epochs = 3;
      run.options.ranks.global_batch_size = 8;
      run.options.last_batch = last_batch;
      run.workers(2);
      const std::vector<BatchContents> reference = global_sequence(run, 1);
      for (const std::uint32_t world : {2U, 3U, 4U, 5U, 7U, 8U}) {
        SCOPED_TRACE(::testing::Message() << records << " records, world " << world
                                          << ", last_batch " << static_cast<int>(last_batch));
        ASSERT_EQ(global_sequence(run, world), reference);
        const std::size_t first_epoch = reference.size() / 3;
        ASSERT_TRUE(reference[first_epoch - 1].last_in_epoch);
        for (const std::size_t number : {first_epoch - 1, first_epoch, first_epoch + 1})
          ASSERT_EQ(global_sequence(run, world, reference[number - 1].after),
                    behind(reference, number));
      }
    }
}

TEST(GlobalSequence, RanksMayBeFewerThanTheLastBatchsSamplesOrMore) {
  SmallRun run(17);
  run.options.ranks.global_batch_size = 8;
  run.options.ranks.this_process = {.rank = 2, .world = 4};
  Pipeline pipeline = run.pipeline();
  const std::vector<BatchContents> batches = take(pipeline);
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(batches[0].indices.size(), 2U);
  EXPECT_EQ(batches[2].indices.size(), 0U) << "one sample is left, and another rank has it";
  EXPECT_EQ(batches[2].global_size, 1U);
  EXPECT_TRUE(batches[2].last_in_epoch);
}

TEST(GlobalSequence, SlotsHoldTheLargestShareAlone) {
  SmallRun run(40);
  run.options.batch_size = 1'000'000;
  run.options.ranks.global_batch_size = 10;
  run.options.ranks.this_process = {.rank = 0, .world = 3};
  run.options.slots.prefetch = 1;
  Pipeline pipeline = run.pipeline();
  EXPECT_LT(pipeline.report().memory.pinned_bytes, 10'000U) << "batch_size is not looked at";
  run.options.slots.micro_batches = 5;
  EXPECT_THAT(error_of([&] { (void)run.pipeline(); }).what(),
              HasSubstr("micro_batches is 5, more than the batch's 4 samples"));
  run.options.slots.micro_batches = 1;
  run.options.ranks.this_process.world = 11;
  EXPECT_THAT(error_of([&] { (void)run.pipeline(); }).what(), HasSubstr("global_batch_size is 10"));
}

TEST(GlobalSequence, SizesThatCannotBeCountedAreRefused) {
  const auto refusal = [](std::size_t batch_size, std::size_t global_batch_size) {
    SmallRun run(40);
    run.options.batch_size = batch_size;
    run.options.ranks.global_batch_size = global_batch_size;
    run.options.ranks.this_process.world = 2;
    return std::string(error_of([&] { (void)run.pipeline(); }).what());
  };
  EXPECT_THAT(refusal(std::size_t{1} << 63, 0), HasSubstr("batch_size is 9223372036854775808"));
  EXPECT_THAT(refusal((std::size_t{1} << 63) + 1, 0),
              HasSubstr("batch_size is 9223372036854775809"));
  EXPECT_THAT(refusal(8, SIZE_MAX), HasSubstr("global_batch_size is 18446744073709551615"));
}

TEST(GlobalSequence, ARuntimeOfThePipelinesOwnIsItsRanksShareOfTheHost) {
  SmallRun run(40);
  run.options.ranks.this_process = {.rank = 0, .world = 2, .local_rank = 0, .local_world = 2};
  Pipeline pipeline = run.pipeline();
  const Topology machine = read_topology();
  EXPECT_EQ(pipeline.report().cores, share_of(machine, 0, 2).usable_cpus);
  EXPECT_EQ(pipeline.report().workers,
            place_workers(machine, {.local_rank = 0, .local_world = 2}).total_workers());
}

// Samples are made across the end of an epoch: while every batch of the first epoch is held back,
// those of the second are made.
TEST(GlobalSequence, EpochsRunOnWithoutABubble) {
  SmallRun run(16);
  run.options.epochs = 2;
  run.options.slots.prefetch = 4;
  Pipeline pipeline = run.pipeline();
  EXPECT_TRUE(testing::eventually([&] { return run.transform->made() == 32; }))
      << "made only " << run.transform->made();
}

// ---- states of other runs

/// A transform with a fingerprint.
class NamedTransform final : public Transform {
 public:
  explicit NamedTransform(std::uint64_t fingerprint) : fingerprint_(fingerprint) {}
  const SampleSpec& spec() const override { return stamps_.spec(); }
  std::vector<std::string> stages() const override { return stamps_.stages(); }
  std::unique_ptr<TransformWorker> make_worker() const override { return stamps_.make_worker(); }
  std::optional<std::uint64_t> fingerprint() const override { return fingerprint_; }

 private:
  testing::StampTransform stamps_;
  std::uint64_t fingerprint_;
};

/// A dataset with a fingerprint.
class NamedDataset final : public Dataset {
 public:
  NamedDataset(std::uint64_t size, std::uint64_t fingerprint)
      : records_(std::make_shared<testing::MemoryDataset>(size)), fingerprint_(fingerprint) {}
  std::uint64_t size() const override { return records_->size(); }
  std::unique_ptr<DatasetReader> make_reader() const override { return records_->make_reader(); }
  std::string name() const override { return "drawer.lmdb"; }
  DatasetFacts facts() const override { return {.fingerprint = fingerprint_}; }

 private:
  std::shared_ptr<const testing::MemoryDataset> records_;
  std::uint64_t fingerprint_;
};

struct NamedRun {
  std::uint64_t records = 40;
  std::uint64_t dataset = 0xDA7A;
  std::uint64_t recipe = 0x12EC1BE;
  PipelineOptions options{.batch_size = 8, .seed = 5};

  Pipeline pipeline() const {
    return Pipeline(std::make_shared<NamedDataset>(records, dataset),
                    std::make_shared<NamedTransform>(recipe), std::make_shared<HostDevice>(),
                    options);
  }
};

State state_of_a_run() {
  Pipeline pipeline = NamedRun().pipeline();
  (void)pipeline.next();
  return pipeline.state();
}

TEST(ResumeState, NamesItsRun) {
  const State state = state_of_a_run();
  EXPECT_EQ(state.seed, 5U);
  EXPECT_EQ(state.position, 8U);
  EXPECT_EQ(state.global_batch, 8U);
  EXPECT_EQ(state.dataset, 0xDA7AU);
  EXPECT_EQ(state.recipe, 0x12EC1BEU);
  EXPECT_TRUE(state.sampler);
}

TEST(ResumeState, FitsItsOwnRunOnOtherRanks) {
  NamedRun run;
  run.options.resume.from = state_of_a_run();
  EXPECT_EQ(run.pipeline().next().number(), 1U);
  run.options.batch_size = 4;
  run.options.ranks.this_process.world = 2;
  EXPECT_EQ(run.pipeline().next().number(), 1U);
}

TEST(ResumeState, OfAnotherRunIsRefusedWithWhatDiffers) {
  const auto refusal = [](auto change) {
    NamedRun run;
    run.options.resume.from = state_of_a_run();
    change(run);
    const Error error = error_of([&] { (void)run.pipeline(); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    run.options.resume.anyway = true;
    EXPECT_EQ(run.pipeline().state().position, 8U) << "it was told otherwise";
    return std::string(error.what());
  };
  EXPECT_THAT(refusal([](NamedRun& run) { run.dataset = 3; }),
              ::testing::AllOf(
                  HasSubstr("drawer.lmdb"), HasSubstr("dataset's fingerprint was 000000000000da7a"),
                  HasSubstr("here it is 0000000000000003"), HasSubstr("resume.anyway")));
  EXPECT_THAT(refusal([](NamedRun& run) { run.recipe = 3; }),
              HasSubstr("the transform's fingerprint was"));
  EXPECT_THAT(refusal([](NamedRun& run) { run.records = 48; }), HasSubstr("order of records"));
  EXPECT_THAT(refusal([](NamedRun& run) { run.options.seed = 6; }),
              HasSubstr("the seed was 5, here it is 6"));
  EXPECT_THAT(refusal([](NamedRun& run) { run.options.batch_size = 4; }),
              HasSubstr("samples in a batch over all ranks was 8, here it is 4"));
  EXPECT_THAT(refusal([](NamedRun& run) {
                run.recipe = 3;
                run.options.seed = 6;
              }),
              ::testing::AllOf(HasSubstr("the seed"), HasSubstr("the transform's")));
}

TEST(ResumeState, ComparesOnlyWhatBothSidesName) {
  NamedRun run;
  run.options.resume.from = State{.seed = 5, .position = 16};
  EXPECT_EQ(run.pipeline().next().number(), 2U);
  // A transform and a dataset without fingerprints.
  SmallRun silent(40);
  silent.options.seed = 5;
  silent.options.resume.from = state_of_a_run();
  EXPECT_EQ(silent.pipeline().next().number(), 1U);
}

/// Returns a pipeline's warnings, except those of other work on this machine's processors.
std::vector<std::string> warnings_of(Pipeline pipeline) {
  std::vector<std::string> warnings = pipeline.report().warnings;
  std::erase_if(warnings, [](const std::string& one) { return one.starts_with("oversubscribed"); });
  return warnings;
}

TEST(ResumeState, WarnsOfWhatWasNotCompared) {
  NamedRun run;
  run.options.resume.from = state_of_a_run();
  EXPECT_THAT(warnings_of(run.pipeline()), ::testing::IsEmpty());
  SmallRun silent(40);
  silent.options.seed = 5;
  silent.options.resume.from = state_of_a_run();
  EXPECT_THAT(warnings_of(silent.pipeline()),
              ElementsAre(AllOf(HasSubstr("the dataset's fingerprint"), HasSubstr("this run has")),
                          AllOf(HasSubstr("transform's fingerprint"), HasSubstr("this run has"))));
  silent.options.resume.from = State{.seed = 5, .position = 16};
  EXPECT_THAT(warnings_of(silent.pipeline()), SizeIs(4));
  silent.options.resume.anyway = true;
  EXPECT_THAT(warnings_of(silent.pipeline()), ::testing::IsEmpty());
}

TEST(ResumeState, OfAnOtherBatchSizeIsNotTakenInTheMiddleOfABatch) {
  NamedRun run;
  run.options.resume.from = state_of_a_run();
  run.options.resume.anyway = true;
  run.options.batch_size = 16;
  EXPECT_THAT(error_of([&] { (void)run.pipeline(); }).what(),
              HasSubstr("position is 8, where no batch begins"));
}

TEST(PipelineGlobal, TellsHowManyBatchesThereAre) {
  struct Case {
    LastBatch last_batch;
    std::uint64_t batches;
  };
  for (const auto& [last_batch, batches] :
       {Case{LastBatch::drop, 3}, Case{LastBatch::partial, 4}, Case{LastBatch::pad, 4}})
    for (const std::uint32_t rank : {0U, 1U}) {
      SmallRun run(27);
      run.options.last_batch = last_batch;
      run.options.epochs = 2;
      run.options.ranks = {.this_process = {.rank = rank, .world = 2}, .global_batch_size = 8};
      Pipeline pipeline = run.pipeline();
      EXPECT_EQ(pipeline.batches_per_epoch(), batches);
      ASSERT_EQ(pipeline.total_batches(), 2 * batches);
      std::uint64_t counted = 0;
      for (; const Batch batch = pipeline.next(); ++counted)
        if (counted == batches) run.options.resume.from = batch.state_after();
      EXPECT_EQ(counted, 2 * batches);
      EXPECT_EQ(run.pipeline().total_batches(), 2 * batches) << "of the run, not what is left";
    }
  SmallRun endless(27);
  endless.options.epochs = 0;
  EXPECT_EQ(endless.pipeline().batches_per_epoch(), 4U);
  EXPECT_EQ(endless.pipeline().total_batches(), std::nullopt);
  endless.options.epochs = UINT64_MAX;
  EXPECT_EQ(endless.pipeline().total_batches(), std::nullopt) << "more than can be counted";
}

}  // namespace
}  // namespace millrace
