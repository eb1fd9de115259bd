// SPDX-License-Identifier: Apache-2.0
//
// JPEG files as records of their coefficients, and back. For millrace's own folders; not installed.
#pragma once

#include <millrace/decode_budget.h>
#include <millrace/detail/export.h>
#include <millrace/error.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace MILLRACE_API millrace {

/// Recodes images, one after the other. Reusable; not for two threads at once. Lack of memory
/// throws `std::bad_alloc`. A large image waits for the budget (`DecodeBudget::take`): close an
/// image that holds a share of the same budget before a call.
class JpegRecoder {
 public:
  explicit JpegRecoder(std::shared_ptr<DecodeBudget> budget);
  JpegRecoder(const JpegRecoder&) = delete;
  JpegRecoder& operator=(const JpegRecoder&) = delete;
  ~JpegRecoder();

  /// Makes a record of the form `coefficients` from a JPEG file, and restores the file from it.
  /// Returns a bad status, with the reason, for a file that must stay a JPEG: it is corrupt, its
  /// pixels need libjpeg-turbo, or the restored file would differ.
  Status store(std::span<const std::byte> jpeg, std::vector<std::byte>& record);

  /// Makes a record of the pixels alone: decoders make of it the pixels of the file, but the file
  /// cannot be restored. It takes less time than `store`. Returns a bad status for a file that the
  /// stages of this project do not decode completely, whose pixels need libjpeg-turbo.
  Status store_pixels(std::span<const std::byte> jpeg, std::vector<std::byte>& record);

  /// Makes the original file from a record. Returns a bad status for a corrupt record.
  Status restore(std::span<const std::byte> record, std::vector<std::byte>& jpeg);

 private:
  struct State;

  std::shared_ptr<DecodeBudget> budget_;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
