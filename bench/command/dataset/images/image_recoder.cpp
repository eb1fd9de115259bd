// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/images/image_recoder.h"

#include <string_view>
#include <utility>

#include "command/dataset/images/whole_pixels.h"

namespace millrace::cli {

ImageRecoder::ImageRecoder(StoredForm form, std::shared_ptr<DecodeBudget> budget)
    : form_(form), recoder_(std::move(budget)) {}

Status ImageRecoder::recode(ImageDecoder& decoder, std::vector<std::byte>& bytes) {
  reason_kept_as_jpeg_.clear();
  made_coefficients_ = false;
  const ImageKind kind = image_kind(bytes);
  if (form_ == StoredForm::jpeg && kind == ImageKind::coefficients) {
    if (Status restored = recoder_.restore(bytes, recoded_); !restored.is_ok()) return restored;
    std::swap(bytes, recoded_);
  }
  if (form_ == StoredForm::coefficients && kind == ImageKind::jpeg) {
    Status stored = recoder_.store(bytes, recoded_);
    if (stored.is_ok()) stored = compare_pixels(decoder, bytes);
    made_coefficients_ = stored.is_ok();
    if (made_coefficients_)
      std::swap(bytes, recoded_);
    else
      reason_kept_as_jpeg_ = stored.reason();
  }
  return Status::ok();
}

/// Compares the pixels of a JPEG and of its coefficients if libjpeg-turbo decodes the JPEG.
/// millrace's own stages would make both from the same coefficients, as the restored file proves.
/// Afterwards the decoder has the header of the coefficients.
Status ImageRecoder::compare_pixels(ImageDecoder& decoder,
                                    const std::vector<std::byte>& jpeg) const {
  std::uint64_t of_jpeg = 0;
  std::uint64_t of_coefficients = 0;
  if (Status opened = decoder.open(jpeg); !opened.is_ok()) return opened;
  const bool is_by_stages = std::string_view(decoder.header().decoder).starts_with("millrace");
  if (is_by_stages) return decoder.open(recoded_);
  if (Status decoded = whole_pixels(decoder, of_jpeg); !decoded.is_ok()) return decoded;
  if (Status opened = decoder.open(recoded_); !opened.is_ok()) return opened;
  if (Status decoded = whole_pixels(decoder, of_coefficients); !decoded.is_ok()) return decoded;
  return of_jpeg == of_coefficients ? Status::ok()
                                    : Status::bad("its coefficients show other pixels");
}

}  // namespace millrace::cli
