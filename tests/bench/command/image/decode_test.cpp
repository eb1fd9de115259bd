// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <png.h>

#include <sstream>

#include "bench/damaged_files.h"
#include "support/packs.h"
#include "support/sample_maker.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;
using Result = RunningProgram::Result;

class Decode : public ::testing::Test {
 protected:
  Decode() { write_bytes(file_, encoded_); }

  Result decode(std::vector<std::string> words) const {
    words.insert(words.begin(), {"decode", file_});
    return millrace_command(words);
  }
  /// The raw rows by --raw -, which must be the only output.
  std::vector<std::uint8_t> rows(std::vector<std::string> words) const {
    words.insert(words.end(), {"--raw", "-"});
    const Result result = decode(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return {result.out.begin(), result.out.end()};
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_ / "a.jpg";
  const Bytes encoded_ = encode(noise(90, 60, 3), {});
  const Image whole_ = reference_decode(encoded_);
};

TEST_F(Decode, TellsWhatTheFileIsAndWhoDecodesIt) {
  const Result result = decode({"--size", "32x20"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr(file_ + "\n"), HasSubstr("JPEG, 90 x 60 pixels, baseline, 4:2:0"),
            ::testing::ContainsRegex("decoder +millrace\n"), HasSubstr("32 x 20 pixels, RGB"),
            HasSubstr(R"("op":"resized_crop","box":[0,0,90,60])"), Not(HasSubstr("sha256"))));
}

TEST_F(Decode, MakesThePixelsThatAreAskedFor) {
  EXPECT_EQ(rows({}), whole_.pixels);
  const Region box{11, 7, 50, 40};
  EXPECT_EQ(rows({"--crop", "11,7,50,40"}), cut(whole_, box).pixels);
  EXPECT_EQ(rows({"--size", "30x33"}), bilinear(whole_, {30, 33}).pixels);
  EXPECT_EQ(rows({"--crop", "11,7,50,40", "--size", "30x33", "--filter", "lanczos"}),
            resized(cut(whole_, box), {30, 33}, Interpolation::lanczos).pixels);
}

TEST_F(Decode, MakesThePixelsOfEitherPillow) {
  // So much flatter that the columns come first since Pillow 13.
  const auto newer = rows({"--size", "90x7"});
  EXPECT_EQ(newer, bilinear(whole_, {90, 7}).pixels);
  const auto both = rows({"--size", "88x7"});
  EXPECT_NE(both, rows({"--size", "88x7", "--like", "pillow-12"}));
}

TEST_F(Decode, RunsARecipeAsATrainerDoes) {
  Random random(5, 0);
  Maker maker(Recipe::train(224));
  ASSERT_TRUE(maker.make(encoded_, 0, random).is_ok());
  EXPECT_EQ(rows({"--recipe", "train", "--seed", "5"}), maker.image().pixels);
  const std::string recipe = folder_ / "recipe.json";
  write_text(recipe, window_of({20, 20}, 24).to_json());
  Maker window(window_of({20, 20}, 24));
  ASSERT_TRUE(window.make(encoded_, 0, random).is_ok());
  EXPECT_EQ(rows({"--recipe", recipe}), window.image().pixels);
}

TEST_F(Decode, WritesAPngOfTheSamePixels) {
  const std::string file = folder_ / "a.png";
  const Result result = decode({"--size", "31x17", "--png", file});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(file));
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_file(&png, file.c_str()), 0);
  png.format = PNG_FORMAT_RGB;
  ASSERT_EQ(png.width, 31U);
  ASSERT_EQ(png.height, 17U);
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(png));
  ASSERT_NE(png_image_finish_read(&png, nullptr, pixels.data(), 0, nullptr), 0);
  EXPECT_EQ(pixels, rows({"--size", "31x17"}));
  EXPECT_EQ(decode({"--size", "31x17", "--png", "-"}).out, contents_of(file));
}

TEST_F(Decode, TheSha256IsThatOfTheRawRows) {
  const std::string raw = folder_ / "a.rgb";
  const Result result = decode({"--sha256", "--raw", raw});
  const Result theirs = run_program({"/usr/bin/sha256sum", raw});
  ASSERT_EQ(theirs.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr(theirs.out.substr(0, 64) + "\n"));
}

