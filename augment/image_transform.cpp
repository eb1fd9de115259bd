// SPDX-License-Identifier: Apache-2.0
#include <millrace/image_decoder.h>
#include <millrace/image_transform.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "geometry/flip.h"
#include "resample/opencv_threads.h"
#include "resample/resample.h"

namespace millrace {
namespace {

constexpr std::size_t image_field = 0;
constexpr std::size_t label_field = 1;
constexpr std::size_t flip_field = 2;
constexpr std::size_t augment_stage = 1;

/// A very narrow image would grow to gigabytes when its shorter side is resized.
constexpr std::int64_t max_resized_pixels = 100'000'000;

SampleSpec spec_of(const Recipe& recipe) {
  const auto height = static_cast<std::size_t>(recipe.output.height);
  const auto width = static_cast<std::size_t>(recipe.output.width);
  std::vector<FieldSpec> fields{{"image", DType::uint8, {height, width, 3}},
                                {"label", DType::int64, {}}};
  if (recipe.flip_on == FlipOn::device)
    fields.push_back({.name = "flip", .dtype = DType::uint8, .shape = {}, .flips = "image"});
  return SampleSpec(std::move(fields));
}

Region intersection(const Region& a, Size size) {
  const int left = std::max(a.x, 0);
  const int top = std::max(a.y, 0);
  return {left, top, std::min(a.x + a.width, size.width) - left,
          std::min(a.y + a.height, size.height) - top};
}

/// What a recipe's crop makes of one image: `box` of it is resized, and the window of that comes to
/// (x, y) of the output.
struct Plan {
  Region box;
  Resampling resampling;
  int x = 0;
  int y = 0;
};

Plan plan(const RandomResizedCrop& crop, Size image, Size output, Random& random) {
  const Region box =
      random_resized_crop(image, crop.scale, crop.ratio, [&random] { return random.uniform(); });
  return {box, {{box.width, box.height}, output, {0, 0, output.width, output.height}}};
}

Plan plan(const CenterCrop& crop, Size image, Size output, Random&) {
  const Size resized = resize_shorter(image, crop.resize);
  const Region window = center_crop(resized, output);
  const Region visible = intersection(window, resized);
  return {{0, 0, image.width, image.height},
          {image, resized, visible},
          visible.x - window.x,
          visible.y - window.y};
}

class ImageWorker : public TransformWorker {
 public:
  explicit ImageWorker(const Recipe& recipe)
      : recipe_(recipe), row_(static_cast<std::size_t>(recipe.output.width) * 3 + 1) {}

  Status make(const Record& record, Random& random, Sample& sample) override {
    const std::int64_t label = record.integer("label");
    if (Status opened = decoder_->open(record["image"]); !opened.is_ok()) return opened;

    const Size image = decoder_->header().size();
    const Plan made = std::visit(
        [&](const auto& crop) { return plan(crop, image, recipe_.output, random); }, recipe_.crop);
    const bool flip = random.uniform() < recipe_.flip;
    const Size to = made.resampling.to;
    if (std::int64_t{to.width} * to.height > max_resized_pixels)
      return Status::bad("resized to " + std::to_string(to.width) + " x " +
                         std::to_string(to.height) + " pixels; at most " +
                         std::to_string(max_resized_pixels / 1'000'000) + " megapixels are made");

    Region needed = Resampler::needed(made.resampling);
    needed.x += made.box.x;
    needed.y += made.box.y;
    PixelView pixels;
    if (Status decoded = decoder_->decode(needed, pixels); !decoded.is_ok()) return decoded;

    sample.enter_stage(augment_stage);
    const bool on_device = recipe_.flip_on == FlipOn::device;
    fill(made, pixels, flip && !on_device, static_cast<std::uint8_t*>(sample[image_field].data));
    if (on_device) *static_cast<std::uint8_t*>(sample[flip_field].data) = flip ? 1 : 0;
    std::memcpy(sample[label_field].data, &label, sizeof label);
    return Status::ok();
  }

 private:
  void fill(const Plan& made, const PixelView& pixels, bool flip, std::uint8_t* output) {
    const std::size_t stride = static_cast<std::size_t>(recipe_.output.width) * 3;
    const Region& window = made.resampling.window;
    if (window.width < recipe_.output.width || window.height < recipe_.output.height)
      std::memset(output, 0, stride * static_cast<std::size_t>(recipe_.output.height));
    std::uint8_t* corner =
        output + static_cast<std::size_t>(made.y) * stride + static_cast<std::size_t>(made.x) * 3;
    resampler_.run(made.resampling, pixels, corner, stride);
    if (flip) flip_horizontally(output, recipe_.output, row_);
  }

  const Recipe& recipe_;
  std::unique_ptr<ImageDecoder> decoder_ = make_image_decoder();
  Resampler resampler_;
  std::vector<std::uint8_t> row_;
};

class ImageTransform : public Transform {
 public:
  explicit ImageTransform(const Recipe& recipe) : recipe_(recipe), spec_(spec_of(recipe)) {}

  const SampleSpec& spec() const override { return spec_; }
  std::vector<std::string> stages() const override { return {"decode", "augment"}; }
  std::optional<std::uint64_t> fingerprint() const override {
    const std::string json = recipe_.to_json();
    return XXH3_64bits(json.data(), json.size());
  }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<ImageWorker>(recipe_);
  }

 private:
  Recipe recipe_;
  SampleSpec spec_;
  OneOpenCvThread one_opencv_thread_;
};

}  // namespace

std::shared_ptr<const Transform> image_transform(const Recipe& recipe) {
  recipe.validate();
  return std::make_shared<const ImageTransform>(recipe);
}

}  // namespace millrace
