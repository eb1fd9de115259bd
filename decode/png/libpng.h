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

/// libpng's reader: its errors come as a bad `Status`, and it prints nothing. It passes over all
/// chunks that pixels do not depend on (text, profiles, transparency ...) without keeping them, but
/// checks their checksums. After a bad `Status` only `open` and `end` may follow. Not for two
/// threads at once.
class Libpng {
 public:
  Libpng() = default;
  ~Libpng() { end(); }
  Libpng(const Libpng&) = delete;
  Libpng& operator=(const Libpng&) = delete;

  /// Reads up to the pixels. The bytes must outlive all calls up to `end`.
  Status open(std::span<const std::byte> encoded);
  /// Begins output: 3 bytes a pixel, or 2, the higher first, for grey of 16 bits.
  Status start();
  /// Begins output of the values of grey or of a palette, as Pillow gives them: a byte a pixel, or
  /// 2, the higher first, for 16 bits. Grey of 2 and 4 bits is scaled to 0 to 255.
  Status start_values();
  /// Reads the next row, to a buffer of the whole width; nullptr drops it. The rows of interlaced
  /// images come pass by pass, as many and as long as each has.
  Status read_row(std::uint8_t* row);
  /// Reads from behind the last row to the image's end.
  Status finish();
  /// Gives the memory for the image back.
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
