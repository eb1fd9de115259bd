// SPDX-License-Identifier: Apache-2.0
//
// `millrace index`, and the stored index in the other commands.
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/detail/stored_hints.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/damaged_files.h"
#include "support/jpeg_samples.h"
#include "support/packs.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace testing;
using Json = nlohmann::json;
using Result = RunningProgram::Result;

class Index : public ::testing::Test {
 protected:
  Index() {
    for (unsigned image = 0; image < 30; ++image)
      write_bytes(folder_ / "photos" / (std::to_string(100 + image) + ".jpg"),
                  encode(noise(200 + static_cast<int>(image), 150, image), {}));
    write_bytes(folder_ / "photos" / "200.jpg", encode(noise(90, 80, 77), {.arithmetic = true}));
  }

  void pack_plain() const {
    const Result packed = pack(folder_ / "photos", set_, {"--index", "none"});
    ASSERT_EQ(packed.exit_code, 0) << packed.err;
    EXPECT_THAT(packed.out, Not(HasSubstr("indexed")));
    ASSERT_FALSE(fs::exists(index_));
  }
  Result run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin() + 1, set_);
    return millrace_command(arguments);
  }
  Json bench(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"bench", "--batches", "6", "--batch-size", "16", "--size", "48",
                               "--warmup", "0", "--digest", "--json", "-"});
    const Result result = run(std::move(more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  }
  /// The stored hints, by record.
  std::vector<std::vector<std::byte>> hints() const {
    const auto dataset = open_dataset(set_);
    std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(dataset->size()));
    for (std::size_t record = 0; record < all.size(); ++record)
      dataset->stored_hint(record, all[record]);
    return all;
  }
  void store(const std::vector<std::vector<std::byte>>& hints) const {
    HintsWriter writer(open_dataset(set_));
    for (const auto& hint : hints) writer.append(hint);
    writer.finish();
  }

  const TemporaryFolder folder_;
  const fs::path set_ = folder_ / "set.lmdb";
  const fs::path index_ = folder_ / "set.lmdb.index";
};

TEST_F(Index, IsStoredBesideTheDatasetAndChangesNoBatch) {
  ASSERT_NO_FATAL_FAILURE(pack_plain());
  const auto before = all_bytes(set_);
  const Json plain = bench({"--index-bytes", "0"});
  const Result indexed = run({"index", "--workers", "3"});
  EXPECT_EQ(indexed.exit_code, 0) << indexed.err;
  EXPECT_THAT(indexed.out,
              AllOf(StartsWith("indexed " + set_.string() + " in "),
                    HasSubstr(": 30 of 31 images (0.0 MB, "),
                    HasSubstr("% of theirs); 1 without, since their decoder does not use one\n")));
  EXPECT_EQ(all_bytes(set_), before);
  const Json with_index = bench({"--index-bytes", "0"});
  EXPECT_EQ(with_index.at("digest"), plain.at("digest"));
  const Json noting = bench();
  EXPECT_EQ(noting.at("digest"), plain.at("digest"));
  EXPECT_EQ(noting.at("index_mb"), 0) << "there is nothing to note";
  const Bytes first = read_file(index_);
  EXPECT_EQ(run({"index", "--workers", "1"}).exit_code, 0);
  EXPECT_EQ(read_file(index_), first) << "the same with any number of workers";
}

