// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace millrace::cli {

/// Fields of a record without its image. For a dataset's record: all other fields. For an image
/// file: its annotations. A dataset's record that has no image is copied unchanged.
struct RecordRest {
  struct Field {
    std::string name;
    std::vector<std::byte> bytes;
  };
  bool has_image = true;
  /// Fields as stored, without the image and the fields that pack makes itself.
  std::vector<Field> fields = {};
};

}  // namespace millrace::cli
