// SPDX-License-Identifier: Apache-2.0
//
// mixup and CutMix: they mix the samples of a batch in pairs and make soft targets.
//
// Threads and lifetimes: `Mix` is a value. Any number of threads and pipelines may share one
// transform that was made from it.
#pragma once

#include <millrace/batch_transform.h>
#include <millrace/detail/export.h>

#include <memory>

namespace MILLRACE_API millrace {

/// The place where the samples of a batch are mixed.
enum class MixOn {
  worker,  ///< by a worker, once all samples of a batch are made
  device,  ///< by the device, before it converts; needs `PipelineOptions::conversion`; the result
           ///< has the same bits
};

/// Parameters for mixing a batch's samples. Random numbers decide for each batch whether it is
/// mixed, and by which method: mixup (Zhang et al., 2018) or CutMix (Yun et al., 2019). The share
/// that a sample keeps of its own image is drawn from Beta(alpha, alpha).
struct Mix {
  /// Number of classes. Labels are 0 to classes - 1.
  int classes = 0;
  /// Alpha of mixup, up to 100; 0 = never.
  double mixup = 0.2;
  /// Alpha of CutMix, up to 100; 0 = never.
  double cutmix = 1.0;
  /// Probability of CutMix if neither alpha is 0.
  double cutmix_share = 0.5;
  /// Probability that a batch is mixed.
  double p = 1.0;
  MixOn on = MixOn::worker;

  friend bool operator==(const Mix&, const Mix&) = default;
};

/// Makes a transform that mixes the sample field "image" (uint8, [height, width, channels], 1 to 4
/// channels). Samples must have the field "label" (int64, a scalar). The transform adds
///     target  float32  [classes]   the share of each class, 1 in sum; 0 for samples not valid
/// With `MixOn::device` the images stay unmixed, and it also adds
///     mix     int32    [5]         the device's work (`MixWork`).
/// Sample n of N is mixed with sample N - 1 - n, if both are valid. mixup mixes 8-bit pixels. It
/// rounds the share to a multiple of 1/256, and the targets use the rounded share. CutMix's box is
/// drawn as torchvision's `v2.CutMix` draws it, and the targets use the box's share of the image.
/// Throws `Error` (`invalid_argument`) for values out of range. A label outside the classes ends
/// the run.
std::shared_ptr<const BatchTransform> mix_transform(const Mix& mix);

}  // namespace millrace
