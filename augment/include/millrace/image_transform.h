// SPDX-License-Identifier: Apache-2.0
//
// The transform of images by a recipe.
//
// Threads and lifetimes: any number of threads and pipelines may use one transform. It owns all
// that it needs, and must outlive the workers that it makes.
#pragma once

#include <millrace/dataset.h>
#include <millrace/decode_budget.h>
#include <millrace/detail/export.h>
#include <millrace/recipe.h>
#include <millrace/transform.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace MILLRACE_API millrace {

/// Returns the recipe with each `StoredTarget` resolved to the field that the records of `dataset`
/// have. The target stays as it is if the dataset says that the field is an int64, or if the first
/// record has one there; no other record is then read. It also stays if no record can be read: the
/// run then reports the error. Throws `Error` (`invalid_argument`) if the recipe mixes and the
/// label is not an integer.
Recipe recipe_for(const Recipe& recipe, const Dataset& dataset);

/// Makes a transform from the record field "image" (an encoded image) and the fields that the
/// recipe's `targets` name, by default "label" (int64, little-endian). The sample fields are
///     image  uint8  [output.height, output.width, 3]   RGB, NHWC in the batch; for a recipe with
///                   `FiveCrop` or `TenCrop` [5 or 10, output.height, output.width, 3]
///     label  int64  scalar, or the fields of `targets` in its place (`millrace/target.h`).
/// For a recipe whose last operation flips on the device, the images are not flipped, and a field
/// says whether the device flips them:
///     flip   uint8  scalar   1 where "image" is to be flipped (`FieldSpec::flips`).
/// Last come the fields of the recipe's `views`, which are images, too. Their image n, counted from
/// 1 over all views, draws from `Random(seed, n)`. The seed is what the sample's `Random` gives
/// first, as 64 bits. After them come the recipe's further `images`, uint8 like "image". Those with
/// their own draws continue the streams of the views.
/// A pipeline uses the transform of `recipe_for` its dataset. So batches have no label if the
/// records have none, and text of varying length if the label is text.
///
/// A recipe's `mix` adds the field "target" to its batches (`mix_transform`), and the stage "mix".
/// The other stages are "decode" and "augment". The fingerprint is the XXH3-64 of the recipe's
/// JSON, with each `StoredTarget` written as the `ValuesTarget` of an int64. The operations draw
/// from the sample's `Random` in their own order. Pixels are those of libjpeg-turbo's default
/// decode and of Pillow's `resize` (`Recipe::like`), to the bit.
///
/// Images beyond `limits` are bad records. All workers together share `max_decode_bytes`. Limits
/// are not a part of the fingerprint, so a run may be continued with higher ones. Throws `Error`
/// (`invalid_argument`) for a recipe that `validate` refuses and for a limit of 0.
std::shared_ptr<const Transform> image_transform(const Recipe& recipe,
                                                 const DecodeLimits& limits = {});

/// Returns the checksum that binds a seek index to the field "image" (`ImageDecoder::use_index`).
/// It is derived from the record's own checksum. nullopt if that checksum was not verified.
std::optional<std::uint64_t> image_checksum(const Record& record);

}  // namespace millrace
