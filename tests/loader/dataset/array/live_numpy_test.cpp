// SPDX-License-Identifier: Apache-2.0
//
// Files that the installed numpy wrote, compared byte for byte.
#include <gmock/gmock.h>
#include <millrace/dataset.h>

#include <cstring>
#include <sstream>

#include "support/run_program.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using namespace testing;

class LiveNumpy : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const auto python =
        run_program({"/usr/bin/python3", MILLRACE_LIVE_NUMPY, folder_.path().string()});
    if (python.exit_code == 77) GTEST_SKIP() << python.out;
    ASSERT_EQ(python.exit_code, 0) << python.err;
    list_ = python.out;
  }

  std::shared_ptr<const Dataset> open(const std::string& name) const {
    return open_dataset(folder_ / name, {.map = GetParam()});
  }

  TemporaryFolder folder_;
  std::string list_;
};

/// Returns a field of all records, concatenated.
std::string joined(const Dataset& dataset, std::string_view field) {
  const auto reader = dataset.make_reader();
  std::string all;
  for (std::uint64_t index = 0; index < dataset.size(); ++index) {
    all += reader->read(index).text(field);
    EXPECT_TRUE(reader->intact().is_ok());
  }
  return all;
}

TEST_P(LiveNumpy, EveryRecordHasTheArraysBytes) {
  std::istringstream lines(list_);
  std::size_t read = 0;
  std::size_t refused = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind >> name;
    if (kind == "refused") {
      std::string reason;
      std::getline(words >> std::ws, reason);
      const Error error = thrown_by([&] { (void)open(name + ".npy"); });
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << name;
      EXPECT_THAT(error.what(), HasSubstr(reason)) << name;
      EXPECT_THAT(error.what(), HasSubstr((folder_ / (name + ".npy")).string()));
      ++refused;
      continue;
    }
    std::string dtype;
    std::uint64_t records = 0;
    words >> dtype >> records;
    std::vector<std::size_t> extents;
    for (std::size_t extent = 0; words >> extent;) extents.push_back(extent);
    const auto dataset = open(name + ".npy");
    ASSERT_EQ(dataset->size(), records) << name;
    EXPECT_EQ(joined(*dataset, name), file_contents(folder_ / (name + ".bin"))) << name;
    const std::vector<FieldSpec> specs = dataset->field_specs();
    ASSERT_EQ(specs.size(), 1U);
    EXPECT_EQ(specs[0].name, name);
    EXPECT_EQ(to_string(specs[0].dtype), dtype);
    EXPECT_TRUE(std::ranges::equal(specs[0].shape.extents(), extents)) << name;
    EXPECT_FALSE(specs[0].variable);
    ++read;
  }
  EXPECT_EQ(read, 12U * 7 + 4);
  EXPECT_EQ(refused, 11U);
}

TEST_P(LiveNumpy, WindowsAreNumpys) {
  write_file(folder_ / "windows.json", R"({"format": "arrays", "fields": {"tokens":
      {"npy": "tokens.npy", "window": {"length": 7, "stride": 5}}}})");
  const auto dataset = open("windows.json");
  EXPECT_EQ(dataset->size(), 19U);
  EXPECT_EQ(joined(*dataset, "tokens"), file_contents(folder_ / "windows.bin"));
}

TEST_P(LiveNumpy, ListsOfVaryingLengthAreWhatTheOffsetsSay) {
  write_file(folder_ / "lists.json", R"({"format": "arrays", "fields": {"points":
      {"npy": "values.npy", "offsets": "offsets.npy"}}})");
  const auto dataset = open("lists.json");
  ASSERT_EQ(dataset->size(), 50U);
  const std::string values = file_contents(folder_ / "values.npy");
  const std::string offsets = file_contents(folder_ / "offsets.npy");
  const std::size_t values_at = values.find('\n') + 1;
  const std::size_t offsets_at = offsets.find('\n') + 1;
  const auto reader = dataset->make_reader();
  for (std::uint64_t index = 0; index < 50; ++index) {
    std::int32_t limits[2];
    std::memcpy(limits, &offsets[offsets_at + 4 * index], sizeof limits);
    const auto from = static_cast<std::size_t>(limits[0]);
    const auto to = static_cast<std::size_t>(limits[1]);
    EXPECT_EQ(reader->read(index).text("points"),
              std::string_view(values).substr(values_at + 8 * from, 8 * (to - from)));
  }
  EXPECT_TRUE(dataset->field_specs().at(0).variable);
}

INSTANTIATE_TEST_SUITE_P(Maps, LiveNumpy, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Mapped" : "CallByCall"; });

}  // namespace
}  // namespace millrace
