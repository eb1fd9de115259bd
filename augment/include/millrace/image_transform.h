// SPDX-License-Identifier: Apache-2.0
//
// A transform may be used by any number of threads and pipelines; it holds all it needs, and
// outlives the workers that it makes.
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

/// Returns the recipe with each `StoredTarget` as the records of `dataset` have the field. If the
/// dataset says that it is an int64, or the first record has one there, the recipe stays as it is
/// and no other record is read. If none can be read, it stays too: the run reports the error.
/// Throws `Error` (`invalid_argument`) if the recipe mixes and the label is not an integer.
Recipe recipe_for(const Recipe& recipe, const Dataset& dataset);

/// Makes a transform from the record field "image" (an encoded image) and those that the recipe's
/// `targets` name, by default "label" (int64, little-endian), to the sample fields
///     image  uint8  [output.height, output.width, 3]   RGB, NHWC in the batch; of a recipe with
///                   `FiveCrop` or `TenCrop` [5 or 10, output.height, output.width, 3]
///     label  int64  scalar, or what `targets` says in its place (`millrace/target.h`)
/// and, for a recipe whose last operation flips on the device, the images unflipped and
///     flip   uint8  scalar   1 where "image" is to be flipped (`FieldSpec::flips`)
/// A pipeline uses the transform of `recipe_for` its dataset, so that batches have no label if the
/// records have none, and text of varying length if it is text.
/// A recipe's `mix` adds the field "target" to its batches (`mix_transform`), and the stage "mix".
/// Stages: "decode" and "augment". Its fingerprint is the XXH3-64 of the recipe's JSON, with each
/// `StoredTarget` as the `ValuesTarget` of an int64. The operations draw from the `Random` of a
/// sample in their own order. Pixels are those of libjpeg-turbo's default decode and of Pillow's
/// `resize` (`Recipe::like`), to the bit. Images beyond `limits` are bad records;
/// `max_decode_bytes` is for all workers together. Limits are no part of the fingerprint, so a run
/// may go on with higher ones. Throws `Error` (`invalid_argument`) for a recipe that `validate`
/// refuses and for a limit of 0.
std::shared_ptr<const Transform> image_transform(const Recipe& recipe,
                                                 const DecodeLimits& limits = {});

/// The checksum that these transforms bind a seek index of the field "image" to
/// (`ImageDecoder::use_index`). It follows from the record's own; nullopt if nobody compared that.
std::optional<std::uint64_t> image_checksum(const Record& record);

}  // namespace millrace
