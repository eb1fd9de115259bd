// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/resample.h>
#include <millrace/image_decoder.h>
#include <millrace/recipe.h>
#include <millrace/transform.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/program.h"
#include "targets/targets.h"

namespace millrace {

/// Makes one sample after the other: the decode of its image, and what the recipe does to it. In
/// two steps, between which the decode may take turns with another's.
class ImageMaker {
 public:
  /// Whether it makes all samples, or only those of images that might take turns: its memory is
  /// then small.
  enum class Takes { all, turns };

  ImageMaker(const Program& program, const Recipe& recipe,
             const std::shared_ptr<DecodeBudget>& budget, Takes takes);

  /// Begins a sample, which must outlive `finish`, and its record and random numbers as well. Bad
  /// ends it.
  Status begin(const Record& record, Random& random, Sample& sample);
  /// Whether it left what it should begin to one that takes all, and nothing has begun.
  bool declined() const { return declined_; }
  /// Ends it.
  Status finish();

  /// Whether the image's decode can take turns (`ImageDecoder::take_turns`), and has any left.
  bool has_turns() { return decodes_ && decoder_->has_turns(); }
  ImageDecoder& decoder() { return *decoder_; }

 private:
  Status open(std::span<const std::byte> encoded);
  Status begin_image(const Record& record);
  Status finish_image();
  void resample_views(const PixelView& pixels, std::uint8_t* output);
  SampleImage view(std::size_t number);
  Region prepare(const Fold& fold);
  void resample(const Fold& fold, const PixelView& pixels, std::uint8_t* output);

  const Program& program_;
  const Size output_;
  const Resolution resolution_;
  const std::size_t views_;
  const bool may_be_kept_;
  const bool needs_orientation_;
  const Takes takes_;
  std::unique_ptr<ImageDecoder> decoder_;
  Resampler resampler_;
  Scratch scratch_;
  TargetWorkers targets_;

  // Of the sample that is in the making.
  bool declined_ = false;
  Random* random_ = nullptr;
  Sample* sample_ = nullptr;
  /// Whether its image is decoded: the cache does not have its pixels.
  bool decodes_ = false;
  std::span<const std::byte> kept_;
  /// Where the cache wants them; empty if it does not.
  std::span<std::byte> room_;
  ImageInfo info_;
  /// One for each of its images.
  std::vector<Fold> folds_;
  /// What is decoded of the stored image, at 1/`reduction` of its resolution.
  struct Needed {
    Region region{};
    int reduction = 1;
  };
  Needed needed_{};
};

/// Makes samples, two in turn where their images can take turns.
class ImageWorker final : public TransformWorker {
 public:
  static constexpr std::size_t at_once = 2;

  ImageWorker(const Program& program, const Recipe& recipe,
              const std::shared_ptr<DecodeBudget>& budget)
      : first_{{program, recipe, budget, ImageMaker::Takes::all}},
        second_{{program, recipe, budget, ImageMaker::Takes::turns}} {}

  Status make(const Record& record, Random& random, Sample& sample) override;
  void make_in_turn(SampleSource& source) override;

 private:
  struct Place {
    ImageMaker maker;
    /// The sample whose image is being decoded; nullptr if there is none.
    SampleTask* task = nullptr;
  };
  void begin(Place& place, SampleSource& source);
  void make_by_first(SampleTask& task, SampleSource& source);
  static void finish(Place& place, SampleSource& source);

  Place first_;
  /// Makes what might take turns with the first one's.
  Place second_;
};

}  // namespace millrace
