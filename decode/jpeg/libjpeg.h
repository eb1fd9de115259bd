// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>

// jpeglib.h needs the includes before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace millrace {

/// Memory for a component's blocks: `down` rows of `across` blocks of 64 coefficients. A block's
/// coefficients are in rows, lower frequencies first.
struct BlockArray {
  std::int16_t* values = nullptr;
  unsigned across = 0;
  unsigned down = 0;
};

/// Wrapper of libjpeg-turbo's decompressor. libjpeg's errors, and its warnings of wrong pixels,
/// become a bad `Status`. Nothing is printed. No state of one image affects the next one. After a
/// bad `Status` only `open` and `end` may be called. Not for two threads at once.
class Libjpeg {
 public:
  /// Limit on an image's scans: even a scan of a few bytes makes libjpeg process the whole image.
  /// Usual encoders write about ten scans.
  static constexpr int max_scans = 200;

  /// Images whose pixels times scans exceed `max_scan_pixels` are bad, too. Throws
  /// `std::bad_alloc`.
  explicit Libjpeg(std::uint64_t max_scan_pixels);
  ~Libjpeg();
  Libjpeg(const Libjpeg&) = delete;
  Libjpeg& operator=(const Libjpeg&) = delete;

  /// Reads an image's header. The bytes must outlive all calls up to `end`.
  Status open(std::span<const std::byte> encoded);
  /// Begins output as RGB, or as CMYK for four components, at 1/`reduction` (1, 2, 4 or 8) of the
  /// resolution. An image of several scans is read as a whole here.
  Status start(unsigned reduction = 1);
  /// Restricts the output to the columns from `left` to before `left + width`. `left` moves to the
  /// beginning of its block, and `width` grows accordingly.
  Status crop(unsigned& left, unsigned& width);
  /// Returns whether, at 1/`reduction` of the resolution, `crop` gives the pixels of the whole
  /// image. Call it after `open`. libjpeg-turbo miscounts the columns of a reduced image in which a
  /// component has four samples in an MCU's row or column. Some columns are then wrong or
  /// unwritten.
  bool crops_exactly(unsigned reduction) const {
    return reduction == 1 || (handle_.max_h_samp_factor <= 2 && handle_.max_v_samp_factor <= 2);
  }
  /// Skips rows: they are only entropy-decoded.
  Status skip(unsigned rows);
  /// Reads rows that are `stride` bytes apart; with a stride of 0 each overwrites the one before.
  Status read(unsigned rows, std::uint8_t* to, std::size_t stride);
  /// Reads the data after the last row, up to the image's end. For images of one scan, after all
  /// rows.
  Status finish();
  /// Reads all scans of the opened image, instead of `start`, and copies each component's blocks of
  /// quantised coefficients. There is one array for each component.
  Status read_coefficients(std::span<const BlockArray> arrays);
  /// Frees the image's memory and tables.
  void end();

  /// Returns whether stray bytes were skipped since `open`, before a restart marker or the image's
  /// end. libjpeg does not report those in its bit buffer, up to 8 before each marker.
  bool skipped_stray_bytes() const { return skipped_stray_bytes_; }

  /// Returns libjpeg's description of the image. It is valid after `open`, its output size after
  /// `start`.
  const jpeg_decompress_struct& image() const { return handle_; }
  /// Returns whether libjpeg smooths between blocks. It does if a progressive image's scans leave
  /// out bits of coefficients. Call it after `start`.
  bool smooths() const;
  bool has_multiple_scans() const;
  /// Returns the bytes of memory that `start` takes for all coefficients of an image of several
  /// scans; 0 for one scan.
  std::uint64_t coefficient_bytes() const {
    return has_multiple_scans() ? all_coefficient_bytes() : 0;
  }
  /// Returns the bytes of memory that all coefficients of an image take.
  std::uint64_t all_coefficient_bytes() const;

 private:
  /// The state of a failed libjpeg call: its text, and the jump back to `guarded`.
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
  /// Makes libjpeg's object. If this throws, the destructor frees what libjpeg has allocated.
  void create();
  /// Tag of the constructor that does not make libjpeg's object.
  struct Empty {};
  Libjpeg(std::uint64_t max_scan_pixels, Empty) : max_scan_pixels_(max_scan_pixels) {}

  template <typename Calls>
  Status guarded(const Calls& calls);

  const std::uint64_t max_scan_pixels_;
  jpeg_decompress_struct handle_{};
  Failure failure_{};
  const unsigned char* begin_ = nullptr;
  bool skipped_stray_bytes_ = false;
  /// Number of restart markers since libjpeg last reported stray bytes.
  std::int64_t unreported_restarts_ = 0;
  jpeg_progress_mgr progress_{};
  decltype(jpeg_memory_mgr::alloc_small) allocate_ = nullptr;
};

}  // namespace millrace
