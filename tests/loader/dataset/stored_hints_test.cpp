// SPDX-License-Identifier: Apache-2.0
//
// Record hints that are stored beside a dataset's files. Whatever those files contain, a hint is a
// stored one of the dataset, some bytes or empty.
#include <gmock/gmock.h>
#include <millrace/concat_dataset.h>
#include <millrace/dataset_writer.h>
#include <millrace/detail/stored_hints.h>
#include <millrace/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "support/fake_dataset.h"
#include "support/small_run.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Hint = std::vector<std::byte>;

/// Returns hints of different lengths; empty for every fifth record.
Hint hint_of(std::uint64_t record) {
  if (record % 5 == 2) return {};
  Hint hint(1 + record * 37 % 101);
  for (std::size_t n = 0; n < hint.size(); ++n) hint[n] = static_cast<std::byte>(record + n);
  return hint;
}

Hint stored_hint(const Dataset& dataset, std::uint64_t record) {
  Hint hint(3);
  dataset.stored_hint(record, hint);
  return hint;
}

std::uint64_t write_hints(const std::shared_ptr<const Dataset>& dataset) {
  HintsWriter writer(dataset);
  for (std::uint64_t record = 0; record < dataset->size(); ++record) writer.append(hint_of(record));
  writer.finish();
  return writer.hints();
}

void expect_hints(const Dataset& dataset, std::uint64_t first = 0) {
  EXPECT_TRUE(dataset.has_stored_hints());
  EXPECT_THAT(dataset.facts().warnings, IsEmpty());
  for (std::uint64_t record = 0; record < dataset.size(); ++record)
    ASSERT_EQ(stored_hint(dataset, record), hint_of(first + record)) << record;
  EXPECT_THAT(stored_hint(dataset, dataset.size()), IsEmpty());
}

class StoredHints : public ::testing::Test {
 protected:
  static constexpr std::uint64_t records = 40;

  std::shared_ptr<const Dataset> write(const fs::path& path, WriterOptions options = {},
                                       std::uint64_t first = 0,
                                       std::uint64_t count = records) const {
    options.overwrite = true;
    DatasetWriter writer(path, options);
    for (std::uint64_t record = first; record < first + count; ++record)
      testing::append_record(writer, record);
    writer.finish();
    return open_dataset(path);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / ""))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  std::string read_hints() const {
    std::ifstream file(path_.string() + ".index", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void write_over_hints(const std::string& bytes) const {
    std::ofstream(path_.string() + ".index", std::ios::binary) << bytes;
  }

  const testing::TemporaryFolder folder_;
  const fs::path path_ = folder_ / "a.lmdb";
};

TEST_F(StoredHints, AreFoundByWhoOpensTheDatasetNext) {
  const auto before = write(path_);
  EXPECT_EQ(write_hints(before), records * 4 / 5);
  EXPECT_THAT(files(), ElementsAre("a.lmdb", "a.lmdb.index"));
  EXPECT_FALSE(before->has_stored_hints());
  EXPECT_THAT(stored_hint(*before, 0), IsEmpty());
  expect_hints(*open_dataset(path_));
  expect_hints(*open_dataset(path_, {.map = false}));
  const auto without = open_dataset(path_, {.hints = false});
  EXPECT_FALSE(without->has_stored_hints());
  EXPECT_THAT(stored_hint(*without, 0), IsEmpty());
  // A second time, which replaces the first.
  { const HintsWriter unfinished(before); }
  expect_hints(*open_dataset(path_));
  HintsWriter writer(before);
  for (std::uint64_t record = 0; record < records; ++record) writer.append({});
  writer.finish();
  EXPECT_THAT(stored_hint(*open_dataset(path_), 0), IsEmpty());
}

TEST_F(StoredHints, LieBesideEachShardAndEachDatasetOfSeveral) {
  const auto shards = write(path_, {.shards = 3, .source_items = records});
  EXPECT_EQ(write_hints(shards), records * 4 / 5);
  expect_hints(*open_dataset(path_));
  const auto other = write(folder_ / "b.lmdb", {}, records, 7);
  const auto empty = write(folder_ / "c.lmdb", {}, 0, 0);
  const auto all = concat_datasets({empty, open_dataset(path_), other, empty});
  EXPECT_TRUE(all->has_stored_hints());
  EXPECT_EQ(stored_hint(*all, records - 1), hint_of(records - 1));
  EXPECT_THAT(stored_hint(*all, records), IsEmpty());
  write_hints(concat_datasets({shards, other}));
  expect_hints(*open_dataset(folder_ / "b.lmdb"), records);
  EXPECT_EQ(files().size(), 2 * 3 + 1 + 2 + 1U);
}

TEST_F(StoredHints, GoWithTheDatasetThatIsReplaced) {
  write_hints(write(path_));
  write(path_);
  EXPECT_THAT(files(), ElementsAre("a.lmdb"));
  write_hints(write(path_, {.shards = 3, .source_items = records}));
  write(path_);
  EXPECT_THAT(files(), ElementsAre("a.lmdb"));
}

TEST_F(StoredHints, OfAnotherDatasetAreNotUsed) {
  write_hints(write(path_));
  for (const std::uint64_t count : {records, records - 1}) {
    write(folder_ / "b.lmdb", {}, 1, count);
    fs::copy_file(path_.string() + ".index", folder_ / "b.lmdb.index",
                  fs::copy_options::overwrite_existing);
    const auto other = open_dataset(folder_ / "b.lmdb");
    EXPECT_FALSE(other->has_stored_hints());
    EXPECT_THAT(other->facts().warnings,
                ElementsAre(HasSubstr("b.lmdb.index belongs to another dataset; it is not used")));
    const auto all = concat_datasets({open_dataset(path_), other});
    EXPECT_EQ(all->facts().warnings.size(), 1U);
    testing::SmallRun run(1);
    Pipeline pipeline(all, run.transform, run.device, run.options);
    EXPECT_THAT(pipeline.report().warnings,
                ::testing::Contains(HasSubstr("belongs to another dataset")));
  }
}

TEST_F(StoredHints, ThatAreDamagedAreBytesOrNone) {
  write_hints(write(path_));
  const std::string good = read_hints();
  const std::size_t end_of_table = 32 + 8 * (records + 1);
  Random random(3, 0);
  for (const bool mapped : {true, false}) {
    for (std::size_t at = 0; at < end_of_table; at += at < 48 || at > 340 ? 1 : 5) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ static_cast<int>(1 + random() % 255));
      write_over_hints(damaged);
      const auto dataset = open_dataset(path_, {.map = mapped});
      std::size_t others = 0;
      for (std::uint64_t record = 0; record < records; ++record)
        others += stored_hint(*dataset, record) != hint_of(record) ? 1 : 0;
      ASSERT_EQ(dataset->has_stored_hints(), dataset->facts().warnings.empty());
      const bool is_used = at >= 32 && at < end_of_table - 8;
      ASSERT_EQ(dataset->has_stored_hints(), is_used) << at;
      ASSERT_LE(others, is_used ? 2U : records) << "each number is of two notes";
    }
    for (std::size_t size = 0; size < good.size(); size += 1 + size / 50) {
      write_over_hints(good.substr(0, size));
      ASSERT_EQ(open_dataset(path_, {.map = mapped})->facts().warnings.size(), 1U) << size;
    }
  }
  write_over_hints(good);
  const auto dataset = open_dataset(path_);
  const auto unmapped = open_dataset(path_, {.map = false});
  fs::resize_file(path_.string() + ".index", end_of_table);
  EXPECT_THAT(stored_hint(*unmapped, records - 1), IsEmpty());
  EXPECT_EQ(stored_hint(*dataset, records - 1).size(), hint_of(records - 1).size()) << "zeros";
  fs::remove(path_.string() + ".index");
  fs::create_directory(path_.string() + ".index");
  EXPECT_THAT(open_dataset(path_)->facts().warnings,
              ElementsAre(HasSubstr("is not a file of record hints")));
}

