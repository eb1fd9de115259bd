// SPDX-License-Identifier: Apache-2.0
//
// inspect, verify, bench and tune on arrays.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "loader/dataset/array/npy_files.h"
#include "support/packs.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;
using Json = nlohmann::json;

class Arrays : public ::testing::Test {
 protected:
  Arrays() {
    std::vector<std::uint16_t> tokens(4001);
    std::iota(tokens.begin(), tokens.end(), std::uint16_t{0});
    write_npy(folder_ / "tokens.npy", "<u2", tokens);
    write_bytes(folder_ / "tokens.json", R"({"format": "arrays", "fields": {"tokens":
        {"npy": "tokens.npy", "window": {"length": 41, "stride": 40}}}})");
    write_npy(folder_ / "values.npy", "<f4", std::vector<float>{0.5F, 1.5F, -2.5F});
    write_npy(folder_ / "offsets.npy", "<i8", std::vector<std::int64_t>{0, 2, 2, 9, 3});
    write_npy(folder_ / "label.npy", "<i8", std::vector<std::int64_t>{3, 4, 5, 6});
    write_bytes(folder_ / "lists.json", R"({"format": "arrays", "fields": {"values":
        {"npy": "values.npy", "offsets": "offsets.npy", "max_length": 4},
        "label": {"npy": "label.npy"}}})");
  }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
};

TEST_F(Arrays, InspectTellsWhatFieldsAre) {
  const auto tokens = millrace_command({"inspect", path("tokens.json")});
  ASSERT_EQ(tokens.exit_code, 0) << tokens.err;
  EXPECT_THAT(tokens.out, AllOf(HasSubstr("100 records"), HasSubstr("tokens uint16 [41]"),
                                Not(HasSubstr("missing"))));
  const auto lists = millrace_command({"inspect", path("lists.json")});
  ASSERT_EQ(lists.exit_code, 0) << lists.err;
  EXPECT_THAT(lists.out, AllOf(HasSubstr("values float32 [up to 4], label int64"),
                               HasSubstr("2 records cannot be read"),
                               HasSubstr("they must not go backwards")));
}

TEST_F(Arrays, WindowsLongerThanTheirArrayAreNamed) {
  const auto problem = [&](const std::string& files) {
    write_bytes(folder_ / "long.json", R"({"format": "arrays", "fields": {"values":
        {"npy": )" + files + R"(, "window": {"length": 128}}}})");
    const auto result = millrace_command({"bench", path("long.json"), "--batches", "2"});
    EXPECT_EQ(result.exit_code, 1);
    return result.err;
  };
  EXPECT_THAT(problem(R"("values.npy")"),
              AllOf(HasSubstr("long.json"), HasSubstr("\"fields.values\""),
                    HasSubstr("windows of 128 are longer than the array of 3\n")));
  EXPECT_THAT(problem(R"(["values.npy", "values.npy"])"),
              HasSubstr("windows of 128 are longer than the longest array, of 3\n"));
}

// Numbers of following tokens are often named "labels".
TEST_F(Arrays, LabelsWithoutBoxesAreNoClasses) {
  write_npy(folder_ / "labels.npy", "<i8", std::vector<std::int64_t>{7, 8, 9, 10, 11, 12});
  write_bytes(folder_ / "labels.json", R"({"format": "arrays", "fields": {"labels":
      {"npy": "labels.npy", "window": {"length": 3, "stride": 3}}}})");
  const auto labels = millrace_command({"inspect", path("labels.json")});
  ASSERT_EQ(labels.exit_code, 0) << labels.err;
  EXPECT_THAT(labels.out, AllOf(HasSubstr("labels int64 [3]"), HasSubstr("\nno labels\n")));
}

