// SPDX-License-Identifier: Apache-2.0
//
// The commands on another program's LMDB.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "support/foreign_lmdb.h"
#include "support/jpeg_samples.h"
#include "support/packs.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace testing;
using Json = nlohmann::json;

/// JPEGs in two folders.
Pairs jpegs(int count) {
  Pairs all;
  for (int n = 0; n < count; ++n) {
    const Bytes image = encode(noise(90 + n, 80, static_cast<unsigned>(n)), {});
    all.emplace_back((n % 2 == 0 ? "cat/" : "dog/") + std::to_string(100 + n) + ".jpg",
                     std::string(reinterpret_cast<const char*>(image.data()), image.size()));
  }
  return all;
}

TEST(Foreign, EveryCommandTakesAnotherProgramsLmdb) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.mdb";
  write_pairs(path, jpegs(30));
  const auto inspected = millrace_command({"inspect", path});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("images: all of 16 records that were looked at hold "
                                             "JPEG images\n"),
                                   HasSubstr("\nrecord 0 (cat/100.jpg)\n"),
                                   HasSubstr("baseline, 90 x 80 pixels\n"),
                                   HasSubstr("an integer, 0\n"), HasSubstr("2 classes")));
  const auto indexed = millrace_command({"index", path});
  EXPECT_EQ(indexed.exit_code, 0) << indexed.err;
  EXPECT_THAT(indexed.out, AllOf(HasSubstr("stored where the pages of " + path + " lie\n"),
                                 HasSubstr("30 of 30 images")));
  EXPECT_TRUE(fs::exists(path + ".pages"));
  EXPECT_TRUE(fs::exists(path + ".index"));
  const auto verified = millrace_command({"verify", path, "--deep"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("30"));
  const auto run = millrace_command(
      {"bench", path, "--batches", "4", "--batch-size", "8", "--size", "32", "--json", "-"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

/// A pickled dictionary with an image, the label 0 and an empty list of boxes.
std::string pickled_without_boxes(const std::string& image) {
  const auto key = [](const std::string& name) {
    return std::string("X") + static_cast<char>(name.size()) + std::string(3, '\0') + name;
  };
  std::string bytes = "\x80\x03}(" + key("image") + "B";
  for (int place = 0; place < 4; ++place) bytes += static_cast<char>(image.size() >> (8 * place));
  return bytes + image + key("label") + "K" + std::string(1, '\0') + key("boxes") + "]u.";
}

TEST(Foreign, InspectTellsOfARecordWithoutBoxes) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.mdb";
  Pairs records = jpegs(4);
  for (auto& [key, value] : records) value = pickled_without_boxes(value);
  write_pairs(path, records);
  const auto inspected = millrace_command({"inspect", path});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("0 boxes"));
}

TEST(Foreign, InspectSaysWhatIsMissingForTraining) {
  const TemporaryFolder folder;
  Pairs numbered;
  for (auto& [key, value] : jpegs(3)) numbered.emplace_back(std::to_string(numbered.size()), value);
  write_pairs(folder / "unlabelled.mdb", numbered);
  EXPECT_THAT(millrace_command({"inspect", folder / "unlabelled.mdb"}).out,
              HasSubstr("  missing           no field label\n"));
  // A Datum of 2 x 1 x 1 floats with the label 3.
  const std::string datum =
      std::string("\x08\x02\x10\x01\x18\x01\x28\x03\x32\x08", 10) + std::string(8, '\0');
  write_pairs(folder / "floats.mdb", {{"0", datum}});
  const auto floats = millrace_command({"inspect", folder / "floats.mdb", "--json", "-"});
  const Json sample = Json::parse(floats.out).at("sample");
  EXPECT_EQ(sample.at("missing"),
            Json({"no field image: data has values that no image decoder takes"}));
  EXPECT_EQ(sample.at("fields").size(), 3U);
  const auto stored = millrace_command({"index", folder / "floats.mdb"});
  EXPECT_EQ(stored.exit_code, 0) << stored.err;
  EXPECT_THAT(stored.out, HasSubstr("its records have no images to index"));
}

TEST(Foreign, DatabasesAreNamedByOptions) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.mdb";
  write_pairs(path, jpegs(6), "pictures");
  Pairs labels;
  for (auto& [key, value] : jpegs(6)) labels.emplace_back(key, std::to_string(labels.size() + 7));
  write_pairs(path, labels, "numbers");
  EXPECT_THAT(millrace_command({"inspect", path}).err, HasSubstr("(numbers, pictures)"));
  const auto shown = millrace_command(
      {"inspect", path, "--images", "pictures", "--labels", "numbers", "--record", "5"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("dog/105.jpg"), HasSubstr("  label             12")));
  const auto indexed =
      millrace_command({"index", path, "--images", "pictures", "--labels", "numbers"});
  EXPECT_EQ(indexed.exit_code, 0) << indexed.err;
  const auto again =
      millrace_command({"verify", path, "--images", "pictures", "--labels", "numbers"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

}  // namespace
}  // namespace millrace
