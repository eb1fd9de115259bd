// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/transform.h>

#include <cstddef>
#include <memory>

#include "image_maker.h"

namespace millrace {

/// Makes samples, two at a time where the decodes of their images can be interleaved.
class ImageWorker final : public TransformWorker {
 public:
  static constexpr std::size_t at_once = 2;

  ImageWorker(const SampleImages& images, const Recipe& recipe,
              const std::shared_ptr<DecodeBudget>& budget)
      : first_{{images, recipe, budget, ImageMaker::Takes::all}},
        second_{{images, recipe, budget, ImageMaker::Takes::turns}} {}

  Status make(const Record& record, Random& random, Sample& sample) override;
  void make_interleaved(SampleSource& source) override;

 private:
  struct InterleavedSample {
    ImageMaker maker;
    /// The sample whose image is being decoded, or nullptr.
    SampleTask* task = nullptr;
  };
  void begin(InterleavedSample& lane, SampleSource& source);
  void make_by_first(SampleTask& task, SampleSource& source);
  static void finish(InterleavedSample& lane, SampleSource& source);

  InterleavedSample first_;
  /// Makes samples whose decode may be interleaved with that of `first_`.
  InterleavedSample second_;
};

}  // namespace millrace
