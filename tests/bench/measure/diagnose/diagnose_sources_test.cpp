// SPDX-License-Identifier: Apache-2.0
#include "measure/diagnose/diagnose_sources.h"

#include <gmock/gmock.h>
#include <millrace/concat_dataset.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <vector>

#include "support/fake_dataset.h"
#include "support/fake_transform.h"
#include "support/pictures.h"
#include "support/temporary_folder.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

std::set<std::int64_t> labels_of(const Dataset& dataset) {
  std::set<std::int64_t> labels;
  const auto reader = dataset.make_reader();
  for (std::uint64_t index = 0; index < dataset.size(); ++index)
    labels.insert(reader->read(index).integer("label"));
  return labels;
}

TEST(SampledDataset, HasSoManyDifferentRecordsScatteredOverTheDataset) {
  const auto all = std::make_shared<testing::MemoryDataset>(1000);
  const SampledDataset sample(all, 100, 5);
  EXPECT_EQ(sample.size(), 100u);
  const std::set<std::int64_t> labels = labels_of(sample);
  EXPECT_EQ(labels.size(), 100u);
  EXPECT_GT(*labels.rbegin(), testing::MemoryDataset::label_of(900));
  EXPECT_LT(*labels.begin(), testing::MemoryDataset::label_of(100));
  EXPECT_EQ(labels_of(SampledDataset(all, 100, 5)), labels);
  EXPECT_NE(labels_of(SampledDataset(all, 100, 6)), labels);
}

TEST(SampledDataset, OfAllRecordsHasAll) {
  const auto all = std::make_shared<testing::MemoryDataset>(37);
  EXPECT_EQ(labels_of(SampledDataset(all, 37, 1)), labels_of(*all));
}

TEST(SampledDataset, PassesPrefetchOnInTheDatasetsNumbers) {
  const auto all = std::make_shared<testing::MemoryDataset>(1000);
  std::vector<std::uint64_t> told;
  all->on_prefetch = [&](std::span<const std::uint64_t> indices) {
    told.assign(indices.begin(), indices.end());
  };
  const SampledDataset sample(all, 10, 5);
  const std::vector<std::uint64_t> wanted{0, 7, 99};  // the last is not among its records
  sample.prefetch(wanted);
  const auto reader = sample.make_reader();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0], reader->read(0).index());
  EXPECT_EQ(told[1], reader->read(7).index());
}

class FilesWithRecords : public ::testing::Test {
 protected:
  FilesWithRecords() {
    for (const char* name : {"a.lmdb", "b.lmdb"})
      testing::write_pictures(folder_ / name, testing::pictures(2, 8, 8));
    fs::create_directories(folder_ / "images" / "cat");
    for (const char* name : {"0.jpg", "1.jpg", "2.jpg"})
      std::ofstream(folder_ / "images" / "cat" / name) << "bytes";
  }

  std::shared_ptr<const Dataset> open(const char* name) const {
    return open_dataset(folder_ / name);
  }
  fs::path image(const char* name) const { return folder_ / "images" / "cat" / name; }

  testing::TemporaryFolder folder_;
};

TEST_F(FilesWithRecords, AreThoseOfAllParts) {
  const auto images = concat_datasets({open("images"), open("a.lmdb")});
  const std::vector<fs::path> all{image("0.jpg"), image("1.jpg"), image("2.jpg"),
                                  folder_ / "a.lmdb"};
  EXPECT_THAT(files_with_records(*images), ::testing::UnorderedElementsAreArray(all));
  const auto files = concat_datasets({open("a.lmdb"), open("images")});
  EXPECT_THAT(files_with_records(*files), ::testing::UnorderedElementsAreArray(all));
}

TEST_F(FilesWithRecords, AreCountedOnce) {
  fs::create_symlink(folder_ / "a.lmdb", folder_ / "c.lmdb");
  const auto twice = concat_datasets(
      {open("a.lmdb"), concat_datasets({open("b.lmdb"), open("c.lmdb")}), open("a.lmdb")});
  EXPECT_THAT(files_with_records(*twice), ElementsAre(folder_ / "a.lmdb", folder_ / "b.lmdb"));
}

TEST_F(FilesWithRecords, AreFoundThoughTheFirstIsMissing) {
  const auto images = open("images");
  fs::remove(image("0.jpg"));
  EXPECT_THAT(files_with_records(*images), ElementsAre(image("1.jpg"), image("2.jpg")));
  fs::remove(image("1.jpg"));
  fs::remove(image("2.jpg"));
  EXPECT_THAT(files_with_records(*images), ::testing::IsEmpty());
}

TEST(ReadySamples, RunThroughAPipelineWithoutReadingOrMaking) {
  const auto like = std::make_shared<testing::StampTransform>();
  const auto ready = ready_samples(like);
  EXPECT_EQ(ready->spec().bytes_per_sample(), like->spec().bytes_per_sample());
  const auto device = std::make_shared<HostDevice>(HostDeviceOptions{.copies = true});
  Pipeline pipeline(std::make_shared<EmptyRecords>(20), ready, device,
                    {.batch_size = 8, .epochs = 1});
  std::size_t samples = 0;
  while (Batch batch = pipeline.next()) samples += batch.size();
  EXPECT_EQ(samples, 20u);
}

}  // namespace
}  // namespace millrace::cli
