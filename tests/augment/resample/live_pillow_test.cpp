// SPDX-License-Identifier: Apache-2.0
//
// The resampler, compared with the Pillow of this machine's Python, on made-up pictures. The
// environment variable MILLRACE_PILLOW_PYTHON may name a further Python to compare with.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "augment/resample/resampled.h"
#include "augment/resample/vector_targets.h"
#include "support/run_program.h"

namespace millrace {
namespace {

using testing::Image;

constexpr int cases = 2000;

struct Case {
  std::int32_t width, height, new_width, new_height, filter;
  float left, top, right, bottom;
};

std::string described(const Case& one) {
  return std::to_string(one.width) + " x " + std::to_string(one.height) + " to " +
         std::to_string(one.new_width) + " x " + std::to_string(one.new_height) + ", filter " +
         std::to_string(one.filter) + ", box " + std::to_string(one.left) + " " +
         std::to_string(one.top) + " " + std::to_string(one.right) + " " +
         std::to_string(one.bottom);
}

class LivePillow : public ::testing::TestWithParam<const char*> {};

TEST_P(LivePillow, MakesTheSamePixels) {
  if (GetParam() == nullptr) GTEST_SKIP() << "MILLRACE_PILLOW_PYTHON names no other Python";
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "cases").string();
  const auto python =
      testing::run_program({GetParam(), MILLRACE_LIVE_PILLOW, path, std::to_string(cases)});
  if (python.exit_code == 77) GTEST_SKIP() << GetParam() << " has no Pillow (python3-pil)";
  ASSERT_EQ(python.exit_code, 0) << python.err;
  const Like like = std::stoi(python.out) >= 13 ? Like::pillow_13 : Like::pillow_12;
  RecordProperty("pillow", python.out);

  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::size_t at = 0;
  const auto take = [&](void* to, std::size_t count) {
    ASSERT_LE(at + count, bytes.size());
    std::memcpy(to, &bytes[at], count);
    at += count;
  };
  Resampler resampler;
  int verticals = 0;
  for (int n = 0; n < cases; ++n) {
    Case one{};
    take(&one, sizeof one);
    SCOPED_TRACE("case " + std::to_string(n) + ": " + described(one));
    Image image = testing::blank({0, 0, one.width, one.height});
    Image expected = testing::blank({0, 0, one.new_width, one.new_height});
    take(image.pixels.data(), image.pixels.size());
    take(expected.pixels.data(), expected.pixels.size());
    Resampling resampling =
        testing::whole_of({one.width, one.height}, {one.new_width, one.new_height});
    resampling.interpolation = static_cast<Interpolation>(one.filter);
    resampling.like = like;
    resampling.box = SourceBox{one.left, one.top, one.right, one.bottom};
    if (vertical_first(resampling)) ++verticals;
    ASSERT_TRUE(testing::plainly(resampling, image).pixels == expected.pixels);
    for (const std::int64_t target : testing::vector_targets()) {
      const testing::OnTarget on(target);
      ASSERT_TRUE(testing::resampled(resampler, resampling, image).pixels == expected.pixels)
          << testing::name_of(target);
    }
  }
  EXPECT_EQ(at, bytes.size());
  EXPECT_GT(verticals, like == Like::pillow_13 ? 100 : -1);
}

INSTANTIATE_TEST_SUITE_P(ThisMachines, LivePillow, ::testing::Values("/usr/bin/python3"));
INSTANTIATE_TEST_SUITE_P(Another, LivePillow,
                         ::testing::Values(std::getenv("MILLRACE_PILLOW_PYTHON")));

}  // namespace
}  // namespace millrace
