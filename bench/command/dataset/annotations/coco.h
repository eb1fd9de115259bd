// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "command/dataset/annotations/record_rest.h"

namespace millrace::cli {

/// An image of a COCO file.
struct CocoImage {
  std::int64_t id = 0;
  /// Relative to the folder of images, and inside it.
  std::string file;
  /// Size in pixels as stored; 0 = the file does not say.
  std::int64_t width = 0;
  std::int64_t height = 0;
};

/// A box of an image.
struct CocoBox {
  static constexpr std::uint64_t no_keypoints = UINT64_MAX;

  /// Index of its image in `images`.
  std::uint64_t image = 0;
  /// Index of its category, sorted by id.
  std::int64_t label = 0;
  /// x1, y1, x2, y2 in pixels.
  std::array<float, 4> corners{};
  /// Index of its first keypoint number.
  std::uint64_t keypoints = no_keypoints;
};

/// Annotations from a JSON file in COCO's format ("instances", "person_keypoints"): boxes and
/// keypoints of objects. Masks of objects ("segmentation") are skipped.
struct CocoFile {
  std::vector<CocoImage> images;
  /// Names of the categories, sorted by id.
  std::vector<std::string> classes;
  /// Sorted by image; the boxes of an image in the file's order.
  std::vector<CocoBox> boxes;
  /// Number of keypoints of each box; 0 = no annotation has keypoints.
  std::size_t keypoints = 0;
  /// x, y and visibility of each keypoint, contiguous.
  std::vector<float> keypoint_numbers;
  /// Numbers of annotations that are left out: of crowds ("iscrowd" 1), and with a box that is not
  /// wider and higher than 0 in float32.
  std::uint64_t crowds = 0;
  std::uint64_t empty_boxes = 0;
  /// Hash of the file's bytes.
  std::uint64_t hash = 0;
};

/// Reads a file. Throws `Error`: `not_found`, `io`, and `invalid_argument` with file, entry, key
/// and value if it has another format.
CocoFile read_coco(const std::filesystem::path& file);

/// Makes the fields of an image's record, little-endian: `image_id` int64; `boxes` float32 [n, 4]
/// as x1, y1, x2, y2 in pixels; `labels` int64 [n]. If any annotation of the file has keypoints,
/// also `keypoints` float32 [n, K, 3] as x, y, visibility, with zeros for a box without keypoints.
RecordRest coco_fields(const CocoFile& file, std::size_t image);

}  // namespace millrace::cli
