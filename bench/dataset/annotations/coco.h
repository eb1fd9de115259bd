// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataset/annotations/record_rest.h"

namespace millrace::cli {

/// An image of a COCO file.
struct CocoImage {
  std::int64_t id = 0;
  /// Relative to the folder of the images, and below it.
  std::string file;
  /// In pixels, as it is stored; 0 = the file does not say.
  std::int64_t width = 0;
  std::int64_t height = 0;
};

/// A box of an image.
struct CocoBox {
  static constexpr std::uint64_t no_keypoints = UINT64_MAX;

  /// The place of its image among the images.
  std::uint64_t image = 0;
  /// The place of its category among those, sorted by id.
  std::int64_t label = 0;
  /// x1, y1, x2, y2 in pixels.
  std::array<float, 4> corners{};
  /// Where its keypoints begin.
  std::uint64_t keypoints = no_keypoints;
};

/// What a JSON file of COCO's form ("instances", "person_keypoints") says of images: the boxes of
/// their objects. Masks of objects ("segmentation") are passed over.
struct CocoFile {
  std::vector<CocoImage> images;
  /// The categories' names, sorted by id.
  std::vector<std::string> classes;
  /// By image, those of one in the file's order.
  std::vector<CocoBox> boxes;
  /// How many keypoints each box has; 0 = no annotation has any.
  std::size_t keypoints = 0;
  /// x, y and visibility of each, one behind the other.
  std::vector<float> keypoint_numbers;
  /// The annotations that are left out: of crowds ("iscrowd" 1), and with a box that is not wider
  /// and higher than 0 in float32.
  std::uint64_t crowds = 0;
  std::uint64_t empty_boxes = 0;
  /// Of the file's bytes.
  std::uint64_t hash = 0;
};

/// Throws `Error`: `not_found`, `io`, and `invalid_argument` with file, place, key and value for
/// what is not of this form.
CocoFile read_coco(const std::filesystem::path& file);

/// The fields that an image's record has by the file, little-endian: `image_id` int64; `boxes`
/// float32 [n, 4] as x1, y1, x2, y2 in pixels; `labels` int64 [n]; and if an annotation of the file
/// has any, `keypoints` float32 [n, K, 3] as x, y, visibility, zeros for a box without.
RecordRest coco_fields(const CocoFile& file, std::size_t image);

}  // namespace millrace::cli
