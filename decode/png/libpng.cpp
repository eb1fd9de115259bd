// SPDX-License-Identifier: Apache-2.0
#include "png/libpng.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace millrace {

void Libpng::on_error(png_structp png, const char* text) {
  Libpng& self = of(png);
  std::snprintf(self.text_.data(), self.text_.size(), "%s", text);
  std::longjmp(self.jump_, 1);
}

void* Libpng::allocate(png_structp png, png_alloc_size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) static_cast<Libpng*>(png_get_mem_ptr(png))->lacks_memory_ = true;
  return memory;
}

void Libpng::read_bytes(png_structp png, std::uint8_t* to, std::size_t count) {
  std::span<const std::byte>& left = static_cast<Libpng*>(png_get_io_ptr(png))->left_;
  if (count > left.size()) png_error(png, "cut short");
  std::memcpy(to, left.data(), count);
  left = left.subspan(count);
}

/// Runs libpng calls. Returns a bad status with libpng's reason if one failed. Throws
/// `std::bad_alloc` for lack of memory, which does not make the image bad. libpng is left by
/// `longjmp`, so `calls` and its callees must not hold objects with a destructor.
template <typename Calls>
Status Libpng::guarded(const Calls& calls) {
  if (setjmp(jump_) != 0) {
    if (lacks_memory_) throw std::bad_alloc();
    return Status::bad(text_.data());
  }
  calls();
  return Status::ok();
}

Status Libpng::open(std::span<const std::byte> encoded) {
  end();
  left_ = encoded;
  lacks_memory_ = false;
  const auto ignore = [](png_structp, const char*) {};
  const auto release = [](png_structp, void* memory) { std::free(memory); };
  return guarded([&] {
    png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, this, on_error, ignore, this, allocate,
                                    release);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      lacks_memory_ = true;
      std::longjmp(jump_, 1);
    }
    png_set_read_fn(png_, this, read_bytes);
    png_set_benign_errors(png_, 1);  // treats benign errors as warnings
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    // The decoder checks the limits on images itself.
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    constexpr png_byte transparency[] = "tRNS";
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, transparency, 1);
    png_read_info(png_, info_);
  });
}

Status Libpng::start() {
  return guarded([&] {
    const int colour = png_get_color_type(png_, info_);
    const int bits = png_get_bit_depth(png_, info_);
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (colour == PNG_COLOR_TYPE_GRAY && bits < 8) png_set_expand_gray_1_2_4_to_8(png_);
    const bool is_grey_16 = colour == PNG_COLOR_TYPE_GRAY && bits == 16;
    if (bits == 16 && !is_grey_16) png_set_strip_16(png_);
    if ((colour & PNG_COLOR_MASK_ALPHA) != 0) png_set_strip_alpha(png_);
    if ((colour & PNG_COLOR_MASK_COLOR) == 0 && !is_grey_16) png_set_gray_to_rgb(png_);
    png_start_read_image(png_);
  });
}

Status Libpng::start_values() {
  return guarded([&] {
    const int bits = png_get_bit_depth(png_, info_);
    const bool is_grey = png_get_color_type(png_, info_) == PNG_COLOR_TYPE_GRAY;
    if (is_grey && (bits == 2 || bits == 4))
      png_set_expand_gray_1_2_4_to_8(png_);
    else
      png_set_packing(png_);
    png_start_read_image(png_);
  });
}

Status Libpng::read_row(std::uint8_t* row) {
  return guarded([&] { png_read_row(png_, row, nullptr); });
}

Status Libpng::finish() {
  return guarded([&] { png_read_end(png_, nullptr); });
}

void Libpng::end() {
  if (png_ != nullptr) png_destroy_read_struct(&png_, &info_, nullptr);
  png_ = nullptr;
  info_ = nullptr;
}

}  // namespace millrace
