// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <millrace/image_transform.h>

#include "support/recipe_text.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::bilinear;
using testing::Bytes;
using testing::encode;
using testing::Maker;
using testing::noise;
using testing::operations_of;
using testing::reference_decode;
using testing::resized;
using testing::why_no_list;
using testing::window_of;

TEST(ResizeOperation, MakesTheShorterSideThatLong) {
  Random random(1, 1);
  const Bytes encoded = encode(noise(90, 60, 1), {});
  Maker maker(window_of({60, 40}, 40));
  ASSERT_TRUE(maker.make(encoded, 0, random).is_ok());
  EXPECT_EQ(maker.image().pixels, bilinear(reference_decode(encoded), {60, 40}).pixels);
}

TEST(ResizeOperation, ComesThroughJson) {
  const Operation op = Resize{232};
  EXPECT_EQ(op.to_json(), R"({"op":"resize","size":232})");
  EXPECT_EQ(operations_of("[" + op.to_json() + R"(, {"op": "center_crop"}])").front(), op);
  EXPECT_EQ(operations_of(R"([{"op": "resize"}, {"op": "center_crop"}])").front(),
            Operation(Resize{256}));
}

TEST(ResizeOperation, TakesPillowsFilters) {
  const Bytes encoded = encode(noise(90, 60, 1), {});
  const testing::Image whole = reference_decode(encoded);
  for (const auto& [name, interpolation] :
       {std::pair{"bicubic", Interpolation::bicubic}, std::pair{"box", Interpolation::box},
        std::pair{"hamming", Interpolation::hamming}, std::pair{"lanczos", Interpolation::lanczos},
        std::pair{"nearest", Interpolation::nearest}}) {
    const Operation op = Resize{40, interpolation};
    EXPECT_EQ(op.to_json(),
              R"({"op":"resize","size":40,"interpolation":")" + std::string(name) + "\"}");
    EXPECT_EQ(operations_of("[" + op.to_json() + R"(, {"op": "center_crop"}])").front(), op);
    Random random(1, 1);
    Maker maker({{60, 40}, {op, CenterCrop{}}});
    ASSERT_TRUE(maker.make(encoded, 0, random).is_ok());
    EXPECT_EQ(maker.image().pixels, resized(whole, {60, 40}, interpolation).pixels) << name;
    EXPECT_NE(maker.image().pixels, bilinear(whole, {60, 40}).pixels) << name;
  }
}

TEST(ResizeOperation, NamesWhatIsWrong) {
  const auto why = [](const std::string& parameters) {
    return why_no_list(R"([{"op": "resize", )" + parameters + R"(}, {"op": "center_crop"}])");
  };
  const std::string place = "train.json: ops[0] (resize): ";
  EXPECT_EQ(why(R"("size": 0)"), place + R"("size" is 0, must be in 1..16384)");
  EXPECT_EQ(why(R"("size": 3000000000)"), place + R"("size" is 3000000000, must be in 1..16384)");
  EXPECT_EQ(why(R"("size": 2.5)"),
            place + R"("size" is 2.5, must be an integer, or two, [width, height])");
  EXPECT_EQ(why(R"("side": 2)"),
            place + R"(unknown key "side"; the known keys are "op", "size", "max_size", )"
                    R"("interpolation", )"
                    R"("antialias")");
  EXPECT_EQ(why(R"("interpolation": "cubic")"),
            place + R"("interpolation" is "cubic", must be "bilinear" or "bicubic" or "box" or )"
                    R"("hamming" or "lanczos" or "nearest")");
  EXPECT_THROW(image_transform(window_of({8, 8}, 0)), Error);
}

TEST(ResizeOperation, IsDoneOnce) {
  EXPECT_EQ(why_no_list(R"([{"op": "resize"}, {"op": "resize"}, {"op": "center_crop"}])"),
            "train.json: ops[1] (resize) cannot be folded with the operations before it: the image "
            "would be resampled twice");
}

}  // namespace
}  // namespace millrace
