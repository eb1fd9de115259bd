// SPDX-License-Identifier: Apache-2.0
//
// Tests of records that cannot be read or made: fail, replace or mark.
#include <gmock/gmock.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/small_run.h"

namespace millrace {
namespace {

using testing::BatchContents;
using testing::error_of;
using ::testing::HasSubstr;
using testing::SmallRun;
using testing::take;

bool is_bad(std::uint64_t record) { return record % 10 == 3; }

/// Whether batches are copied to the device, and whether samples are interleaved.
constexpr std::array ways{std::pair(false, false), std::pair(true, false), std::pair(false, true)};

/// A tenth of the records is bad. The dataset finds half of them, the transform the other half
/// after it wrote the whole sample. Samples are made one by one, or two interleaved.
SmallRun run_with_bad(BadRecords policy, bool copies = false, bool in_turn = false) {
  SmallRun run(100, copies);
  run.transform->in_turn = in_turn;
  run.options.bad_records = policy;
  run.dataset->on_read = [](std::uint64_t index) {
    if (is_bad(index) && index % 20 == 3) throw Error(ErrorCode::bad_record, "checksum differs");
  };
  run.transform->on_end = [](const Record& record) {
    return is_bad(record.index()) ? Status::bad("no end of image") : Status::ok();
  };
  return run;
}

TEST(PipelineBadRecords, FailNamesKeyAndReason) {
  for (const auto& [copies, in_turn] : ways) {
    const SmallRun run = run_with_bad(BadRecords::fail, copies, in_turn);
    Pipeline pipeline = run.pipeline();
    const Error error = error_of([&] { (void)take(pipeline); });
    EXPECT_EQ(error.code(), ErrorCode::bad_record);
    ASSERT_TRUE(error.record().has_value());
    EXPECT_TRUE(is_bad(*error.record()));
    EXPECT_THAT(error.what(), HasSubstr("drawer/" + std::to_string(*error.record()) + ".rec"));
    EXPECT_THAT(error.what(), HasSubstr("memory")) << "which dataset";
    const bool found_by_dataset = *error.record() % 20 == 3;
    EXPECT_THAT(error.what(), HasSubstr(found_by_dataset ? "checksum differs" : "no end of image"));
    EXPECT_EQ(error.stage(), found_by_dataset ? "read" : "finish");
    EXPECT_EQ(error_of([&] { (void)pipeline.next(); }).what(), std::string(error.what()));
    EXPECT_GE(pipeline.report().bad_records, 1U);
    EXPECT_EQ(pipeline.report().bad_record_list.at(0).key.substr(0, 7), "drawer/");
  }
}

TEST(PipelineBadRecords, MarkZeroesTheSampleAndClearsItsBit) {
  for (const auto& [copies, in_turn] : ways) {
    SmallRun run = run_with_bad(BadRecords::mark, copies, in_turn);
    run.options.epochs = 3;  // slots hold other batches' pixels by then
    run.options.slots.prefetch = 2;
    Pipeline pipeline = run.pipeline();
    std::size_t marked = 0;
    std::uint64_t position = 0;
    while (const Batch live = pipeline.next()) {
      const BatchContents batch = testing::contents(live);
      EXPECT_EQ(live.valid_count(), static_cast<std::size_t>(std::ranges::count(batch.valid, 1)));
      for (std::size_t sample = 0; sample < batch.indices.size(); ++sample, ++position) {
        const std::uint64_t record = run.sampler()(position);
        EXPECT_EQ(batch.indices[sample], record);
        ASSERT_EQ(batch.valid[sample], is_bad(record) ? 0 : 1) << "record " << record;
        if (!is_bad(record)) {
          EXPECT_TRUE(testing::is_stamped(batch, sample, record, Random(42, position).bits64()));
          continue;
        }
        ++marked;
        EXPECT_EQ(batch.labels[sample], 0);
        EXPECT_EQ(batch.draws[sample], 0U);
        EXPECT_TRUE(
            std::all_of(batch.images.begin() + static_cast<std::ptrdiff_t>(sample * 96),
                        batch.images.begin() + static_cast<std::ptrdiff_t>(sample * 96 + 96),
                        [](std::uint8_t byte) { return byte == 0; }))
            << "foreign pixels in a bad sample";
      }
    }
    EXPECT_EQ(marked, 30U);
    EXPECT_EQ(pipeline.report().bad_records, 30U);
  }
}

TEST(PipelineBadRecords, ReplaceDrawsOthersReproducibly) {
  std::vector<BatchContents> reference;
  for (const unsigned workers : {1U, 2U, 4U})
    for (const auto& [copies, in_turn] : ways) {
      SmallRun run = run_with_bad(BadRecords::replace, copies, in_turn);
      run.workers(workers);
      run.options.epochs = 2;
      run.options.slots.prefetch = workers;
      Pipeline pipeline = run.pipeline();
      const auto batches = take(pipeline);
      if (reference.empty()) reference = batches;
      ASSERT_EQ(batches, reference) << workers << " workers";
    }
  ASSERT_EQ(reference.size(), 26U);
  const Sampler sampler = run_with_bad(BadRecords::replace).sampler();
  std::uint64_t position = 0;
  std::set<std::uint64_t> replacements;
  for (const BatchContents& batch : reference)
    for (std::size_t sample = 0; sample < batch.indices.size(); ++sample, ++position) {
      const std::uint64_t planned = sampler(position);
      EXPECT_EQ(batch.valid[sample], 1);
      ASSERT_FALSE(is_bad(batch.indices[sample]));
      EXPECT_EQ(batch.labels[sample], testing::MemoryDataset::label_of(batch.indices[sample]));
      EXPECT_TRUE(testing::is_stamped(batch, sample, batch.indices[sample], batch.draws[sample]));
      if (is_bad(planned))
        replacements.insert(batch.indices[sample]);
      else
        EXPECT_EQ(batch.indices[sample], planned);
    }
  EXPECT_GT(replacements.size(), 10U)
      << "twenty bad samples were replaced by nearly the same records";
}

TEST(PipelineBadRecords, ReplaceContinuesTheSameAfterResuming) {
  SmallRun run = run_with_bad(BadRecords::replace);
  Pipeline whole = run.pipeline();
  const auto reference = take(whole);
  run.options.resume.from = State{.seed = run.options.seed, .position = 48};
  Pipeline resumed = run.pipeline();
  EXPECT_EQ(take(resumed), std::vector<BatchContents>(reference.begin() + 6, reference.end()));
}

TEST(PipelineBadRecords, ReplaceGivesUpAfterSixteenDraws) {
  SmallRun run(100);
  run.options.batch_size = 1;
  run.options.slots.prefetch = 1;
  run.options.bad_records = BadRecords::replace;
  run.workers(1);
  std::mutex mutex;
  std::vector<std::uint64_t> tried;
  run.transform->on_end = [&](const Record& record) {
    std::lock_guard lock(mutex);
    tried.push_back(record.index());
    return Status::bad("nothing is good enough");
  };
  Pipeline pipeline = run.pipeline();
  const Error error = error_of([&] { (void)pipeline.next(); });
  EXPECT_EQ(error.code(), ErrorCode::bad_record);
  EXPECT_THAT(error.what(), HasSubstr("nothing is good enough"));
  EXPECT_EQ(tried.size(), 17U) << "the record itself and 16 draws";
  EXPECT_GT(std::set<std::uint64_t>(tried.begin(), tried.end()).size(), 8U) << "the draws differ";
}

// Only a record that was read and cannot be made is bad. A lack of memory is not the record's
// fault.
TEST(PipelineBadRecords, ErrorsOfTheSystemEndTheRunWhateverThePolicy) {
  for (const BadRecords policy : {BadRecords::mark, BadRecords::replace})
    for (const bool in_dataset : {false, true})
      for (const bool memory : {false, true}) {
        const auto fail = [memory] {
          if (memory) throw std::bad_alloc();
          throw std::system_error(EMFILE, std::generic_category());
        };
        SmallRun run(100);
        run.options.bad_records = policy;
        if (in_dataset)
          run.dataset->on_read = [fail](std::uint64_t) { fail(); };
        else
          run.transform->on_end = [fail](const Record&) -> Status {
            fail();
            return Status::ok();
          };
        Pipeline pipeline = run.pipeline();
        const Error error = error_of([&] { (void)take(pipeline); });
        EXPECT_EQ(error.code(), in_dataset ? ErrorCode::io : ErrorCode::transform);
        EXPECT_THAT(error.what(),
                    HasSubstr(memory ? "there is not enough memory" : "Too many open files"));
        EXPECT_EQ(pipeline.report().bad_records, 0U);
      }
}

TEST(PipelineBadRecords, ReportHasCountKeysAndReasons) {
  SmallRun run = run_with_bad(BadRecords::mark);
  Pipeline pipeline = run.pipeline();
  (void)take(pipeline);
  for (int again = 0; again < 2; ++again) {
    const Report report = pipeline.report();
    EXPECT_EQ(report.bad_records, 10U);
    ASSERT_EQ(report.bad_record_list.size(), 10U);
    std::set<std::uint64_t> records;
    for (const BadRecord& bad : report.bad_record_list) {
      EXPECT_TRUE(is_bad(bad.index));
      EXPECT_EQ(bad.key, "drawer/" + std::to_string(bad.index) + ".rec");
      EXPECT_THAT(bad.reason,
                  HasSubstr(bad.index % 20 == 3 ? "checksum differs" : "no end of image"));
      records.insert(bad.index);
    }
    EXPECT_EQ(records.size(), 10U);
    pipeline.restart_report();  // the list of bad records stays
  }
}

TEST(PipelineBadRecords, ReportListsTheFirstHundredOnly) {
  SmallRun run(400);
  run.options.bad_records = BadRecords::mark;
  run.transform->on_end = [](const Record&) { return Status::bad("all of them"); };
  Pipeline pipeline = run.pipeline();
  (void)take(pipeline);
  EXPECT_EQ(pipeline.report().bad_records, 400U);
  EXPECT_EQ(pipeline.report().bad_record_list.size(), 100U);
}

// A bad record that is found while a report is made is in both or in neither.
TEST(PipelineBadRecords, ReportListsAsManyAsItCounts) {
  for (int round = 0; round < 20; ++round) {
    SmallRun run(80);
    run.workers(2);
    run.options.bad_records = BadRecords::mark;
    run.transform->on_end = [](const Record&) { return Status::bad("all of them"); };
    Pipeline pipeline = run.pipeline();
    std::vector<std::jthread> reporters;  // several, so that they wait for each other
    for (int reporter = 0; reporter < 4; ++reporter)
      reporters.emplace_back([&pipeline] {
        for (std::uint64_t counted = 0; counted < 80;) {
          const Report report = pipeline.report();
          counted = report.bad_records;
          EXPECT_EQ(report.bad_record_list.size(), counted);
        }
      });
    while (pipeline.next()) continue;
  }
}

TEST(PipelineBadRecords, PaddingThatRepeatsABadRecordStaysNotValid) {
  SmallRun run(5);
  run.options.order = Order::sequential();
  run.options.bad_records = BadRecords::mark;
  run.options.last_batch = LastBatch::pad;
  run.transform->on_end = [](const Record& record) {
    return record.index() == 1 ? Status::bad("torn") : Status::ok();
  };
  Pipeline pipeline = run.pipeline();
  const auto batches = take(pipeline);
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_THAT(batches[0].valid, ::testing::ElementsAre(1, 0, 1, 1, 1, 0, 0, 0));
  EXPECT_EQ(batches[0].labels[6], 0) << "the repeated bad record is zeroed too";
}

}  // namespace
}  // namespace millrace
