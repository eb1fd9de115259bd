// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/concat_dataset.h>
#include <millrace/dataset_writer.h>

#include <thread>
#include <utility>

#include "support/fake_dataset.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing;

/// Writes the records from `first` on into a file of their own.
std::shared_ptr<const Dataset> stored(const std::filesystem::path& path, std::uint64_t first,
                                      std::uint64_t count,
                                      std::vector<std::string> classes = {"cat", "dog"}) {
  DatasetWriter writer(path, {.overwrite = true});
  for (std::uint64_t index = first; index < first + count; ++index) append_record(writer, index);
  writer.set_classes(std::move(classes));
  writer.finish();
  return open_dataset(path);
}

class ConcatDataset : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::shared_ptr<const Dataset> first_ = stored(folder_ / "a.lmdb", 0, 20);
  const std::shared_ptr<const Dataset> second_ = stored(folder_ / "b.lmdb", 20, 15);
  const std::shared_ptr<const Dataset> empty_ = stored(folder_ / "c.lmdb", 0, 0);
};

TEST_F(ConcatDataset, NumbersRunOn) {
  const auto all = concat_datasets({empty_, first_, empty_, second_, empty_});
  EXPECT_EQ(all->size(), 35U);
  const auto reader = all->make_reader();
  for (std::uint64_t step = 0; step < 105; ++step) {
    const std::uint64_t index = step * 17 % 35;  // random access
    expect_record(reader->read(index), index);
    EXPECT_EQ(all->key(index), stored_path(index));
  }
  EXPECT_EQ(all->stored_record(21)->file, second_->name());
  EXPECT_EQ(all->stored_record(21)->checksum, second_->stored_record(1)->checksum);
  EXPECT_FALSE(all->stored_record(35));
  EXPECT_EQ(all->key(35), "record 35");
}

TEST_F(ConcatDataset, SaysOfItselfWhatOneDatasetWould) {
  const auto whole = stored(folder_ / "whole.lmdb", 0, 35);
  const auto all = concat_datasets({first_, second_});
  EXPECT_EQ(all->facts().fingerprint, whole->facts().fingerprint);
  EXPECT_NE(concat_datasets({second_, first_})->facts().fingerprint, whole->facts().fingerprint);
  EXPECT_EQ(all->facts().fields, whole->facts().fields);
  EXPECT_EQ(all->facts().created_by, whole->facts().created_by);
  EXPECT_THAT(all->facts().files, ElementsAre(first_->name(), second_->name()));
  EXPECT_THAT(all->classes(), ElementsAre("cat", "dog"));
  EXPECT_EQ(all->name(), first_->name() + " + " + second_->name());
}

TEST_F(ConcatDataset, MayBeOfItselfAndOfOthers) {
  const auto all = concat_datasets({first_, concat_datasets({first_, second_}), first_});
  EXPECT_EQ(all->size(), 75U);
  const auto reader = all->make_reader();
  for (std::uint64_t index = 0; index < 75; ++index) {
    const Record record = reader->read(index);
    EXPECT_EQ(record.index(), index);
    EXPECT_EQ(record.text("path"), stored_path(index < 20   ? index
                                               : index < 55 ? index - 20
                                                            : index - 55));
  }
}

TEST_F(ConcatDataset, TellsPartsOfTheirOwnRecords) {
  const auto front = std::make_shared<MemoryDataset>(10);
  const auto back = std::make_shared<MemoryDataset>(5);
  std::vector<std::uint64_t> told;
  back->on_prefetch = [&](std::span<const std::uint64_t> indices) {
    told.assign(indices.begin(), indices.end());
  };
  const auto all = concat_datasets({front, back});
  all->prefetch(std::vector<std::uint64_t>{12, 3, 14, 99});
  EXPECT_THAT(told, ElementsAre(2, 4));
  EXPECT_EQ(front->prefetched(), 1U);
  EXPECT_EQ(all->key(11), "drawer/1.rec");
  EXPECT_EQ(all->facts().fingerprint, std::nullopt);
  EXPECT_THAT(all->facts().fields, IsEmpty());
  EXPECT_THAT(concat_datasets({front, first_})->classes(), ElementsAre("cat", "dog"));
  EXPECT_EQ(concat_datasets({front, first_})->facts().fingerprint, std::nullopt)
      << "of only some of the records";
}

