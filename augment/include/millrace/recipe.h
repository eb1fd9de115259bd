// SPDX-License-Identifier: Apache-2.0
//
// Recipes: image transforms as data.
//
// A recipe is a value: it may be copied, and read from any thread.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/mix.h>
#include <millrace/operation.h>
#include <millrace/target.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace MILLRACE_API millrace {

/// A named recipe.
struct RecipePreset {
  const char* name;
  /// Model and purpose of the recipe, in a few words.
  const char* description;
};

/// Further images of a sample, made from the same record, which is decoded only once. The local
/// crops of DINO are an example.
struct View {
  /// Name of the sample's field: uint8 [count, output.height, output.width, 3]. If `count` is 1,
  /// the shape lacks this extent.
  std::string field;
  /// The number of images, 1 to 64. Each draws its own random numbers.
  int count = 1;
  Size output{224, 224};
  /// Operations as in `Recipe::ops`, except those that make several images or run on the device.
  std::vector<Operation> ops{RandomResizedCrop{}, RandomHorizontalFlip{}};
  friend bool operator==(const View&, const View&) = default;
};

/// Random numbers for the operations on a further encoded image of a record.
enum class Draws {
  /// The random numbers of "image". The sample shows the same part of both images, in fractions of
  /// their widths and heights, with the same flips, warps and colours. Equal bytes give equal
  /// pixels. If the images differ in size, the part is scaled to the further image, so its edges
  /// may be inside pixels. Resizing puts it at the same position in the output as in "image".
  same,
  /// Random numbers of its own.
  own,
};

/// A further encoded image of each record, which forms a pair with "image": a depth map, a second
/// exposure, or the positive of a query. The operations of the recipe are applied to it, too.
struct RecordImage {
  /// Its name in records and in samples. The sample's field has the shape of "image".
  std::string field;
  Draws draws = Draws::same;
  friend bool operator==(const RecordImage&, const RecordImage&) = default;
};

/// An image transform as data: a list of operations, in torchvision's names and order. The
/// geometric ones (crops, resize) come first. They are folded into one region to decode and one
/// resampling. The last of them makes an image of the output's size. The other operations run in
/// place on this image.
struct Recipe {
  Size output{224, 224};
  std::vector<Operation> ops{RandomResizedCrop{}, RandomHorizontalFlip{}};
  Like like = Like::pillow_13;
  /// Resolution at which images are decoded. `reduced` is faster. It is inexact if the part to
  /// resize is at least twice as wide and high as its new size. Images that must be turned, and the
  /// filter `nearest`, stay exact.
  Resolution resolution = Resolution::exact;
  /// Place where images are decoded. With `device`, workers pack the coded data of crops, and the
  /// device makes the pixels. They equal a worker's pixels to the bit. This needs a conversion of
  /// "image". The coded data are coefficients or a baseline JPEG. Coefficients come from `pack
  /// --store coefficients` or from `PipelineOptions::cache_bytes`. A JPEG needs a seek index that
  /// reaches to the crop's end. Workers make all other images. They also make images that are
  /// padded, that have further operations on pixels, or whose crop needs more than 8 MiB of
  /// scratch. `device` excludes `views`, operations that make several images,
  /// `Resolution::reduced`, and mixing on workers. If the device finds invalid data in a crop, a
  /// worker makes the sample again. The sample gets the field
  ///     packed  uint8  scalar   1 if the device makes the image
  DecodeOn decode_on = DecodeOn::worker;
  /// With `DecodeOn::device`: share of the images that the device may make, 0 to 1. It is an upper
  /// bound: workers make the other images, and those that the device cannot make. A smaller share
  /// leaves more of the device's time to the step. `millrace tune` searches the share. A sample's
  /// position in the order decides whether the device may make its image. The selected samples are
  /// spread evenly: of n consecutive samples, n x `device_share` are selected, rounded up or down.
  /// Pixels and fingerprint do not depend on the share. With `DecodeOn::worker` it has no effect.
  double device_share = 1;
  /// Fields of a sample besides its images, made from fields of the record. The default is the
  /// label, if the records have one. Masks, boxes and keypoints move with the pixels.
  std::vector<Target> targets{{"label", StoredTarget{}}};
  /// Further images of each record. The field "image" has the same pixels with and without them. A
  /// recipe with views must not have `mix`, masks, boxes or keypoints.
  std::vector<View> views{};
  /// Further encoded images of each record, at most 63. The field "image" has the same pixels with
  /// and without them, and targets move with "image". If one of the images is bad, the record is
  /// bad. A recipe with such images must not have `mix` or operations on the device. The sample
  /// cache is not used. Cached recoded records and seek indices are used for "image" alone.
  std::vector<RecordImage> images{};
  /// Mixing of a batch's samples with each other; nullopt = none.
  std::optional<Mix> mix{};

