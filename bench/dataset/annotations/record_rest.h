// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace millrace::cli {

/// What a record has beside its image: of a dataset's record all others, of an image what is told
/// of it elsewhere. A dataset's record without an image is copied as it is.
struct RecordRest {
  struct Field {
    std::string name;
    std::vector<std::byte> bytes;
  };
  bool has_image = true;
  /// As they are stored, but for the image and what is said of it anew.
  std::vector<Field> fields = {};
};

}  // namespace millrace::cli
