// SPDX-License-Identifier: Apache-2.0
//
// Pixels of ../shared/golden: photographs by Pillow 9.4 and 13.0 and torchvision's evaluation
// preset, compared on every instruction set.
#include <gtest/gtest.h>
#include <millrace/image_decoder.h>
#include <millrace/image_transform.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "augment/resample/resampled.h"
#include "augment/resample/sha256.h"
#include "augment/resample/vector_targets.h"
#include "support/sample_maker.h"
#include "support/sanitizers.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::Image;

nlohmann::json entries_of(const char* name) {
  std::ifstream file(testing::shared_dir() / "golden" / name);
  return nlohmann::json::parse(file).at("entries");
}

Image decoded(ImageDecoder& decoder, const Bytes& encoded, const Region& region) {
  PixelView view;
  EXPECT_TRUE(decoder.open(encoded).is_ok());
  EXPECT_TRUE(decoder.decode(region, view).is_ok());
  Image image = testing::blank(region);
  for (int y = 0; y < region.height; ++y)
    std::copy_n(view.pixels + static_cast<std::size_t>(y) * view.stride,
                testing::row_bytes(region.width),
                &image.pixels[testing::row_bytes(y * region.width)]);
  return image;
}

/// Returns the SHA-256 of the crop. The decoder decodes the region that the resampler needs.
std::string made_of(ImageDecoder& decoder, Resampler& resampler, const Bytes& encoded,
                    const Region& box, const Resampling& resampling) {
  Region needed = resampler.prepare(resampling);
  needed.x += box.x;
  needed.y += box.y;
  PixelView view;
  EXPECT_TRUE(decoder.open(encoded).is_ok());
  EXPECT_TRUE(decoder.decode(needed, view).is_ok());
  Image made = testing::blank(resampling.window);
  resampler.run(view, made.pixels.data(), testing::row_bytes(made.width));
  return testing::sha256(made.pixels);
}

void expect_crops(const char* name, Like like) {
  const nlohmann::json entries = entries_of(name);
  ASSERT_EQ(entries.size(), 400U);
  const auto decoder = make_image_decoder();
  Resampler resampler;
  std::string file;
  Bytes encoded;
  Image whole;
  int seen = 0;
  for (const nlohmann::json& entry : entries) {
    if (seen++ % testing::one_in != 0) continue;
    SCOPED_TRACE(entry.dump());
    if (const auto name = entry.at("file").get<std::string>(); name != file) {
      file = name;
      encoded = testing::read_file(testing::shared_dir() / "data/photos" / file);
      ASSERT_TRUE(decoder->open(encoded).is_ok());
      const Size size = decoder->header().size();
      whole = decoded(*decoder, encoded, {0, 0, size.width, size.height});
      ASSERT_EQ(testing::sha256(whole.pixels), entry.at("decode_sha256").get<std::string>());
    }
    const auto& edges = entry.at("box");  // left, top, right, bottom
    const Region box{edges[0], edges[1], static_cast<int>(edges[2]) - static_cast<int>(edges[0]),
                     static_cast<int>(edges[3]) - static_cast<int>(edges[1])};
    Resampling resampling =
        testing::whole_of({box.width, box.height}, {entry.at("size")[0], entry.at("size")[1]});
    if (entry.at("filter") == "bicubic") resampling.interpolation = Interpolation::bicubic;
    resampling.like = like;
    const std::string expected = entry.at("sha256");
    ASSERT_EQ(testing::sha256(testing::plainly(resampling, testing::cut(whole, box)).pixels),
              expected);
    for (const std::int64_t target : testing::vector_targets()) {
      const testing::OnTarget on(target);
      ASSERT_EQ(made_of(*decoder, resampler, encoded, box, resampling), expected)
          << testing::name_of(target);
    }
  }
}

TEST(Golden, CropsEqualPillow12s) {
  MILLRACE_NEEDS_SHARED("golden/pillow.json");
  expect_crops("pillow.json", Like::pillow_12);
}

TEST(Golden, CropsEqualPillow13s) {
  MILLRACE_NEEDS_SHARED("golden/pillow-13.json");
  expect_crops("pillow-13.json", Like::pillow_13);
}

TEST(Golden, EvaluationSamplesEqualTorchvisions) {
  MILLRACE_NEEDS_SHARED("golden/eval.json");
  const nlohmann::json entries = entries_of("eval.json");
  ASSERT_EQ(entries.size(), 496U);
  std::map<std::pair<int, int>, testing::Maker> makers;
  int seen = 0;
  for (const nlohmann::json& entry : entries) {
    if (seen++ % testing::one_in != 0) continue;
    SCOPED_TRACE(entry.dump());
    const int resize = entry.at("resize"), crop = entry.at("crop");
    const auto made = makers.try_emplace({resize, crop}, testing::window_of({crop, crop}, resize));
    testing::Maker& maker = made.first->second;
    const Bytes encoded =
        testing::read_file(testing::shared_dir() / "data" / entry.at("file").get<std::string>());
    for (const std::int64_t target : testing::vector_targets()) {
      const testing::OnTarget on(target);
      Random random(1, 1);
      ASSERT_TRUE(maker.make(encoded, 0, random).is_ok());
      ASSERT_EQ(testing::sha256(maker.image().pixels), entry.at("sha256").get<std::string>())
          << testing::name_of(target);
    }
  }
}

}  // namespace
}  // namespace millrace
