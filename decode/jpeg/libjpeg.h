// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>

// jpeglib.h needs what stands before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace millrace {

/// libjpeg-turbo's decompressor: its errors, and the warnings that cost pixels, come as a bad
/// `Status`, and it prints nothing. Each image starts from nothing, as with a decompressor of its
/// own. After a bad `Status` only `open` and `end` may follow. Not for two threads at once.
class Libjpeg {
 public:
  /// Images of more scans are bad: each scan of a few bytes makes libjpeg walk over the whole
  /// image. Usual encoders write about ten.
  static constexpr int max_scans = 200;

  /// Images of more pixels times scans are bad as well.
  explicit Libjpeg(std::uint64_t max_scan_pixels);
  ~Libjpeg();
  Libjpeg(const Libjpeg&) = delete;
  Libjpeg& operator=(const Libjpeg&) = delete;

  /// Reads an image's header. The bytes must outlive all calls up to `end`.
  Status open(std::span<const std::byte> encoded);
  /// Begins output as RGB, or as CMYK for four components, at 1/`reduction` (1, 2, 4 or 8) of the
  /// resolution. An image of several scans is read as a whole here.
  Status start(unsigned reduction = 1);
  /// Makes output begin at `left`, which moves to the beginning of its block, and end with the
  /// column before `left + width` as it was; `width` grows to match.
  Status crop(unsigned& left, unsigned& width);
  /// Passes over rows; they are entropy-decoded alone.
  Status skip(unsigned rows);
  /// Reads rows that are `stride` bytes apart; with a stride of 0 each overwrites the one before.
  Status read(unsigned rows, std::uint8_t* to, std::size_t stride);
  /// Reads what follows the last row, up to the image's end. For one scan only, and after all rows.
  Status finish();
  /// Gives the memory for the image back, and its tables with it.
  void end();

  /// Whether stray bytes were skipped since `open`, before a restart marker or the image's end.
  /// libjpeg does not report those that its bit buffer holds, up to 8 before each marker.
  bool skipped_stray_bytes() const { return skipped_stray_bytes_; }

  /// The image as libjpeg describes it, from `open` on; the output's size from `start` on.
  const jpeg_decompress_struct& image() const { return handle_; }
  /// Whether libjpeg smooths between blocks, known from `start` on: it does where a progressive
  /// image's scans leave out precision.
  bool smooths() const;
  bool has_multiple_scans() const;
  /// Memory that `start` takes for all coefficients of an image of several scans; 0 for one scan.
  std::uint64_t coefficient_bytes() const;

 private:
  /// How a libjpeg call ends early: the text is kept here and control jumps back to `guarded`.
  struct Failure {
    jpeg_error_mgr manager;
    std::jmp_buf jump;
    std::array<char, JMSG_LENGTH_MAX> text;
  };

  static Libjpeg& of(j_common_ptr handle) { return *static_cast<Libjpeg*>(handle->client_data); }
  template <typename... Values>
  [[noreturn]] static void fail(j_common_ptr handle, const char* format, Values... values);
  [[noreturn]] static void fail_with_libjpegs_text(j_common_ptr handle);
  static void on_error(j_common_ptr handle);
  static void on_message(j_common_ptr handle, int level);
  static void on_progress(j_common_ptr handle);
  static void* allocate(j_common_ptr handle, int pool, std::size_t bytes);

  bool skip_stray_bytes();

  template <typename Calls>
  Status guarded(const Calls& calls);

  const std::uint64_t max_scan_pixels_;
  jpeg_decompress_struct handle_{};
  Failure failure_{};
  const unsigned char* begin_ = nullptr;
  bool skipped_stray_bytes_ = false;
  /// Restart markers since libjpeg last reported stray bytes.
  std::int64_t unreported_restarts_ = 0;
  jpeg_progress_mgr progress_{};
  decltype(jpeg_memory_mgr::alloc_small) allocate_ = nullptr;
};

}  // namespace millrace
