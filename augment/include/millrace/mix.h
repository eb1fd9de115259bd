// SPDX-License-Identifier: Apache-2.0
//
// mixup and CutMix: the samples of a batch mixed in pairs, with soft targets.
//
// Threads and lifetimes: `Mix` is a value. What is made of it may be used by any number of threads
// and pipelines.
#pragma once

#include <millrace/batch_transform.h>
#include <millrace/detail/export.h>

#include <memory>

namespace MILLRACE_API millrace {

/// Where the samples of a batch are mixed.
enum class MixOn {
  worker,  ///< by a worker, once all samples of a batch are made
  device,  ///< by the device, before it converts, which needs `PipelineOptions::conversion`; the
           ///< result has the same bits
};

/// How the samples of a batch are mixed. Each batch draws whether it is mixed and how: by mixup
/// (Zhang et al., 2018) or by CutMix (Yun et al., 2019), with a share from Beta(alpha, alpha).
struct Mix {
  /// Labels are 0 to classes - 1.
  int classes = 0;
  /// Alpha of mixup, up to 100; 0 = never.
  double mixup = 0.2;
  /// Alpha of CutMix, up to 100; 0 = never.
  double cutmix = 1.0;
  /// How often it is CutMix, where both are wanted.
  double cutmix_share = 0.5;
  /// How often a batch is mixed at all.
  double p = 1.0;
  MixOn on = MixOn::worker;

  friend bool operator==(const Mix&, const Mix&) = default;
};

/// Mixes the sample fields "image" (uint8, [height, width, channels], 1 to 4 channels) of samples
/// with the field "label" (int64, a scalar), and adds
///     target  float32  [classes]   the share of each class, 1 in sum; 0 for samples not valid
/// and, for `MixOn::device`, the images unmixed and
///     mix     int32    [5]         what the device does (`MixWork`)
/// The sample n of N is mixed with N - 1 - n. mixup is done with 8-bit pixels, and the share in
/// units of 1/256; the targets have the share that was used. CutMix's box is drawn as torchvision's
/// `v2.CutMix` draws it. A sample that is not valid mixes with none. Throws `Error`
/// (`invalid_argument`) for values out of range. A label that is no class ends the run.
std::shared_ptr<const BatchTransform> mix_transform(const Mix& mix);

}  // namespace millrace
