// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the decoding of JPEGs: facts, check, and a sample. libFuzzer and the sanitizers find
// crashes, overflows, inputs that take more than 10 s, and inputs that take more than 2 GB. This
// program finds state that is left from one image for the next.
#include <millrace/image_decoder.h>
#include <millrace/image_transform.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <span>

#include "fuzz/fuzz_seeds.h"

namespace millrace {
namespace {

/// Makes one sample with a recipe, in 32 x 32 pixels.
class RecipeRunner {
 public:
  explicit RecipeRunner(const Recipe& recipe)
      : transform_(image_transform(recipe)), worker_(transform_->make_worker()) {}

  Status make(std::span<const std::byte> encoded) {
    const std::int64_t label = 0;
    const std::array fields{RecordField{"image", encoded},
                            RecordField{"label", std::as_bytes(std::span(&label, 1))}};
    const std::array places{Tensor{pixels_.data(), DType::uint8, {32, 32, 3}},
                            Tensor{&label_, DType::int64, {}}};
    Sample sample(transform_->spec(), places);
    Random random(1, 1);
    pixels_.fill(0);
    return worker_->make(Record(0, fields), random, sample);
  }
  const auto& pixels() const { return pixels_; }

 private:
  std::shared_ptr<const Transform> transform_;
  std::unique_ptr<TransformWorker> worker_;
  std::array<std::uint8_t, std::size_t{32} * 32 * 3> pixels_{};
  std::int64_t label_ = 0;
};

/// Compares a decoder that has had all of the inputs before with a new one.
void expect_same(std::span<const std::byte> encoded) {
  static const auto used = make_image_decoder();
  const auto fresh = make_image_decoder();
  const Status by_used = used->open(encoded);
  const Status by_fresh = fresh->open(encoded);
  if (by_used.reason() != by_fresh.reason()) std::abort();
  if (by_used.is_ok() && used->check().reason() != fresh->check().reason()) std::abort();
}

void expect_same_samples(std::span<const std::byte> encoded) {
  for (const Recipe& recipe : {Recipe::train(32), Recipe::eval(32)}) {
    static RecipeRunner used_train(Recipe::train(32));
    static RecipeRunner used_eval(Recipe::eval(32));
    RecipeRunner& used = recipe == Recipe::train(32) ? used_train : used_eval;
    RecipeRunner fresh(recipe);
    if (used.make(encoded).reason() != fresh.make(encoded).reason()) std::abort();
    if (used.pixels() != fresh.pixels()) std::abort();
  }
}

}  // namespace
}  // namespace millrace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  // Beside the given files, the first and last bytes of a JPEG are a sufficient seed.
  millrace::testing::write_seeds_if_asked(*argc, *argv, [](const std::filesystem::path& folder) {
    std::ofstream(folder / "empty", std::ios::binary) << "\xFF\xD8\xFF\xD9";
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  millrace::ImageInfo info;
  (void)millrace::read_image_info(bytes, info).is_ok();
  millrace::expect_same(bytes);
  millrace::expect_same_samples(bytes);
  return 0;
}