TEST_F(ConcatDataset, AReaderHasOneOfEachPartThatItReadFrom) {
  auto front = std::make_shared<MemoryDataset>(10);
  const auto back = std::make_shared<MemoryDataset>(5);
  const auto reader = concat_datasets({front, back})->make_reader();
  EXPECT_EQ(front->readers() + back->readers(), 0U);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(reader->read(3).index(), 3U);
  EXPECT_EQ(front->readers(), 1U);
  EXPECT_EQ(back->readers(), 0U);
  const std::weak_ptr<const Dataset> part = std::exchange(front, nullptr);
  EXPECT_EQ(reader->read(12).integer("label"), MemoryDataset::label_of(2));
  EXPECT_EQ(reader->read(9).integer("label"), MemoryDataset::label_of(9));
  EXPECT_EQ(back->readers(), 1U);
  EXPECT_FALSE(part.expired()) << "the reader keeps what it reads from";
}

TEST_F(ConcatDataset, EachThreadHasAReaderOfItsOwn) {
  const auto memory = std::make_shared<MemoryDataset>(40);
  const auto all = concat_datasets({first_, memory, second_});
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      const auto reader = all->make_reader();
      for (std::uint64_t step = 0; step < 600; ++step) {
        const std::uint64_t index = (step * 7 + thread * 19) % 75;
        const Record record = reader->read(index);
        ASSERT_EQ(record.index(), index);
        ASSERT_EQ(record.integer("label"), index < 20 || index >= 60
                                               ? static_cast<std::int64_t>(index % 40) - 5
                                               : MemoryDataset::label_of(index - 20));
      }
    });
  threads.clear();
  EXPECT_EQ(memory->readers(), 4U);
}

TEST_F(ConcatDataset, ErrorsSayWhichRecordOfWhich) {
  const auto back = std::make_shared<MemoryDataset>(5);
  back->on_read = [](std::uint64_t) { throw Error(ErrorCode::bad_record, "checksum differs"); };
  const auto all = concat_datasets({first_, back});
  const auto reader = all->make_reader();
  const Error error = thrown_by([&] { (void)reader->read(23); });
  EXPECT_EQ(error.code(), ErrorCode::bad_record);
  EXPECT_EQ(error.record(), 23U);
  EXPECT_EQ(error.reason(), "record 3 of memory: checksum differs");
  EXPECT_THAT(error.what(),
              HasSubstr("record 23 of " + first_->name() + " + memory: checksum differs"));
  EXPECT_EQ(thrown_by([&] { (void)reader->read(25); }).code(), ErrorCode::invalid_argument);
}

TEST_F(ConcatDataset, RefusesWhatDoesNotGoTogether) {
  const auto message = [](std::vector<std::shared_ptr<const Dataset>> parts) {
    const Error error = thrown_by([&] { (void)concat_datasets(std::move(parts)); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return std::string(error.what());
  };
  EXPECT_THAT(message({}), HasSubstr("no datasets"));
  EXPECT_THAT(message({first_, nullptr}), HasSubstr("dataset 1 is null"));
  const auto other = stored(folder_ / "other.lmdb", 0, 3, {"cat", "bird"});
  EXPECT_THAT(message({first_, other}), HasSubstr("label 1 is \"dog\" in " + first_->name() +
                                                  " and \"bird\" in " + other->name()));
  const auto longer = stored(folder_ / "longer.lmdb", 0, 3, {"cat", "dog", "cow"});
  EXPECT_THAT(message({first_, longer}),
              HasSubstr("label 2 is no class in " + first_->name() + " and \"cow\" in "));
}

}  // namespace
}  // namespace millrace