TEST_F(StoredHints, AreWrittenWholeOrNotAtAll) {
  const auto dataset = write(path_);
  {
    HintsWriter writer(dataset);
    EXPECT_THAT(error_of([&] { HintsWriter second(dataset); }).what(),
                HasSubstr("a.lmdb.index.replacement is being written by another writer"));
    writer.append(hint_of(0));
    EXPECT_EQ(error_of([&] { writer.finish(); }).code(), ErrorCode::invalid_argument);
  }
  EXPECT_THAT(files(), ElementsAre("a.lmdb"));
  HintsWriter writer(dataset);
  for (std::uint64_t record = 0; record < records; ++record) writer.append(hint_of(record));
  EXPECT_EQ(error_of([&] { writer.append({}); }).code(), ErrorCode::invalid_argument);
  const auto made_up = std::make_shared<testing::MemoryDataset>(5);
  EXPECT_THAT(error_of([&] { HintsWriter of_no_file(made_up); }).what(),
              HasSubstr("is not a single file"));

  for (const rlim_t bytes : {1000U, 10U}) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit small = before;
    small.rlim_cur = bytes;
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const Error full = error_of([&] { write_hints(dataset); });
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old_handler);
    EXPECT_EQ(full.code(), ErrorCode::io);
    EXPECT_THAT(full.what(), HasSubstr("a.lmdb.index cannot be written: "));
  }
  expect_hints(*open_dataset(path_));
  EXPECT_THAT(files(), ElementsAre("a.lmdb", "a.lmdb.index"));
}

