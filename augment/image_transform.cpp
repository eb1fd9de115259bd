// SPDX-License-Identifier: Apache-2.0
#include <millrace/image_transform.h>
#include <xxhash.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "image_worker.h"
#include "sample_images.h"
#include "targets/targets.h"

namespace millrace {
namespace {

/// Returns the hash of the recipe's JSON. It is the same whether the recipe states that its labels
/// are integers or the dataset shows it.
std::uint64_t fingerprint_of_recipe(const Recipe& recipe) {
  Recipe known = recipe;
  known.decode_on = DecodeOn::worker;  // the samples are the same
  known.device_share = Recipe().device_share;
  for (Target& target : known.targets)
    if (std::holds_alternative<StoredTarget>(target.is)) target.is = ValuesTarget{};
  if (known.targets == std::vector<Target>{{"label", ValuesTarget{}}})
    known.targets = Recipe().targets;
  const std::string json = known.to_json();
  return XXH3_64bits(json.data(), json.size());
}

/// Returns the size and the fingerprint of the image that a recipe's geometric operations make.
/// Returns the reason why such an image is not cached if its pixels differ from sample to sample.
CacheablePrefix cacheable_prefix_of(const Recipe& recipe, const DecodeLimits& limits,
                                    const Program& program) {
  if (const ImageOperation* random = program.random_geometry(); random != nullptr)
    return {.why_none = std::string("the recipe's ") + random->name() +
                        " gives an image different pixels each time"};
  if (!recipe.views.empty())
    return {.why_none = "the recipe's \"views\" make further images of each record"};
  if (!recipe.images.empty())
    return {.why_none = "the recipe's \"images\" decode further images of each record"};
  if (has_moving(recipe.targets))
    return {.why_none = "the recipe has masks, boxes or keypoints, which are made with the image"};
  Recipe geometry = recipe;
  geometry.mix.reset();
  geometry.decode_on = DecodeOn::worker;
  geometry.device_share = Recipe().device_share;
  geometry.targets = Recipe().targets;
  std::erase_if(geometry.ops, [](const Operation& op) {
    return dynamic_cast<const GeometricOperation*>(&op.implementation()) == nullptr;
  });
  std::string decides = geometry.to_json();
  // An image beyond a limit is bad. It must not be found in the cache of a transform with other
  // limits.
  for (const std::uint64_t limit : {limits.max_pixels, limits.max_pixels_per_byte,
                                    limits.max_scan_pixels, limits.max_decode_bytes})
    decides += " " + std::to_string(limit);
  return {.bytes = 3 * static_cast<std::size_t>(recipe.output.width) *
                   static_cast<std::size_t>(recipe.output.height) *
                   static_cast<std::size_t>(program.views()),
          .fingerprint = XXH3_64bits(decides.data(), decides.size())};
}

/// Returns the form of records from which images are decoded faster: their coefficients.
RecodedForm recoded_form_of(const DecodeLimits& limits) {
  const std::uint64_t decides[] = {limits.max_pixels, limits.max_pixels_per_byte,
                                   limits.max_scan_pixels, limits.max_decode_bytes};
  return {.fingerprint = XXH3_64bits(decides, sizeof decides),
          .scratch_bytes = 2 * DecodeBudget::small_bytes};
}

/// Returns the most memory that a maker of images holds beside its decoder's: to turn an image by
/// its EXIF orientation, for its operations, and for its targets. It makes images one after the
/// other.
std::size_t scratch_bytes(const SampleImages& images, const Recipe& recipe) {
  std::size_t turned = 0;
  ScratchSizes borrowed;
  for (const Program& program : images.programs) enlarge(borrowed, program.scratch());
  for (const SampleImagePlace& place : images.all)
    if (images.programs[place.program].needs_orientation())
      turned = std::max(turned, Resampler::transposed_bytes(place.output));
  return std::accumulate(borrowed.begin(), borrowed.end(),
                         turned + bytes_of_targets(recipe.targets, recipe.output));
}

class ImageTransform : public Transform {
 public:
  ImageTransform(const Recipe& recipe, const DecodeLimits& limits,
                 std::shared_ptr<DecodeBudget> budget)
      : limits_(limits),
        budget_(std::move(budget)),
        recipe_(recipe),
        json_(recipe.to_json()),
        fingerprint_(fingerprint_of_recipe(recipe)),
        images_(recipe),
        mix_(recipe.mix ? mix_transform(*recipe.mix) : nullptr),
        cacheable_prefix_(cacheable_prefix_of(recipe, limits, images_.main())) {}

  const SampleSpec& spec() const override { return images_.spec; }
  std::vector<std::string> stages() const override { return {"decode", "augment"}; }
  std::string description() const override { return json_; }
  std::string name_in_messages() const override { return "recipe"; }
  std::optional<std::uint64_t> fingerprint() const override { return fingerprint_; }
  std::shared_ptr<const BatchTransform> batch_transform() const override { return mix_; }
  CacheablePrefix cacheable_prefix() const override { return cacheable_prefix_; }
  std::optional<RecodedForm> recoded_form() const override { return recoded_form_of(limits_); }
  std::size_t scratch_limit(unsigned workers) const override {
    const std::size_t images = ImageWorker::at_once * std::size_t{workers};
    return limits_.max_decode_bytes +
           images * (DecodeBudget::small_bytes + scratch_bytes(images_, recipe_));
  }
  std::size_t samples_at_once() const override {
    // Further images are decoded one by one. One of them may wait for the decode budget. Meanwhile
    // no second sample of the same worker may hold budget.
    return images_.encoded.size() > 1 ? 1 : ImageWorker::at_once;
  }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<ImageWorker>(images_, recipe_, budget_);
  }

  std::shared_ptr<const Transform> fitted_to(const Dataset& dataset) const override {
    const Recipe fitted = recipe_for(recipe_, dataset);
    if (fitted == recipe_) return nullptr;
    return std::make_shared<const ImageTransform>(fitted, limits_, budget_);
  }

 private:
  DecodeLimits limits_;
  std::shared_ptr<DecodeBudget> budget_;
  Recipe recipe_;
  std::string json_;
  std::uint64_t fingerprint_;
  SampleImages images_;
  std::shared_ptr<const BatchTransform> mix_;
  CacheablePrefix cacheable_prefix_;
};

}  // namespace

std::optional<std::uint64_t> image_checksum(const Record& record) {
  // Another transform may keep data of another field under the record's checksum.
  constexpr std::uint64_t image = 0x696D616765;  // "image"
  const std::optional<std::uint64_t> checksum = record.checksum();
  return checksum ? std::optional(*checksum ^ image) : std::nullopt;
}

std::shared_ptr<const Transform> image_transform(const Recipe& recipe, const DecodeLimits& limits) {
  recipe.validate();
  return std::make_shared<const ImageTransform>(recipe, limits,
                                                std::make_shared<DecodeBudget>(limits));
}

}  // namespace millrace
