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

  /// Replaces the bytes of a JPEG file or of its coefficients, unless they have the stored form
  /// already. `decoder` must not hold an image. A JPEG file is replaced by its coefficients only if
  /// the file can be restored from them. If libjpeg-turbo decodes the JPEG, the coefficients must
  /// also show the same pixels. Otherwise the file is kept, and `reason_kept_as_jpeg` has the
  /// reason. Returns a bad status for coefficients from which the file cannot be restored.
  Status recode(ImageDecoder& decoder, std::vector<std::byte>& bytes);
  /// Reason why the last call of `recode` kept a JPEG file that should become coefficients; else
  /// empty.
  const std::string& reason_kept_as_jpeg() const { return reason_kept_as_jpeg_; }
  /// Returns whether the last call of `recode` replaced a JPEG file by coefficients, which it also
  /// verified. The decoder then has the header of the coefficients.
  bool made_coefficients() const { return made_coefficients_; }

 private:
  Status compare_pixels(ImageDecoder& decoder, const std::vector<std::byte>& jpeg) const;

  StoredForm form_;
  JpegRecoder recoder_;
  std::vector<std::byte> recoded_;
  std::string reason_kept_as_jpeg_;
  bool made_coefficients_ = false;
};

}  // namespace millrace::cli
