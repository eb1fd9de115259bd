// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/interleaved_decoder.h>
#include <millrace/detail/resample.h>
#include <millrace/image_decoder.h>
#include <millrace/recipe.h>
#include <millrace/transform.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "crop_stage.h"
#include "device_share.h"
#include "ops/scratch.h"
#include "sample_images.h"
#include "targets/targets.h"

namespace millrace {

/// Makes samples, one at a time: decodes the image and runs the recipe on it. A sample takes two
/// steps, `begin` and `finish`. Between them its decode may be interleaved with another image's.
class ImageMaker {
 public:
  /// Whether it makes all samples, or only those whose decode may be interleaved. Its memory is
  /// small in the second case.
  enum class Takes { all, turns };

  ImageMaker(const SampleImages& images, const Recipe& recipe,
             const std::shared_ptr<DecodeBudget>& budget, Takes takes);

  /// Begins a sample. The record, the random numbers and the sample must outlive `finish`. A bad
  /// status ends the sample.
  Status begin(const Record& record, Random& random, Sample& sample);
  /// Returns whether `begin` has declined the sample, because it needs a maker that takes all.
  bool declined() const { return declined_; }
  /// Ends the sample.
  Status finish();

  /// Returns whether `decode_interleaved` has work left on the image.
  bool can_interleave() const {
    return decodes_ && interleaved_ != nullptr && interleaved_->can_interleave();
  }
  /// Decodes the images of two makers that can be interleaved. See `InterleavedDecoder`.
  bool decode_interleaved(ImageMaker& other) {
    return interleaved_->decode_interleaved(*other.interleaved_);
  }

 private:
  Status open(std::span<const std::byte> encoded);
  void recode(std::span<const std::byte> encoded);
  bool is_main() const { return encoded_ == &images_.encoded.front(); }
  Status begin_image();
  Status pack_image();
  Status finish_image();
  Status make_further(const EncodedImage& encoded);
  void resample_all(const PixelView& pixels);
  SampleImage image(const SampleImagePlace& place);
  Random& random_of(std::size_t number) {
    return images_.all[number].stream == 0 ? *random_ : own_random_[number];
  }
  ResamplePlan plan_of(std::size_t number, Size stored, int orientation);
  Region prepare(const ResamplePlan& plan);
  Status resample_parts();
  Status resample_whole();
  std::uint8_t* output_of(std::size_t number);
  template <typename Make>
  void resample(const ResamplePlan& plan, std::uint8_t* output, const Make& make);

  const SampleImages& images_;
  const Resolution resolution_;
  const bool may_be_kept_;
  const bool needs_orientation_;
  /// Whether images may be packed for the device, and of which samples.
  const bool may_be_packed_;
  const DeviceShare device_share_;
  const Takes takes_;
  std::unique_ptr<ImageDecoder> decoder_;
  Resampler resampler_;
  ImagePacker packer_;
  Scratch scratch_;
  TargetWorkers targets_;

  // State of the sample in progress.
  bool declined_ = false;
  const Record* record_ = nullptr;
  Random* random_ = nullptr;
  Sample* sample_ = nullptr;
  /// The image that is decoded now.
  const EncodedImage* encoded_ = nullptr;
  /// The decoder's interface for interleaved decoding; null if it has none.
  InterleavedDecoder* interleaved_ = nullptr;
  /// Whether the image is decoded, since the cache does not have its pixels.
  bool decodes_ = false;
  /// Whether the recoded form of the record is decoded instead of the record.
  bool uses_form_ = false;
  /// Whether the sample's image field holds a packed crop for the device.
  bool packed_ = false;
  std::vector<std::byte> form_;
  /// The bytes that are decoded.
  std::span<const std::byte> bytes_;
  std::span<const std::byte> kept_;
  /// Memory in the cache for the pixels; empty if the cache does not take them.
  std::span<std::byte> room_;
  ImageInfo info_;
  /// The plans of the images that are made of `encoded_`.
  std::vector<ResamplePlan> plans_;
  /// The plans of "image", if the record has further encoded images.
  std::vector<ResamplePlan> main_plans_;
  /// Seed of the streams from 1 on (`SampleImagePlace::stream`).
  std::uint64_t own_seed_ = 0;
  /// The random numbers of each planned image that has a stream of its own.
  std::vector<Random> own_random_;
  /// The region of the stored image to decode, at 1/`reduction` of its resolution.
  struct Needed {
    Region region{};
    int reduction = 1;
  };
  Needed needed_{};
};

}  // namespace millrace
