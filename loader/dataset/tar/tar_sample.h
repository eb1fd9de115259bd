// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace millrace {

/// What the records of tars have. The first samples say that, and one that lacks it is a bad
/// record.
struct TarFields {
  bool image = false;
  bool label = false;
};

/// Takes a sample apart: the fields are the contents of its members, by their extensions:
///     jpg, jpeg, png, webp, bmp, gif, pbm, pgm, ppm, tif, tiff   image
///     cls                                                        label, a number of 8 bytes
///     json   json, and, where there is no cls, its "label" or "cls" as label
///     txt    text
///     any other, such as "seg.png"                               itself
/// For one thread.
class TarSample {
 public:
  explicit TarSample(TarFields needed) : needed_(needed) {}

  /// Reads its members. The reason of a bad one is a clause for people. Views lead into `bytes`.
  Status read(std::span<const std::byte> bytes);

  std::span<const RecordField> fields() const { return fields_; }
  /// The path of its first member up to its extension.
  const std::string& key() const { return key_; }

 private:
  Status add(std::string extension, std::span<const std::byte> contents);
  Status add_label();

  TarFields needed_;
  std::vector<RecordField> fields_;
  std::string key_;
  /// Of fields whose names are their own extensions; a view of one stays where it is.
  std::deque<std::string> names_;
  std::int64_t label_ = 0;
  /// Empty where there is none.
  std::string image_extension_;
};

}  // namespace millrace
