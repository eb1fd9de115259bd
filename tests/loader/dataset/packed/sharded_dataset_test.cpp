// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "dataset/packed/shard_writer.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

constexpr std::uint64_t sharded_records = 60;

/// Writes records into shards of `count` items each.
void write_shards(const fs::path& path, std::uint64_t shards, std::uint64_t count = sharded_records,
                  std::uint64_t first = 0) {
  WriterOptions options;
  options.overwrite = true;
  options.shards = shards;
  options.source_items = count;
  DatasetWriter writer(path, options);
  writer.set_classes({"cat", "dog"});
  for (std::uint64_t index = 0; index < count; ++index) append_record(writer, first + index);
  EXPECT_EQ(writer.size(), count);
  writer.finish();
}

class ShardedDataset : public ::testing::Test {
 protected:
  ShardedDataset() { write_shards(path_, 4); }

  Error opening() const {
    return thrown_by([&] { (void)open_dataset(path_); });
  }
  nlohmann::json index() const { return nlohmann::json::parse(file_contents(path_)); }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_ / "a.lmdb";
  const fs::path second_ = folder_ / "a-00001-of-00004.lmdb";
};

TEST_F(ShardedDataset, IsOneDataset) {
  const auto dataset = open_dataset(path_);
  EXPECT_EQ(dataset->size(), sharded_records);
  EXPECT_EQ(dataset->name(), path_.string());
  EXPECT_THAT(dataset->classes(), ElementsAre("cat", "dog"));
  const auto reader = dataset->make_reader();
  for (std::uint64_t step = 0; step < 3 * sharded_records; ++step) {
    const std::uint64_t index = step * 23 % sharded_records;
    expect_record(reader->read(index), index);
    EXPECT_EQ(dataset->key(index), stored_path(index));
  }
  EXPECT_EQ(dataset->key(sharded_records), "record 60");
  dataset->prefetch(std::vector<std::uint64_t>{0, 59, 20, 60, UINT64_MAX});
  const Error beyond = thrown_by([&] { (void)reader->read(sharded_records); });
  EXPECT_EQ(beyond.code(), ErrorCode::invalid_argument);
  EXPECT_EQ(beyond.record(), sharded_records);
}

TEST_F(ShardedDataset, HasTheFingerprintOfOneFile) {
  write_dataset(folder_ / "whole.lmdb", sharded_records);
  EXPECT_THAT(
      file_contents(folder_ / "whole.lmdb"),
      HasSubstr("\"fingerprint\":\"" + index().at("fingerprint").get<std::string>() + "\""));
  EXPECT_NE(index().at("shards").at(0).at("fingerprint"),
            index().at("shards").at(1).at("fingerprint"));
}

TEST_F(ShardedDataset, ItsReaderGoesOnBesideOthers) {
  write_dataset(folder_ / "b.lmdb", 10);
  const auto other = open_dataset(folder_ / "b.lmdb")->make_reader();
  for (int round = 0; round < 10; ++round) {
    const auto reader = open_dataset(path_)->make_reader();
    expect_record(reader->read(59), 59);
    expect_record(other->read(9), 9);
    expect_record(reader->read(0), 0);
  }
}

TEST_F(ShardedDataset, IsReadByManyThreadsAtOnce) {
  const auto dataset = open_dataset(path_);
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      const auto reader = dataset->make_reader();
      for (std::uint64_t step = 0; step < 2 * sharded_records; ++step) {
        const std::uint64_t index = (step * 7 + thread * 15) % sharded_records;
        expect_record(reader->read(index), index);
        if (step % 8 == 0)
          dataset->prefetch(std::vector<std::uint64_t>{index, (index + 31) % sharded_records});
      }
    });
}

TEST_F(ShardedDataset, IsFoundWhereverItsFilesAreTogether) {
  fs::create_directory(folder_ / "moved");
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    if (entry.is_regular_file())
      fs::rename(entry.path(), folder_ / "moved" / entry.path().filename());
  EXPECT_EQ(open_dataset(folder_ / "moved" / "a.lmdb")->size(), sharded_records);
  fs::create_symlink(folder_ / "moved" / "a.lmdb", folder_ / "link.lmdb");
  EXPECT_EQ(open_dataset(folder_ / "link.lmdb")->size(), sharded_records);
}