  /// Returns the usual training recipe: random resized crop and flip.
  static Recipe train(int size = 224);
  /// Returns the usual evaluation recipe: it resizes the shorter side to size x 256 / 224
  /// (rounded), and takes the centred window.
  static Recipe eval(int size = 224);

  /// Returns the names and descriptions of the presets: the recipes with which well-known models
  /// were trained and evaluated on ImageNet. Their `mix` has ImageNet's 1000 classes.
  static std::vector<RecipePreset> presets();
  /// Returns a preset's recipe, for an output of size x size; nullopt = the preset's own size.
  /// Throws `Error`: `not_found` for an unknown name (the message lists the names),
  /// `invalid_argument` for a size that cannot be made.
  static Recipe preset(std::string_view name, std::optional<int> size = std::nullopt);

  /// Reads a recipe from JSON. Examples:
  ///     {"output": [224, 224], "like": "pillow-13",
  ///      "ops": [{"op": "random_resized_crop", "scale": [0.08, 1], "ratio": [0.75, 1.3333]},
  ///              {"op": "random_horizontal_flip", "p": 0.5}]}
  ///     {"output": [224, 224], "ops": [{"op": "resize", "size": 256}, {"op": "center_crop"}]}
  /// "output" is [width, height]. "like" is "pillow-13" or "pillow-12". "resolution" is "exact" or
  /// "reduced". "decode_on" is "worker" or "device". "device_share" is a number in 0 to 1.
  /// "interpolation", in "resize", "random_resized_crop" and "resized_crop", is "bilinear",
  /// "bicubic", "box", "hamming", "lanczos" or "nearest".
  /// "on", in "random_horizontal_flip", is "worker" or "device". "targets" has an object for each
  /// field. Its key "is" states the kind of target: "mask", "boxes", "keypoints", "values" or
  /// "stored". Its other keys are the members of that kind's struct:
  ///     {"mask": {"is": "mask", "fill": 255}, "boxes": {"is": "boxes", "format": "xywh"},
  ///      "labels": {"is": "values", "dtype": "int64", "of": "boxes"}}
  /// "views" has for each field the members of `View`:
  ///     {"local": {"count": 6, "output": [96, 96],
  ///                "ops": [{"op": "random_resized_crop", "scale": [0.05, 0.4]}]}}
  /// "images" has for each field the members of `RecordImage`, "draws" is "same" or "own":
  ///     {"depth": {}, "positive": {"draws": "own"}}
  /// "mix" has the members of `Mix`:
  ///     {"classes": 1000, "mixup": 0.2, "cutmix": 1, "cutmix_share": 0.5, "p": 1, "on": "worker"}
  /// A missing key has the default of `Recipe` or of the operation. `to_json` writes "resolution",
  /// "decode_on", "device_share", "targets", "views", "images" and "mix" only if they differ from
  /// the default.
  ///
  /// Throws `Error` (`invalid_argument`) for malformed JSON, an unknown key or operation, a value
  /// out of range, or operations that do not fit together. The message names the operation by its
  /// number from 0, the key and the value. `source` names the text in the message.
  static Recipe from_json(std::string_view json, std::string_view source = "recipe");
  std::string to_json() const;

  /// Checks the recipe. Throws `Error` (`invalid_argument`), which names the first value out of
  /// range, or an operation at a position where it is not allowed.
  void validate() const;

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

}  // namespace millrace
