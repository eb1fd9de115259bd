// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/jpeg_recoder.h>
#include <millrace/image_decoder.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace::cli {

/// Form in which JPEGs are stored: as in the input, always as coefficients, or always as JPEGs.
enum class StoredForm : std::uint8_t { unchanged, coefficients, jpeg };

/// Converts images to a stored form. Not thread-safe.
class ImageRecoder {
 public:
  ImageRecoder(StoredForm form, std::shared_ptr<DecodeBudget> budget);

  /// Replaces the bytes of a JPEG that has another form. `decoder` must not hold an image. A record
  /// of coefficients is made only if it restores the file. If millrace's stages do not decode the
  /// JPEG, its pixels must also equal the record's. Otherwise the bytes stay, and `stays` says why.
  /// Returns a bad status for a record whose file cannot be restored.
  Status recode(ImageDecoder& decoder, std::vector<std::byte>& bytes);
  /// Reason why the last image stays a JPEG; empty if it does not.
  const std::string& stays() const { return stays_; }
  /// Returns whether the last image is stored as coefficients that were made and verified. The
  /// decoder then has the header of their record.
  bool has_verified() const { return has_verified_; }

 private:
  Status verify(ImageDecoder& decoder, const std::vector<std::byte>& jpeg) const;

  StoredForm form_;
  JpegRecoder recoder_;
  std::vector<std::byte> recoded_;
  std::string stays_;
  bool has_verified_ = false;
};

}  // namespace millrace::cli