TEST_F(ShardedDataset, RefusesAMissingShard) {
  fs::remove(second_);
  const Error error = opening();
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.what(), HasSubstr("a shard of " + path_.string() +
                                      " is missing: " + second_.string() + " does not exist"));
}

TEST_F(ShardedDataset, RefusesAShardOfAnother) {
  write_shards(folder_ / "b.lmdb", 4, sharded_records, 1000);
  write_shards(folder_ / "c.lmdb", 4, sharded_records + 4);
  for (const char* other :
       {"b-00001-of-00004.lmdb", "c-00001-of-00004.lmdb", "a-00002-of-00004.lmdb"}) {
    fs::copy_file(folder_ / other, second_, fs::copy_options::overwrite_existing);
    const Error error = opening();
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    EXPECT_THAT(error.what(), HasSubstr("a shard of " + path_.string() +
                                        " is another one than it lists: " + second_.string()));
  }
}

TEST_F(ShardedDataset, RefusesAnIncompleteShard) {
  fs::remove(second_);
  { const DatasetWriter writer(second_); }
  const Error incomplete = opening();
  EXPECT_EQ(incomplete.code(), ErrorCode::incomplete);
  EXPECT_THAT(incomplete.what(), HasSubstr(second_.string()));
  write_file(second_, "");
  EXPECT_EQ(opening().code(), ErrorCode::incomplete);
  write_file(second_, std::string(9000, 'x'));
  EXPECT_EQ(opening().code(), ErrorCode::corrupt);
  fs::remove(second_);
  fs::copy_file(path_, second_);
  EXPECT_THAT(opening().what(), HasSubstr("lists shards itself"));
}

TEST_F(ShardedDataset, NeverTrustsItsIndex) {
  const nlohmann::json good = index();
  const std::string text = file_contents(path_);
  for (std::size_t length = 1; length < text.size() - 2; length += 37) {
    write_file(path_, text.substr(0, length));
    EXPECT_EQ(opening().code(), ErrorCode::corrupt);
  }
  const auto refused = [&](const std::function<void(nlohmann::json&)>& change,
                           const std::string& why) {
    nlohmann::json changed = good;
    change(changed);
    write_file(path_, changed.dump());
    const Error error = opening();
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    EXPECT_THAT(error.what(), HasSubstr(path_.string()));
    EXPECT_THAT(error.what(), HasSubstr(why));
  };
  refused([](auto& json) { json["millrace_shards"] = 2; }, "newer");
  refused([](auto& json) { json["shards"].erase(2); }, "do not add up");
  refused([](auto& json) { std::swap(json["shards"][0], json["shards"][1]); }, "do not add up");
  // Converting these to 64 bits would be undefined behaviour.
  refused([](auto& json) { json["millrace_shards"] = 3.3e48; }, "must be an integer");
  refused([](auto& json) { json["records"] = 1.5; }, "\"records\" is 1.5");
  refused([](auto& json) { json["shards"][0]["records"] = -1; }, "\"records\" is -1");
  refused([](auto& json) { json["fingerprint"] = "xyz"; }, "xyz");
  for (const char* name : {"../a-00001-of-00004.lmdb", "/etc/passwd", "", ".."})
    refused([&](auto& json) { json["shards"][1]["file"] = name; },
            "is not the name of a file beside it");
  for (const char* key : {"shards", "complete", "records", "plan"})
    refused([&](auto& json) { json.erase(key); }, key);
  write_file(path_, good.dump());
  EXPECT_EQ(open_dataset(path_)->size(), sharded_records);
}

TEST_F(ShardedDataset, ABadRecordHasItsNumberInTheWhole) {
  const std::string bytes = file_contents(second_);
  const std::vector<std::byte> stored = stored_bytes(20);
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(stored.data()), 32));
  ASSERT_NE(at, std::string::npos);
  std::string damaged = bytes;
  damaged[at] = static_cast<char>(~damaged[at]);
  write_file(second_, damaged);
  const auto dataset = open_dataset(path_);
  const auto reader = dataset->make_reader();
  expect_record(reader->read(19), 19);
  const Error error = thrown_by([&] { (void)reader->read(20); });
  EXPECT_EQ(error.code(), ErrorCode::bad_record);
  EXPECT_EQ(error.record(), 20u);
  EXPECT_EQ(error.reason(), "record 5 of " + second_.string() +
                                ": its bytes do not match its checksum: the file is damaged");
  EXPECT_THAT(error.what(), HasSubstr("record 20 of " + path_.string() + ": record 5 (" +
                                      stored_path(20) + ") of " + second_.string()));
  expect_record(reader->read(21), 21);
}