// Targets of a regression are often named "label".
TEST_F(Arrays, LabelsOfOtherDtypesAreNoClasses) {
  write_npy(folder_ / "target.npy", "<f8", std::vector<double>{0.5, 1.5, 0.5});
  write_bytes(folder_ / "targets.json",
              R"({"format": "arrays", "fields": {"label": {"npy": "target.npy"}}})");
  const std::string out = path("targets.lmdb");
  const auto packed = millrace_command({"pack", path("targets.json"), out});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("packed 3 records (no classes, "));
  for (const std::string& dataset : {path("targets.json"), out}) {
    const auto all = millrace_command({"inspect", dataset});
    EXPECT_THAT(all.out, AllOf(HasSubstr("label float64"), HasSubstr("\nno labels\n")));
    const auto one = millrace_command({"inspect", dataset, "--record", "1"});
    EXPECT_THAT(one.out, HasSubstr("  label             8 bytes         float64 1.5\n"));
    EXPECT_THAT(one.out, Not(HasSubstr("  label             4")));
    const auto json = millrace_command({"inspect", dataset, "--record", "1", "--json", "-"});
    EXPECT_TRUE(Json::parse(json.out).at("label").is_null());
  }
  const auto reader = open_dataset(out)->make_reader();
  double value = 0;
  std::memcpy(&value, reader->read(1)["label"].data(), sizeof value);
  EXPECT_EQ(value, 1.5);
  write_npy(folder_ / "target.npy", "<u8", std::vector<std::uint64_t>{3, 4, 3});
  EXPECT_THAT(millrace_command({"pack", path("targets.json"), out, "--force"}).out,
              HasSubstr("(2 classes, "));
}

TEST_F(Arrays, InspectShowsARecordsFirstValues) {
  const auto tokens = millrace_command({"inspect", path("tokens.json"), "--record", "2"});
  ASSERT_EQ(tokens.exit_code, 0) << tokens.err;
  EXPECT_THAT(tokens.out, HasSubstr("uint16 80 81 82 83 84 85 86 87 ..."));
  const auto lists = millrace_command({"inspect", path("lists.json"), "--record", "0"});
  EXPECT_THAT(lists.out, AllOf(HasSubstr("float32 0.5 1.5\n"), HasSubstr("int64 3\n")));
}

// A number of 8 bytes could be taken for an integer.
TEST_F(Arrays, InspectShowsTheSameValuesOfADatasetAndOfARecord) {
  write_npy(folder_ / "weight.npy", "<f8", std::vector<double>{0.5, 1.5});
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--record", "0"}}) {
    std::vector<std::string> words = {"inspect", path("weight.npy")};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_THAT(millrace_command(words).out, HasSubstr("  weight            8 bytes         "
                                                       "float64 0.5\n"));
  }
}

TEST_F(Arrays, VerifyReadsEveryRecord) {
  const auto tokens = millrace_command({"verify", path("tokens.json")});
  EXPECT_EQ(tokens.exit_code, 0) << tokens.err;
  EXPECT_THAT(tokens.out, HasSubstr("all 100 records are sound (8.2 kB read, without checksums, no "
                                    "field \"image\" to decode;"));
  const auto lists = millrace_command({"verify", path("lists.json")});
  EXPECT_EQ(lists.exit_code, 1);
  EXPECT_THAT(lists.out, AllOf(HasSubstr("2 of 4 records are bad"),
                               HasSubstr("are 2 and 9; they must not go backwards")));
}

TEST_F(Arrays, BenchHandsFieldsOnAsTheyAre) {
  const auto digest = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"bench", path("tokens.json"), "--batches", "5", "--warmup", "0",
                               "--batch-size", "20", "--digest", "--json", "-"});
    const auto result = millrace_command(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const Json json = Json::parse(result.out, nullptr, false);
    if (!json.is_object()) return std::string();
    EXPECT_EQ(json["options"]["recipe"], "none (raw)");
    EXPECT_EQ(json["samples"], 100);
    EXPECT_GT(json["samples_per_second"], 0);
    EXPECT_TRUE(json["encoded_mb_per_second"].is_number());
    return std::string(json["digest"]);
  };
  const std::string one = digest({"--workers", "1"});
  EXPECT_EQ(one.size(), 16U);
  EXPECT_EQ(digest({"--workers", "2", "--transform", "raw", "--prefetch", "2"}), one);
  EXPECT_NE(digest({"--seed", "1"}), one);
}

