// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/image_decoder.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "support/jpeg_samples.h"

namespace millrace::testing {

/// A recoder for tests, and the records of JPEGs.
class Recoder {
 public:
  /// Returns the record of a JPEG; empty if it must stay a JPEG. `reason` then says why.
  Bytes record_of(const Bytes& jpeg) {
    Bytes record;
    const Status stored = recoder_.store(jpeg, record);
    reason = stored.reason();
    if (!stored.is_ok()) record.clear();
    return record;
  }
  /// Returns the record of a JPEG's pixels alone; empty if it must stay a JPEG.
  Bytes pixel_record_of(const Bytes& jpeg) {
    Bytes record;
    if (!recoder_.store_coefficients_only(jpeg, record).is_ok()) record.clear();
    return record;
  }
  /// Returns the original file; empty for a corrupt record.
  Bytes file_of(const Bytes& record) {
    Bytes file;
    const Status restored = recoder_.restore(record, file);
    reason = restored.reason();
    if (!restored.is_ok()) file.clear();
    return file;
  }

  std::string reason;

 private:
  JpegRecoder recoder_{std::make_shared<DecodeBudget>()};
};

/// Returns whether two decoders make the same pixels of a region, one from a JPEG and the other
/// from its record.
inline ::testing::AssertionResult same_pixels(ImageDecoder& of_jpeg, const Bytes& jpeg,
                                              ImageDecoder& of_record, const Bytes& record,
                                              const Region& region, int reduction = 1) {
  PixelView first, second;
  for (const auto& [decoder, bytes, view] :
       {std::tuple{&of_jpeg, &jpeg, &first}, std::tuple{&of_record, &record, &second}}) {
    Status decoded = decoder->open(*bytes);
    if (decoded.is_ok())
      decoded = reduction == 1 ? decoder->decode(region, *view)
                               : decoder->decode_reduced(region, reduction, *view);
    if (!decoded.is_ok()) return ::testing::AssertionFailure() << decoded.reason();
  }
  for (int row = 0; row < region.height; ++row)
    if (std::memcmp(first.pixels + static_cast<std::size_t>(row) * first.stride,
                    second.pixels + static_cast<std::size_t>(row) * second.stride,
                    static_cast<std::size_t>(region.width) * 3) != 0)
      return ::testing::AssertionFailure()
             << "row " << row << " differs in region " << region.width << " x " << region.height
             << " at (" << region.x << ", " << region.y << "), reduced to 1/" << reduction;
  return ::testing::AssertionSuccess();
}

/// Returns whether `decode_rows` passes the rows that `decode` makes. They must not need memory for
/// the whole region.
inline ::testing::AssertionResult same_rows(ImageDecoder& decoder, const Bytes& bytes,
                                            const Region& region) {
  struct Rows final : RowSink {
    std::vector<std::uint8_t> pixels;
    int most = 0;
    void add(const PixelView& rows) override {
      most = std::max(most, rows.height);
      for (int row = 0; row < rows.height; ++row) {
        const std::uint8_t* const from = rows.pixels + static_cast<std::size_t>(row) * rows.stride;
        pixels.insert(pixels.end(), from, from + 3 * static_cast<std::size_t>(rows.width));
      }
    }
  } rows, whole;
  PixelView view;
  Status decoded = decoder.open(bytes);
  if (decoded.is_ok()) decoded = decoder.decode_rows(region, rows);
  if (decoded.is_ok()) decoded = decoder.open(bytes);
  if (decoded.is_ok()) decoded = decoder.decode(region, view);
  if (!decoded.is_ok()) return ::testing::AssertionFailure() << decoded.reason();
  whole.add(view);
  if (rows.most > 40) return ::testing::AssertionFailure() << rows.most << " rows at once";
  if (rows.pixels == whole.pixels) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "other rows in region " << region.width << " x " << region.height << " at (" << region.x
         << ", " << region.y << ")";
}

}  // namespace millrace::testing