TEST_F(Index, IsMadeUpForByResumeWhereAPackWasKilledBeforeIt) {
  EXPECT_EQ(pack(folder_ / "photos", set_).exit_code, 0);
  const Bytes by_pack = read_file(index_);
  fs::remove(index_);
  EXPECT_EQ(pack(folder_ / "photos", set_, {"--resume", "--index", "none"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(index_));
  const Result resumed = pack(folder_ / "photos", set_, {"--resume"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, AllOf(HasSubstr("is complete already"), HasSubstr("\nindexed in ")));
  EXPECT_EQ(read_file(index_), by_pack);
  EXPECT_THAT(pack(folder_ / "photos", set_, {"--resume"}).out, Not(HasSubstr("indexed")));
}

TEST_F(Index, IsStoredByPackUnlessItIsAskedNotTo) {
  const Result packed = pack(folder_ / "photos", set_);
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("\nindexed in "));
  const Bytes by_pack = read_file(index_);
  EXPECT_EQ(run({"index"}).exit_code, 0);
  EXPECT_EQ(read_file(index_), by_pack);
  EXPECT_EQ(run({"index", "--index", "rows"}).exit_code, 0);
  const Bytes of_rows = read_file(index_);
  EXPECT_LT(of_rows.size(), by_pack.size());
  EXPECT_EQ(pack(folder_ / "photos", set_, {"--force", "--index", "rows"}).exit_code, 0);
  EXPECT_EQ(read_file(index_), of_rows);
  EXPECT_THAT(run({"verify", "--deep"}).out, HasSubstr("the seek index of 30 images verified"));
  EXPECT_EQ(pack(folder_ / "photos", set_, {"--force", "--index", "none"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(index_)) << "it goes with what is replaced";
  const fs::path shards = folder_ / "shards.lmdb";
  EXPECT_EQ(pack(folder_ / "photos", shards, {"--shards", "2"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "shards-00001-of-00002.lmdb.index"));
  const Result verified = millrace_command({"verify", shards, "--deep"});
  EXPECT_THAT(verified.out, HasSubstr("the seek index of 30 images verified"));
  const Result wrong = pack(folder_ / "photos", folder_ / "x.lmdb", {"--index", "columns"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("columns"));
}

TEST_F(Index, IsProvedByVerify) {
  ASSERT_NO_FATAL_FAILURE(pack_plain());
  EXPECT_THAT(run({"verify", "--deep"}).out, HasSubstr("the seek index of 0 images verified"));
  ASSERT_EQ(run({"index"}).exit_code, 0);
  const Json sound = Json::parse(run({"verify", "--deep", "--json", "-"}).out);
  EXPECT_EQ(sound.at("indices_proved"), 30);
  EXPECT_EQ(sound.at("sound"), true);
  const Json plain = bench({"--index-bytes", "0"});
  auto all = hints();
  std::swap(all[3], all[4]);
  all[7][30] ^= std::byte{4};
  all[9].resize(all[9].size() / 2);
  all[11].clear();
  store(all);
  EXPECT_EQ(run({"verify"}).exit_code, 0) << "the dataset is sound";
  const Result found = run({"verify", "--deep", "--json", "-"});
  EXPECT_EQ(found.exit_code, 1);
  const Json json = Json::parse(found.out);
  EXPECT_EQ(json.at("indices_proved"), 25);
  std::vector<int> bad;
  for (const Json& record : json.at("bad")) {
    bad.push_back(record.at("index"));
    EXPECT_EQ(record.at("reason"), "its stored seek index is damaged or another image's");
  }
  EXPECT_EQ(bad, (std::vector<int>{3, 4, 7, 9}));
  EXPECT_EQ(bench({"--index-bytes", "0"}).at("digest"), plain.at("digest"));
  EXPECT_EQ(bench().at("digest"), plain.at("digest"));
  fs::resize_file(index_, 100);
  EXPECT_THAT(run({"verify"}).err, HasSubstr("set.lmdb.index is damaged or cut short"));
  EXPECT_EQ(run({"verify"}).exit_code, 0);
  EXPECT_EQ(run({"verify", "--deep"}).exit_code, 1) << "there is an index, and it is not right";
  EXPECT_EQ(run({"verify", "--deep", "--quick"}).exit_code, 2);
}

TEST_F(Index, OfWhichAnyOffsetIsFlippedIsFound) {
  ASSERT_NO_FATAL_FAILURE(pack_plain());
  ASSERT_EQ(run({"index"}).exit_code, 0);
  const std::vector<std::byte> sound = read_file(index_);
  constexpr std::size_t header_bytes = 32;
  for (const std::size_t number : {0U, 1U, 7U, 29U, 30U})
    for (const std::size_t bit : {0U, 9U, 18U, 40U, 63U}) {
      SCOPED_TRACE(std::to_string(number) + ", bit " + std::to_string(bit));
      std::vector<std::byte> flipped = sound;
      flipped[header_bytes + 8 * number + bit / 8] ^= std::byte{1} << bit % 8;
      write_bytes(index_, flipped);
      const Result found = run({"verify", "--deep", "--json", "-"});
      EXPECT_EQ(found.exit_code, 1);
      EXPECT_EQ(Json::parse(found.out).at("sound"), false);
      EXPECT_EQ(run({"verify", "--quick"}).exit_code, 0) << "the dataset is sound";
    }
}

TEST_F(Index, IsSavedByARun) {
  ASSERT_NO_FATAL_FAILURE(pack_plain());
  const Result saved = run({"bench", "--epochs", "2", "--batch-size", "10", "--save-index"});
  EXPECT_EQ(saved.exit_code, 0) << saved.err;
  EXPECT_THAT(saved.err, HasSubstr("saved the index of 30 of 31 records"));
  const Result verified = run({"verify", "--deep"});
  EXPECT_EQ(verified.exit_code, 0);
  EXPECT_THAT(verified.out, HasSubstr("the seek index of 30 images verified"));
}

TEST_F(Index, ListsBadRecordsAndFails) {
  std::vector<Bytes> images = images_of(50);
  images[3].resize(images[3].size() / 2);
  images[17] = {std::byte{'G'}, std::byte{'I'}, std::byte{'F'}};
  write_images(set_, images);
  const Result few = run({"index"});
  EXPECT_EQ(few.exit_code, 1);
  EXPECT_THAT(few.out, StartsWith("bad records:\n         3  dog/3.jpg: "));
  EXPECT_THAT(few.out, HasSubstr("\n        17  dog/17.jpg: "));
  EXPECT_THAT(few.out, HasSubstr(": 48 of 50 images ("));
  EXPECT_THAT(few.out, HasSubstr("; 2 records are bad\n"));
  EXPECT_EQ(run({"verify"}).exit_code, few.exit_code);
  EXPECT_THAT(run({"verify"}).out, HasSubstr(few.out.substr(0, few.out.find("indexed"))));
  EXPECT_EQ(std::ranges::count_if(hints(), [](const auto& hint) { return !hint.empty(); }), 48)
      << "the others have their index";

  for (std::size_t number = 20; number < 40; ++number) images[number].resize(30);
  write_images(set_, images);
  const Result many = run({"index"});
  EXPECT_EQ(many.exit_code, 1);
  EXPECT_THAT(many.out,
              HasSubstr("\n  ... and 2 more; `millrace verify --json FILE` lists all\nindexed "));
  EXPECT_THAT(many.out, HasSubstr("; 22 records are bad\n"));
}

TEST_F(Index, OfProgressiveImagesIsStoredProvedAndUsed) {
  const Encoding progressive{.scans = Encoding::Scans::progressive};
  write_bytes(folder_ / "photos" / "200.jpg", encode(noise(90, 80, 77), progressive));
  write_bytes(folder_ / "photos" / "201.jpg", encode(noise(190, 180, 78), progressive));
  ASSERT_NO_FATAL_FAILURE(pack_plain());
  const Json plain = bench({"--index-bytes", "0"});
  ASSERT_EQ(run({"index"}).exit_code, 0);
  auto all = hints();
  EXPECT_FALSE(all[30].empty());
  EXPECT_EQ(bench({"--index-bytes", "0"}).at("digest"), plain.at("digest"));
  EXPECT_THAT(run({"verify", "--deep"}).out, HasSubstr("the seek index of 32 images verified"));
  std::swap(all[30], all[31]);
  store(all);
  EXPECT_EQ(bench({"--index-bytes", "0"}).at("digest"), plain.at("digest"));
  const Json json = Json::parse(run({"verify", "--deep", "--json", "-"}).out);
  EXPECT_EQ(json.at("indices_proved"), 30);
  ASSERT_EQ(json.at("bad").size(), 2U);
  EXPECT_EQ(json.at("bad")[0].at("index"), 30);
}

TEST_F(Index, SaysWhatItCannotDo) {
  EXPECT_EQ(run({"index"}).exit_code, 1) << "there is no such dataset";
  ASSERT_NO_FATAL_FAILURE(pack_plain());
  fs::create_directory(index_);
  const Result in_the_way = run({"index"});
  EXPECT_EQ(in_the_way.exit_code, 1);
  EXPECT_THAT(in_the_way.err, HasSubstr("set.lmdb.index exists and is not a file of record hints"));
  EXPECT_THAT(millrace_command({"index", "--help"}).out, HasSubstr("Examples:"));
}

TEST(IndexOfPhotographs, IsRightAndSmall) {
  MILLRACE_NEEDS_SHARED("data/photos");
  const TemporaryFolder folder;
  const fs::path set = folder / "set.lmdb";
  ASSERT_EQ(pack(shared_dir() / "data/photos", set).exit_code, 0);
  const Result verified = millrace_command({"verify", set, "--deep"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("the seek index of 500 images verified"));
  EXPECT_LT(static_cast<double>(fs::file_size(set.string() + ".index")),
            0.018 * static_cast<double>(fs::file_size(set)));
}

}  // namespace
}  // namespace millrace
