// SPDX-License-Identifier: Apache-2.0
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

/// A recipe that is known by name.
struct RecipePreset {
  const char* name;
  /// What is trained or evaluated with it, in a few words.
  const char* what;
};

/// The image program as data: a list of operations, in torchvision's names and order. The geometric
/// ones (crops, resize) come first and are folded into one region to decode and one resampling;
/// one of them makes an image of the output's size. The others run in place on that image.
struct Recipe {
  Size output{224, 224};
  std::vector<Operation> ops{RandomResizedCrop{}, RandomHorizontalFlip{}};
  Like like = Like::pillow_13;
  /// `reduced` is faster where what is resized is at least twice as wide and high as the output,
  /// and inexact there. Images that are turned upright, and `nearest`, stay exact.
  Resolution resolution = Resolution::exact;
  /// The further fields of records that a sample has. Masks, boxes and keypoints among them go
  /// where the operations take the pixels. By default the label, if the records have one.
  std::vector<Target> targets{{"label", StoredTarget{}}};
  /// How the samples of a batch are mixed with each other; nullopt = they are not.
  std::optional<Mix> mix{};

  /// The usual training recipe: random resized crop and flip.
  static Recipe train(int size = 224);
  /// The usual evaluation recipe: shorter side to size x 256 / 224 (rounded), centred window.
  static Recipe eval(int size = 224);

  /// The recipes that well-known models were trained and evaluated with, on ImageNet: `mix` has its
  /// 1000 classes.
  static std::vector<RecipePreset> presets();
  /// One of them by name, for an output of size x size; nullopt = the preset's own. Throws `Error`:
  /// `not_found` (the message lists the names there are), `invalid_argument` for a size that cannot
  /// be made.
  static Recipe preset(std::string_view name, std::optional<int> size = std::nullopt);

  /// Reads a recipe from JSON, e.g.
  ///     {"output": [224, 224], "like": "pillow-13",
  ///      "ops": [{"op": "random_resized_crop", "scale": [0.08, 1], "ratio": [0.75, 1.3333]},
  ///              {"op": "random_horizontal_flip", "p": 0.5}]}
  ///     {"output": [224, 224], "ops": [{"op": "resize", "size": 256}, {"op": "center_crop"}]}
  /// with output as [width, height], like as "pillow-13" or "pillow-12", "resolution" (which is
  /// written only if it is not the default) as "exact" or "reduced", in "resize" and
  /// "random_resized_crop" "interpolation": "bilinear", "bicubic", "box", "hamming", "lanczos" or
  /// "nearest", in "random_horizontal_flip" "on": "worker" or "device", "targets" as
  ///     {"mask": {"is": "mask", "fill": 255}, "boxes": {"is": "boxes", "format": "xywh"},
  ///      "labels": {"is": "values", "dtype": "int64", "of": "boxes"}}
  /// ("is" as "mask", "boxes", "keypoints", "values" or "stored", and the members of that one's
  /// struct), which is written only if it is not the default, and "mix" as
  ///     {"classes": 1000, "mixup": 0.2, "cutmix": 1, "cutmix_share": 0.5, "p": 1, "on": "worker"}
  /// What is left out has the default of `Recipe` or of the operation. Throws `Error`
  /// (`invalid_argument`) for malformed JSON, an unknown key or operation, a value out of range or
  /// operations that do not fit together, naming the operation by its number from 0, the key and
  /// the value; `source` names the text in the message.
  static Recipe from_json(std::string_view json, std::string_view source = "recipe");
  std::string to_json() const;

  /// Throws `Error` (`invalid_argument`) naming the first value that is out of range, or the
  /// operation that cannot stand where it does.
  void validate() const;

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

}  // namespace millrace
