// SPDX-License-Identifier: Apache-2.0
//
// Transforms of images by a recipe.
//
// Threads and lifetimes: any number of threads and pipelines may use one transform. It owns
// everything that it needs, and must outlive the workers that it makes.
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

/// Returns the recipe with each `StoredTarget` replaced by a `ValuesTarget` of the type that the
/// field has in the records of `dataset`. It is removed if the records lack the field. It stays as
/// it is if the field is an int64. If the dataset or the first record shows this for all such
/// fields, no other record is read. The recipe also stays unchanged if no record can be read, since
/// the run reports this error. Throws `Error` (`invalid_argument`) if
/// the recipe mixes and the label is not an integer.
Recipe recipe_for(const Recipe& recipe, const Dataset& dataset);

/// Makes a transform that reads the record field "image" (an encoded image) and the fields that
/// the recipe's `targets` name, by default "label" (int64, little-endian). The sample fields are
///     image  uint8  [output.height, output.width, 3]   RGB, NHWC in the batch; for a recipe with
///                   `FiveCrop` or `TenCrop` [5 or 10, output.height, output.width, 3]
///     label  int64  scalar, or the fields of `targets` in its place (`millrace/target.h`).
/// For a recipe whose last operation flips on the device, the images are not flipped, and a field
/// says whether the device flips them:
///     flip   uint8  scalar   1 where "image" is to be flipped (`FieldSpec::flipped_image`).
/// The fields of the recipe's `views` follow. Image n of these, counted from 1 over all views,
/// draws from `Random(seed, n)`. The seed is the first 64 bits of the sample's `Random`. The
/// recipe's further `images` are last, uint8 like "image". Images with `Draws::own` also draw from
/// `Random(seed, n)`, where n continues the count of the views' images. A pipeline replaces this
/// transform by the one for `recipe_for(recipe, dataset)`. So batches have no label if the records
/// have none. If the records' labels are texts, the batches' labels are texts of varying length.
///
/// A recipe's `mix` adds the field "target" to its batches (`mix_transform`), and the stage "mix".
/// The other stages are "decode" and "augment". The fingerprint is the XXH3-64 of the recipe's
/// JSON. It is the same for `StoredTarget` and `ValuesTarget{}`, and for any `Recipe::decode_on`.
/// The operations draw from the sample's `Random` one after the other, in the order of
/// `Recipe::ops`. Pixels are those of libjpeg-turbo's default decode and of Pillow's `resize`
/// (`Recipe::like`), to the bit.
///
/// Images beyond `limits` are bad records. All workers together share `max_decode_bytes`. Limits
/// are not part of the fingerprint, so a run can resume with higher ones. Throws `Error`
/// (`invalid_argument`) for a recipe that `validate` refuses and for a limit of 0.
std::shared_ptr<const Transform> image_transform(const Recipe& recipe,
                                                 const DecodeLimits& limits = {});

/// Returns the checksum that binds a seek index to the field "image" (`ImageDecoder::use_index`).
/// It is derived from the record's own checksum. Returns nullopt if that checksum was not verified.
std::optional<std::uint64_t> image_checksum(const Record& record);

}  // namespace millrace
