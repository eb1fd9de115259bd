// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/dataset_writer.h>
#include <millrace/random.h>

#include <array>
#include <span>
#include <string>

#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::run_program;

constexpr int side = 40;

/// Writes pictures (PPM) of two coloured patches on a third colour, with noise, and their masks.
void write_patches(const std::string& path, int count, bool with_masks) {
  constexpr std::uint8_t colours[3][3] = {{120, 120, 120}, {190, 60, 60}, {40, 90, 180}};
  DatasetWriter writer(path);
  for (int number = 0; number < count; ++number) {
    Random random(11, static_cast<std::uint64_t>(number));
    std::string mask(side * side, '\0');
    for (const char patch : {'\1', '\2'}) {
      const auto left = static_cast<int>(random.below(side - 14));
      const auto top = static_cast<int>(random.below(side - 14));
      for (int y = top; y < top + 14; ++y)
        for (int x = left; x < left + 14; ++x) mask[static_cast<std::size_t>(y * side + x)] = patch;
    }
    std::string image = "P6 40 40 255\n";
    for (const char of_class : mask)
      for (const std::uint8_t level : colours[static_cast<std::size_t>(of_class)])
        image.push_back(static_cast<char>(level + random.below(30)));
    std::vector<RecordField> fields{RecordField{"image", std::as_bytes(std::span(image))}};
    if (with_masks) fields.push_back({"mask", std::as_bytes(std::span(mask))});
    writer.append(fields);
  }
  writer.finish();
}

/// The last number after `name` in the output.
double printed(const std::string& text, const std::string& name) {
  return std::stod(text.substr(text.rfind(name) + name.size()));
}

TEST(Segmentation, LearnsTheMasks) {
  const testing::TemporaryFolder folder;
  const std::string set = folder / "patches.lmdb";
  write_patches(set, 60, true);
  const auto result =
      run_program({MILLRACE_SEGMENTATION, set, "--classes", "3", "--size", "32", "--epochs", "8"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(printed(result.out, "loss "), 0.3);
  EXPECT_GT(printed(result.out, "accuracy "), 0.95);
  EXPECT_GT(printed(result.out, "mean IoU "), 0.84);

  EXPECT_THAT(run_program({MILLRACE_SEGMENTATION, set, "--classes", "2"}).err,
              HasSubstr("a mask has the class 2, which is not below --classes 2"));
}

TEST(Segmentation, SaysWhatIsMissing) {
  const testing::TemporaryFolder folder;
  const std::string set = folder / "images.lmdb";
  write_patches(set, 4, false);
  const auto result = run_program({MILLRACE_SEGMENTATION, set});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("\"mask\""));
}

}  // namespace
}  // namespace millrace