TEST_F(Decode, ABadFileDoesNotKeepTheOthersFromIt) {
  const std::string bad = folder_ / "bad.jpg";
  write_bytes(bad, std::span(encoded_).first(encoded_.size() - 300));
  const std::string text = folder_ / "text.jpg";
  write_text(text, "text");
  const Result result = millrace_command({"decode", bad, text, folder_ / "none", file_});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("millrace: " + bad + ": "),
                    HasSubstr(text + ": not a JPEG, PNG, WebP or PNM (starts with 74 65 78 74)"),
                    HasSubstr("none: cannot be read: No such file")));
  EXPECT_THAT(result.out, HasSubstr(file_ + "\n"));
  const Result outside = decode({"--crop", "80,0,20,20"});
  EXPECT_EQ(outside.exit_code, 1);
  EXPECT_THAT(outside.err, HasSubstr("box 20 x 20 at (80, 0) is not inside an image of 90 x 60"));
}

TEST_F(Decode, MakesImagesOfAnyLengthThatAreNotResized) {
  const std::string wide = folder_ / "wide.jpg";
  const Bytes encoded = encode(noise(16'390, 9, 1), {});
  write_bytes(wide, encoded);
  const Image whole = reference_decode(encoded);
  const Result result = millrace_command({"decode", wide, file_});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("16390 x 9 pixels, RGB"), HasSubstr(file_ + "\n")));
  const std::string rows = millrace_command({"decode", wide, "--raw", "-"}).out;
  EXPECT_EQ(std::vector<std::uint8_t>(rows.begin(), rows.end()), whole.pixels);
  const std::string part =
      millrace_command({"decode", wide, "--upright", "--crop", "3,2,16386,5", "--raw", "-"}).out;
  EXPECT_EQ(std::vector<std::uint8_t>(part.begin(), part.end()),
            cut(whole, {3, 2, 16'386, 5}).pixels);
  // Orientation 6: a row of the upright image is a column of the stored one, from the bottom up.
  const std::string high = folder_ / "high.jpg";
  const std::string exif(
      "\xff\xe1\0\x22"
      "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0",
      36);
  Bytes turned = encoded;
  const auto* const segment = reinterpret_cast<const std::byte*>(exif.data());
  turned.insert(turned.begin() + 2, segment, segment + exif.size());
  write_bytes(high, turned);
  const std::string upright = millrace_command({"decode", high, "--upright", "--raw", "-"}).out;
  ASSERT_EQ(upright.size(), whole.pixels.size());
  for (std::size_t y = 0; y < 16'390; ++y)
    for (std::size_t x = 0; x < 9; ++x)
      ASSERT_EQ(static_cast<std::uint8_t>(upright[3 * (9 * y + x)]),
                whole.pixels[3 * (16'390 * (8 - x) + y)]);
  const Result outside = millrace_command({"decode", wide, file_, "--crop", "9,0,16390,9"});
  EXPECT_EQ(outside.exit_code, 1);
  EXPECT_THAT(outside.err,
              HasSubstr(wide + ": box 16390 x 9 at (9, 0) is not inside an image of 16390 x 9"));
}

TEST_F(Decode, TurnsUprightBeforeTheCrop) {
  MILLRACE_NEEDS_SHARED("data/exif");
  const std::string photo = shared_dir() / "data/exif/Landscape_6.jpg";
  const Image stored = reference_decode(read_file(photo));
  const Result upright =
      millrace_command({"decode", photo, "--upright", "--crop", "100,50,3,2", "--raw", "-"});
  ASSERT_EQ(upright.exit_code, 0) << upright.err;
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 3; ++x)
      for (std::size_t channel = 0; channel < 3; ++channel)
        EXPECT_EQ(static_cast<std::uint8_t>(
                      upright.out[static_cast<std::size_t>(3 * y + x) * 3 + channel]),
                  stored.pixels[at(stored, 50 + y, stored.height - 1 - (100 + x)) + channel]);
  EXPECT_THAT(millrace_command({"decode", photo, "--upright"}).out, HasSubstr("6, turned upright"));
  EXPECT_THAT(millrace_command({"decode", photo}).out, HasSubstr("6, not turned"));
}

}  // namespace
}  // namespace millrace
