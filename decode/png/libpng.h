// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace {

/// Wrapper of libpng's reader. libpng's errors become a bad `Status`. Nothing is printed. It skips
/// all chunks that do not affect pixels (text, profiles, transparency ...) but checks their
/// checksums. After a bad `Status` only `open` and `end` may be called. Not for two threads at
/// once.
class Libpng {
 public:
  Libpng() = default;
  ~Libpng() { end(); }
  Libpng(const Libpng&) = delete;
  Libpng& operator=(const Libpng&) = delete;

  /// Reads the chunks before the pixels. The bytes must outlive all calls up to `end`.
  Status open(std::span<const std::byte> encoded);
  /// Begins output of RGB with 3 bytes per pixel. 16-bit grey has 2 bytes per pixel instead, the
  /// higher byte first.
  Status start();
  /// Begins output of grey values or palette indices, as in Pillow: 1 byte per pixel, or 2 for 16
  /// bits, the higher byte first. Grey of 2 and 4 bits is scaled to 0 to 255.
  Status start_values();
  /// Reads the next row to a buffer of the whole width; nullptr drops the row. The rows of an
  /// interlaced image come pass by pass. Each pass has its own number of rows and row length.
  Status read_row(std::uint8_t* row);
  /// Reads the data after the last row, up to the image's end.
  Status finish();
  /// Frees the image's memory.
  void end();

  /// Calls `end` at the end of a scope.
  struct End {
    Libpng& libpng;
    ~End() { libpng.end(); }
  };

 private:
  static Libpng& of(png_structp png) { return *static_cast<Libpng*>(png_get_error_ptr(png)); }
  [[noreturn]] static void on_error(png_structp png, const char* text);
  static void* allocate(png_structp png, png_alloc_size_t bytes);
  static void read_bytes(png_structp png, std::uint8_t* to, std::size_t count);

  template <typename Calls>
  Status guarded(const Calls& calls);

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::span<const std::byte> left_;
  bool lacks_memory_ = false;
  std::jmp_buf jump_{};
  std::array<char, 200> text_{};
};

}  // namespace millrace