TEST(ShardWriter, GivesEqualSharesOfAnyNumberOfItems) {
  for (std::uint64_t item = 0; item < 10; ++item) EXPECT_EQ(shard_of(item, 4, 10), item * 4 / 10);
  constexpr std::uint64_t items = UINT64_MAX;
  EXPECT_EQ(shard_of(0, 99'999, items), 0U);
  EXPECT_EQ(shard_of(items / 2, 4, items), 1U);
  EXPECT_EQ(shard_of(items / 2 + 1, 4, items), 2U);
  EXPECT_EQ(shard_of(items - 1, 99'999, items), 99'998U);
}

TEST(ShardWriter, IsIncompleteUntilFinished) {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.lmdb";
  WriterOptions options;
  options.commit_bytes = 1;
  options.shard_bytes = 50000;
  {
    DatasetWriter writer(path, options);
    for (std::uint64_t index = 0; index < 30; ++index) {
      append_record(writer, index);
      const Error error = thrown_by([&] { (void)open_dataset(path); });
      EXPECT_EQ(error.code(), ErrorCode::incomplete);
      EXPECT_THAT(error.what(), HasSubstr("is being written at this moment (" +
                                          std::to_string(index + 1) + " record"));
    }
    const Error second = thrown_by([&] {
      WriterOptions again = options;
      again.resume = true;
      DatasetWriter other(path, again);
    });
    EXPECT_EQ(second.code(), ErrorCode::already_exists);
    EXPECT_THAT(second.what(), HasSubstr("another writer"));
  }
  EXPECT_THAT(thrown_by([&] { (void)open_dataset(path); }).what(),
              HasSubstr("was interrupted after 30 records were committed"));
  options.resume = true;
  DatasetWriter writer(path, options);
  EXPECT_EQ(writer.items(), 30u);
  writer.finish();
  EXPECT_EQ(open_dataset(path)->size(), 30u);
}

TEST(ShardWriter, AnEmptyDatasetIsComplete) {
  const TemporaryFolder folder;
  write_shards(folder / "a.lmdb", 3, 1);
  EXPECT_EQ(open_dataset(folder / "a.lmdb")->size(), 1u);
  WriterOptions options;
  options.shard_bytes = 1000;
  DatasetWriter writer(folder / "b.lmdb", options);
  writer.finish();
  writer.finish();
  EXPECT_EQ(open_dataset(folder / "b.lmdb")->size(), 0u);
  EXPECT_EQ(thrown_by([&] { append_record(writer, 0); }).code(), ErrorCode::invalid_argument);
}

TEST(ShardWriter, WantsTheSameFieldsInAllShards) {
  const TemporaryFolder folder;
  WriterOptions options;
  options.shard_bytes = 1;
  DatasetWriter writer(folder / "a.lmdb", options);
  append_record(writer, 0);
  const RecordField other[] = {{"image", {}}};
  EXPECT_THAT(thrown_by([&] { writer.append(other); }).what(),
              HasSubstr("the records before it have image, label, path"));
  append_record(writer, 1);
  writer.finish();
  EXPECT_EQ(open_dataset(folder / "a.lmdb")->size(), 2u);
}

TEST(ShardWriter, WantsOptionsThatMakeSense) {
  const TemporaryFolder folder;
  const auto refused = [&](WriterOptions options) {
    const Error error =
        thrown_by([&] { DatasetWriter writer(folder / "a.lmdb", std::move(options)); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_FALSE(fs::exists(folder / "a.lmdb"));
    return std::string(error.what());
  };
  EXPECT_THAT(refused({.shards = 2}), HasSubstr("source_items"));
  EXPECT_THAT(refused({.shards = 2, .source_items = 9, .shard_bytes = 9}),
              HasSubstr("one of the two"));
  EXPECT_THAT(refused({.shards = 100000, .source_items = 9}), HasSubstr("99999"));
}

}  // namespace
}  // namespace millrace