TEST_F(Arrays, PackedOnesSayOfTheirFieldsTheSame) {
  // The second list is left out: its end lies beyond the values.
  write_npy(folder_ / "offsets.npy", "<i8", std::vector<std::int64_t>{0, 2, 9, 3, 3});
  for (const char* arrays : {"tokens.json", "lists.json"})
    for (const char* shards : {"0", "2"}) {
      const std::string out = path("packed.lmdb");
      std::vector<std::string> command{"pack", path(arrays), out, "--force", "--skip-bad"};
      if (*shards != '0') command.insert(command.end(), {"--shards", shards});
      const auto packed = millrace_command(command);
      ASSERT_EQ(packed.exit_code, 0) << packed.err;
      EXPECT_THAT(packed.out, Not(HasSubstr("indexed"))) << "there are no images";
      const auto source = open_dataset(path(arrays)), dataset = open_dataset(out);
      EXPECT_EQ(dataset->field_specs(), source->field_specs());
      ASSERT_EQ(dataset->size(), *arrays == 't' ? 100U : 2U);
      for (const std::uint64_t record : {std::uint64_t{0}, dataset->size() - 1}) {
        const std::uint64_t there = *arrays == 't' ? record : 3 * record;
        const auto reader = dataset->make_reader(), its_reader = source->make_reader();
        const Record expected = its_reader->read(there);
        for (const RecordField& field : expected.fields())
          EXPECT_TRUE(std::ranges::equal(reader->read(record)[field.name], field.bytes));
      }
      const auto bench = millrace_command(
          {"bench", out, "--batches", "2", "--warmup", "0", "--batch-size", "2", "--json", "-"});
      ASSERT_EQ(bench.exit_code, 0) << bench.err;
      EXPECT_EQ(Json::parse(bench.out)["options"]["recipe"], "none (raw)");
    }
  const auto index = millrace_command({"index", path("packed.lmdb")});
  EXPECT_EQ(index.exit_code, 0);
  EXPECT_THAT(index.out, HasSubstr("its records have no images to index"));
}

TEST_F(Arrays, BenchSaysWhatItCannot) {
  const auto says = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"bench", path("tokens.json"), "--batches", "1"});
    const auto result = millrace_command(more);
    EXPECT_NE(result.exit_code, 0);
    return result.err;
  };
  EXPECT_THAT(says({"--ceiling"}), HasSubstr("--ceiling compares with libjpeg-turbo's decode"));
  EXPECT_THAT(says({"--transform", "image"}), HasSubstr("no field \"image\""));
  EXPECT_THAT(says({"--transform", "none"}), HasSubstr("auto, image or raw"));
  const auto lists = millrace_command({"bench", path("lists.json"), "--batches", "1"});
  EXPECT_EQ(lists.exit_code, 1);
  EXPECT_THAT(lists.err, HasSubstr("they must not go backwards"));
}

// The same pixels as planes and side by side.
TEST_F(Arrays, RecipesRunOnRawImages) {
  constexpr std::size_t images = 12, side = 32, pixels = side * side;
  const Image noisy = noise(static_cast<int>(side), static_cast<int>(side * images), 5);
  std::string planes;
  for (std::size_t image = 0; image < images; ++image)
    for (std::size_t colour = 0; colour < 3; ++colour)
      for (std::size_t pixel = 0; pixel < pixels; ++pixel)
        planes += static_cast<char>(noisy.pixels[3 * (image * pixels + pixel) + colour]);
  write_npy(folder_ / "chw.npy", "|u1", "(12, 3, 32, 32)", planes);
  write_npy(folder_ / "hwc.npy", "|u1", "(12, 32, 32, 3)",
            std::string(noisy.pixels.begin(), noisy.pixels.end()));
  write_npy(folder_ / "class.npy", "|u1", std::vector<std::uint8_t>(images, 3));
  std::vector<std::string> digests;
  for (const std::string order : {"chw", "hwc"}) {
    write_bytes(folder_ / "images.json",
                R"({"format": "arrays", "fields": {"image": {"npy": ")" + order +
                    R"(.npy", "image": ")" + order +
                    R"("}, "label": {"npy": "class.npy", "as": "int64"}}})");
    EXPECT_EQ(millrace_command({"verify", path("images.json")}).exit_code, 0);
    const auto result =
        millrace_command({"bench", path("images.json"), "--batches", "3", "--warmup", "0",
                          "--batch-size", "4", "--size", "24", "--digest", "--json", "-"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json json = Json::parse(result.out);
    EXPECT_EQ(json["options"]["recipe"], "train");
    digests.push_back(json["digest"]);
  }
  EXPECT_EQ(digests.at(0), digests.at(1));
}

TEST_F(Arrays, ADatasetThatIsMadeShorterIsFoundByVerify) {
  write_npy(folder_ / "rows.npy", "|u1", "(8, 4096)", std::string(8 * 4096, 'x'));
  const std::string whole = path("rows.npy");
  ASSERT_EQ(truncate(whole.c_str(), 3 * 4096), 0);
  const auto result = millrace_command({"verify", whole});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("is cut short"));
}

}  // namespace
}  // namespace millrace
