// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Fields that the records of some tars must have. The first samples decide this. A later sample
/// that lacks one of them is a bad record.
struct TarFields {
  bool image = false;
  bool label = false;
};

/// Parses a sample into fields for one thread. Each member is a field, named by its extension:
///     jpg, jpeg, png, webp, bmp, gif, pbm, pgm, ppm, tif, tiff: field "image";
///     cls: field "label", a number of 8 bytes;
///     json: field "json". Without a cls, its "label" or "cls" is the field "label";
///     txt: field "text";
///     any other, such as "seg.png": a field of that name.
/// Labels are parsed only if the needed fields include one.
class TarSample {
 public:
  explicit TarSample(TarFields needed) : needed_(needed) {}

  /// Reads the members of a sample. Fields are views of `bytes`. For a bad sample the reason is a
  /// clause for messages.
  Status read(std::span<const std::byte> bytes);

  /// The steps of `read`, for members that come one by one: begin, add each file, finish. Fields
  /// are views of the contents. After a bad step the sample is bad, and the rest need not be added.
  void begin(std::string_view key);
  Status add(std::string extension, std::span<const std::byte> contents);
  Status finish();

  std::span<const RecordField> fields() const { return fields_; }
  /// The path of the first member without its extension.
  const std::string& key() const { return key_; }

 private:
  Status add_label();

  TarFields needed_;
  std::vector<RecordField> fields_;
  std::string key_;
  /// Names of fields that are named by their extension. A deque, so that views of its elements stay
  /// valid.
  std::deque<std::string> names_;
  std::int64_t label_ = 0;
  /// Extension of the member in the field "image"; empty without one.
  std::string image_extension_;
};

}  // namespace millrace
