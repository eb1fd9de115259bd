// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/error.h>
#include <millrace/host_device.h>
#include <millrace/measure.h>

#include <set>
#include <stdexcept>
#include <vector>

#include "support/fake_dataset.h"
#include "support/fake_transform.h"

namespace millrace {
namespace {

using namespace testing;
using ::testing::ElementsAre;

class ReportFeed : public ::testing::Test {
 protected:
  Pipeline pipeline() {
    return Pipeline(std::make_shared<MemoryDataset>(80), transform_, std::make_shared<HostDevice>(),
                    {.batch_size = 8,
                     .seed = 1,
                     .epochs = 1,
                     .bad_records = BadRecords::mark,
                     .runtime = make_runtime({.workers = 2})});
  }
  measure::ReportFeed::Callback keep() {
    return [this](const Report& delta) { deltas_.push_back(delta); };
  }

  std::shared_ptr<StampTransform> transform_ = std::make_shared<StampTransform>();
  std::vector<Report> deltas_;
};

TEST_F(ReportFeed, TellsOfSoManyBatchesAtATime) {
  Pipeline run = pipeline();
  measure::ReportFeed feed(run, 4, keep());
  std::vector<std::size_t> told_after;
  while (const Batch batch = run.next()) {
    feed.count();
    told_after.push_back(deltas_.size());
  }
  EXPECT_THAT(told_after, ElementsAre(0, 0, 0, 1, 1, 1, 1, 2, 2, 2));
  feed.flush();
  feed.flush();
  ASSERT_EQ(deltas_.size(), 3U);
  std::vector<std::uint64_t> batches;
  for (const Report& delta : deltas_) {
    batches.push_back(delta.batches);
    EXPECT_EQ(delta.samples, 8 * delta.batches);
    EXPECT_GT(delta.seconds, 0);
    EXPECT_FALSE(delta.verdict.text.empty());
  }
  EXPECT_THAT(batches, ElementsAre(4, 4, 2));
  // The wait of each batch counts in one report; the last report is taken after the run's end.
  EXPECT_EQ(deltas_[0].stall.count, 4U);
  EXPECT_EQ(deltas_[1].stall.count, 4U);
  EXPECT_EQ(run.report().batches, 0U);
}

TEST_F(ReportFeed, LosesNothingBetweenTwoReports) {
  Pipeline run = pipeline();
  std::uint64_t made = 0;
  std::uint64_t batches = 0;
  while (const Batch batch = run.next()) {
    const Report taken = run.take_report();
    made += taken.samples_made;
    batches += taken.batches;
  }
  made += run.take_report().samples_made;
  EXPECT_EQ(made, transform_->made());
  EXPECT_EQ(batches, 10U);
  EXPECT_EQ(run.take_report().samples_made, 0U);
}

TEST_F(ReportFeed, BeginsWithTheNextBatch) {
  Pipeline run = pipeline();
  for (int batch = 0; batch < 3; ++batch) run.next();
  measure::ReportFeed feed(run, 2, keep());
  for (int batch = 0; batch < 2; ++batch) {
    run.next();
    feed.count();
  }
  ASSERT_EQ(deltas_.size(), 1U);
  EXPECT_EQ(deltas_[0].batches, 2U);
}

TEST_F(ReportFeed, TellsEachBadRecordOnce) {
  transform_->on_end = [](const Record& record) {
    return record.index() % 5 == 0 ? Status::bad("out of focus") : Status::ok();
  };
  Pipeline run = pipeline();
  measure::ReportFeed feed(run, 3, keep());
  while (const Batch batch = run.next()) feed.count();
  feed.flush();
  std::set<std::uint64_t> records;
  std::uint64_t count = 0;
  for (const Report& delta : deltas_) {
    count += delta.bad_records;
    for (const BadRecord& record : delta.bad_record_list)
      EXPECT_TRUE(records.insert(record.index).second) << record.index;
  }
  // Bad records that workers found before the feed began are not reported.
  EXPECT_GT(count, 0U);
  EXPECT_EQ(records.size(), count);
  EXPECT_EQ(run.report().bad_records, 16U);
}

TEST_F(ReportFeed, ThrowsWhatItsListenerThrows) {
  Pipeline run = pipeline();
  measure::ReportFeed feed(run, 1, [](const Report&) { throw std::runtime_error("no disk"); });
  run.next();
  EXPECT_THROW(feed.count(), std::runtime_error);
}

TEST_F(ReportFeed, RefusesToTellNobodyOrNever) {
  Pipeline run = pipeline();
  EXPECT_THROW(measure::ReportFeed(run, 0, keep()), Error);
  EXPECT_THROW(measure::ReportFeed(run, 1, {}), Error);
}

}  // namespace
}  // namespace millrace
