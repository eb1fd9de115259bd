// SPDX-License-Identifier: Apache-2.0
//
// Conversion of JPEG files to records of their coefficients, and back. For millrace's own folders;
// not installed.
#pragma once

#include <millrace/decode_budget.h>
#include <millrace/detail/export.h>
#include <millrace/error.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace MILLRACE_API millrace {

/// Recodes images, one after the other. For one thread at a time. Lack of memory throws
/// `std::bad_alloc`. Calls for a large image wait for the budget (`DecodeBudget::take`). Before
/// such a call, close images of this thread that hold a share of the same budget.
class JpegRecoder {
 public:
  explicit JpegRecoder(std::shared_ptr<DecodeBudget> budget);
  JpegRecoder(const JpegRecoder&) = delete;
  JpegRecoder& operator=(const JpegRecoder&) = delete;
  ~JpegRecoder();

  /// Makes a record of the form `coefficients` from a JPEG file. As a check it restores the file
  /// from the record. Returns a bad status, with the reason, for a file that must stay a JPEG: it
  /// is corrupt, its pixels need libjpeg-turbo, or the restored file would differ.
  Status store(std::span<const std::byte> jpeg, std::vector<std::byte>& record);

  /// Makes a record of the coefficients alone. It decodes to the pixels of the file, but the file
  /// cannot be restored from it. Takes less time than `store`. Returns a bad status if millrace's
  /// own decoder cannot decode the whole file or skips stray bytes in it. Such a file must stay a
  /// JPEG.
  Status store_coefficients_only(std::span<const std::byte> jpeg, std::vector<std::byte>& record);

  /// Restores the original file from a record of `store`. Returns a bad status for a corrupt
  /// record.
  Status restore(std::span<const std::byte> record, std::vector<std::byte>& jpeg);

 private:
  struct State;

  std::shared_ptr<DecodeBudget> budget_;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
