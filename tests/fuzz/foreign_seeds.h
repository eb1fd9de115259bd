// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "support/foreign_lmdb.h"

namespace millrace::testing {

/// Makes a value that begins like a JPEG.
inline std::string seed_image(std::size_t bytes) {
  return "\xFF\xD8\xFF\xE0" + std::string(bytes, 'x');
}

/// Makes enough images for a branch page.
inline Pairs seed_images(int count) {
  Pairs images;
  for (int n = 0; n < count; ++n)
    images.emplace_back("c" + std::to_string(n % 3) + "/" + std::to_string(1000 + n) + ".jpg",
                        seed_image(n == 5 ? 5000 : 200));
  return images;
}

inline void write_foreign_seeds(const std::filesystem::path& folder) {
  using namespace std::string_literals;
  write_pairs(folder / "images", seed_images(40));
  write_pairs(folder / "ocr", {{"image-000000001", seed_image(100)},
                               {"image-000000002", seed_image(3000)},
                               {"label-000000001", "a text"},
                               {"label-000000002", "b"},
                               {"num-samples", "2"}});
  // channels 1, height 2, width 2, data, label 3
  write_pairs(folder / "datum", {{"0", "\x08\x01\x10\x02\x18\x02\x22\x04wxyz\x28\x03"s},
                                 {"1", "\x08\x01\x10\x02\x18\x02\x22\x04wxyz\x28\x04"s}});
  // A tensor of one string, and one of an int32.
  write_pairs(
      folder / "tensors",
      {{"0", "\x0A\x0C\x08\x01\x10\x04\x32\x06\xFF\xD8\xFF\xE0xy\x0A\x05\x10\x02\x22\x01\x07"s}});
  write_pairs(folder / "tuples", {{"0",
                                   "\x80\x03"s
                                   "C\x06\xFF\xD8\xFF\xE0xyK\x05\x86."s},
                                  {"__len__", "\x80\x03K\x01."s}});
  write_pairs(folder / "messagepack", {{"0", "\x92\xC4\x06\xFF\xD8\xFF\xE0xy\x05"s}});
  write_pairs(folder / "database", {{"\1\0\0\0\0\0\0\0"s, seed_image(20)}}, "records",
              MDB_INTEGERKEY);
}

}  // namespace millrace::testing