TEST_F(StoredHints, TakeNoOtherFilesPlace) {
  const fs::path index = path_.string() + ".index";
  const auto dataset = write(path_);
  std::ofstream(index) << "a list of mine";
  EXPECT_EQ(error_of([&] { HintsWriter writer(dataset); }).code(), ErrorCode::already_exists);
  write(path_);
  EXPECT_EQ(read_hints(), "a list of mine");
  fs::remove(index);
  // A pipe without a writer.
  ASSERT_EQ(mkfifo(index.c_str(), 0600), 0);
  EXPECT_THAT(open_dataset(path_)->facts().warnings,
              ElementsAre(HasSubstr("is not a file of record hints")));
  fs::remove(index);
  // The rest of a killed writer.
  std::ofstream(index.string() + ".replacement") << "MRnotes1";
  write_hints(dataset);
  EXPECT_THAT(files(), ElementsAre("a.lmdb", "a.lmdb.index"));
  std::ofstream(index.string() + ".replacement") << "MRnotes1";
  write(path_, {}, 3);
  EXPECT_THAT(files(), ElementsAre("a.lmdb"));
  EXPECT_EQ(error_of([&] { HintsWriter writer(dataset); }).code(), ErrorCode::invalid_argument)
      << "the dataset is another one by now";
  fs::create_symlink(path_, folder_ / "link.lmdb");
  write_hints(open_dataset(folder_ / "link.lmdb"));
  EXPECT_THAT(files(), ElementsAre("a.lmdb", "a.lmdb.index", "link.lmdb"));
  expect_hints(*open_dataset(folder_ / "link.lmdb"));
  EXPECT_FALSE(open_dataset(path_, {.verify_checksums = false})->has_stored_hints());
}

/// Makes samples of all records. Checks each record's hint and makes it one byte longer.
std::size_t run_over(const std::shared_ptr<const Dataset>& dataset,
                     const std::shared_ptr<Runtime>& runtime, std::size_t index_bytes,
                     std::size_t expected_more) {
  std::atomic<std::size_t> right{0};
  auto transform = std::make_shared<testing::FunctionTransform>(
      SampleSpec({{"label", DType::int64, {}}}),
      [&](const Record& record, Random&, Sample& sample) {
        sample["label"].as<std::int64_t>()[0] = 0;
        EXPECT_TRUE(sample.has_hints());
        const auto found = sample.hint();
        Hint hint = hint_of(record.index());
        hint.resize(hint.size() + expected_more);
        right += std::ranges::equal(found, hint) ? 1 : 0;
        hint.push_back({});
        sample.keep_hint(hint);
        return Status::ok();
      });
  PipelineOptions options;
  options.batch_size = 8;
  options.epochs = 1;
  options.index_bytes = index_bytes;
  options.runtime = runtime;
  Pipeline pipeline(dataset, transform, std::make_shared<HostDevice>(), options);
  while (const Batch batch = pipeline.next()) continue;
  return right;
}

TEST_F(StoredHints, AreThoseOfRecordsWithoutANewerOne) {
  write_hints(write(path_));
  const auto dataset = open_dataset(path_);
  const auto runtime = make_runtime({.workers = 2});
  EXPECT_EQ(run_over(dataset, runtime, 0, 0), records) << "none are kept";
  EXPECT_EQ(run_over(dataset, runtime, 0, 0), records);
  EXPECT_EQ(run_over(dataset, runtime, 1 << 20, 0), records);
  EXPECT_EQ(run_over(dataset, runtime, 1 << 20, 1), records);
  EXPECT_EQ(save_hints(dataset, *runtime), records) << "with a byte, all have one";
  const auto saved = open_dataset(path_);
  for (std::uint64_t record = 0; record < records; ++record)
    EXPECT_EQ(stored_hint(*saved, record).size(), hint_of(record).size() + 2);
  // A runtime without new hints keeps the stored ones.
  EXPECT_EQ(save_hints(saved, *make_runtime({.workers = 1})), records);
  EXPECT_EQ(stored_hint(*open_dataset(path_), 3).size(), hint_of(3).size() + 2);
}

// A dataset that does not use them keeps them, and so does one that was open before they were
// stored.
TEST_F(StoredHints, StayIfTheDatasetDoesNotUseThem) {
  const auto before = write(path_, {.shards = 3, .source_items = records});
  const auto other = write(folder_ / "b.lmdb", {}, records, 7);
  write_hints(concat_datasets({before, other}));
  const auto unused = open_dataset(path_, {.hints = false});
  for (const auto& dataset : {before, unused, concat_datasets({unused, other})}) {
    const std::uint64_t hints = save_hints(dataset, *make_runtime({.workers = 1}));
    EXPECT_EQ(hints, (dataset->size() * 4 + 4) / 5);
    expect_hints(*open_dataset(path_));
    expect_hints(*open_dataset(folder_ / "b.lmdb"), records);
  }
}

// They would replace hints that are bound to the checksums by others that no later run can use.
TEST_F(StoredHints, AreNotSavedWithoutTheirChecksums) {
  write_hints(write(path_));
  const auto runtime = make_runtime({.workers = 1});
  const auto compared = open_dataset(path_);
  const auto unchecked = open_dataset(path_, {.verify_checksums = false});
  for (const auto& dataset : {unchecked, concat_datasets({compared, unchecked})}) {
    const Error error = error_of([&] { (void)save_hints(dataset, *runtime); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(path_.string()));
    EXPECT_THAT(error.what(), HasSubstr("OpenOptions::verify_checksums"));
  }
  expect_hints(*open_dataset(path_));
}

}  // namespace
}  // namespace millrace
