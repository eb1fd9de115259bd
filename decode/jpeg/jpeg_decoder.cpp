// SPDX-License-Identifier: Apache-2.0
#include <millrace/jpeg_decoder.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csetjmp>
#include <vector>

#include "image_kind.h"

// jpeglib.h needs what stands before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

namespace millrace {
namespace {

/// How a libjpeg call ends early: the text is kept here and control jumps back to `guarded`.
struct Failure {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> text;
};

Failure& failure_of(j_common_ptr handle) { return *static_cast<Failure*>(handle->client_data); }

[[noreturn]] void fail(j_common_ptr handle, const char* format, int value) {
  Failure& failure = failure_of(handle);
  std::snprintf(failure.text.data(), failure.text.size(), format, value);
  std::longjmp(failure.jump, 1);
}

[[noreturn]] void fail_with_libjpegs_text(j_common_ptr handle) {
  Failure& failure = failure_of(handle);
  failure.manager.format_message(handle, failure.text.data());
  std::longjmp(failure.jump, 1);
}

void on_error(j_common_ptr handle) {
  const jpeg_error_mgr& error = *handle->err;
  if (error.msg_code == JERR_BAD_PRECISION)
    fail(handle, "a %d-bit JPEG; only 8-bit is supported", error.msg_parm.i[0]);
  if (error.msg_code == JERR_SOF_UNSUPPORTED)
    fail(handle,
         "a lossless or hierarchical JPEG (SOF type 0x%02x); only baseline, extended and "
         "progressive are supported",
         error.msg_parm.i[0]);
  fail_with_libjpegs_text(handle);
}

void on_message(j_common_ptr handle, int level) {
  if (level >= 0) return;
  switch (handle->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
      return;  // no pixel is lost
    default:
      fail_with_libjpegs_text(handle);
  }
}

void on_output(j_common_ptr) {}

void on_progress(j_common_ptr handle) {
  if (reinterpret_cast<j_decompress_ptr>(handle)->input_scan_number > JpegDecoder::max_scans)
    fail(handle, "more than %d scans", JpegDecoder::max_scans);
}

/// Whether libjpeg smooths between blocks: it does where a progressive image's scans leave out
/// precision.
bool is_smoothed(const jpeg_decompress_struct& handle) {
  if (!handle.progressive_mode || handle.coef_bits == nullptr) return false;
  for (int component = 0; component < handle.num_components; ++component)
    for (const int missing_bits : handle.coef_bits[component])
      if (missing_bits != 0) return true;
  return false;
}

/// C M Y K as Adobe stores it (inverted) to RGB, as Pillow rounds it; a row, in place.
void cmyk_to_rgb(std::uint8_t* row, unsigned width) {
  const std::uint8_t* from = row;
  for (unsigned x = 0; x < width; ++x, from += 4, row += 3) {
    const int light = from[3];
    for (int channel = 0; channel < 3; ++channel) {
      const int product = (255 - from[channel]) * light + 128;
      row[channel] =
          static_cast<std::uint8_t>(std::max(0, light - ((product + (product >> 8)) >> 8)));
    }
  }
}

}  // namespace

class JpegDecoder::Impl {
 public:
  Impl() {
    handle_.err = jpeg_std_error(&failure_.manager);
    handle_.client_data = &failure_;
    failure_.manager.error_exit = on_error;
    failure_.manager.emit_message = on_message;
    failure_.manager.output_message = on_output;
    if (!guarded([this] { jpeg_create_decompress(&handle_); }))
      throw Error(ErrorCode::internal, failure_.text.data(), "decode");
    progress_.progress_monitor = on_progress;
    handle_.progress = &progress_;
  }
  ~Impl() { jpeg_destroy_decompress(&handle_); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const JpegHeader& header() const { return header_; }

  Status open(std::span<const std::byte> encoded) {
    opened_ = false;
    if (std::string reason = why_no_jpeg(encoded); !reason.empty())
      return Status::bad(std::move(reason));
    jpeg_abort_decompress(&handle_);
    const bool read = guarded([&] {
      jpeg_mem_src(&handle_, reinterpret_cast<const unsigned char*>(encoded.data()),
                   encoded.size());
      jpeg_read_header(&handle_, TRUE);
    });
    if (!read) return end(Status::bad(failure_.text.data()));

    header_ = {static_cast<int>(handle_.image_width), static_cast<int>(handle_.image_height),
               handle_.num_components, handle_.progressive_mode != FALSE,
               handle_.arith_code != FALSE};
    const auto stored =
        std::to_string(header_.width) + " x " + std::to_string(header_.height) + " pixels";
    if (std::int64_t{header_.width} * header_.height > max_pixels)
      return end(Status::bad(stored + "; at most " + std::to_string(max_pixels / 1'000'000) +
                             " megapixels are decoded"));
    if (header_.components != 1 && header_.components != 3 && header_.components != 4)
      return end(Status::bad("a JPEG of " + std::to_string(header_.components) +
                             " components; only 1, 3 and 4 are supported"));
    opened_ = true;
    return Status::ok();
  }

  Status decode(const Region& region, PixelView& view) {
    view = {};
    begin();
    if (region.x < 0 || region.y < 0 || region.width < 1 || region.height < 1 ||
        region.x > header_.width - region.width || region.y > header_.height - region.height)
      throw Error(ErrorCode::invalid_argument,
                  "region " + std::to_string(region.width) + " x " + std::to_string(region.height) +
                      " at (" + std::to_string(region.x) + ", " + std::to_string(region.y) +
                      ") is not inside an image of " + std::to_string(header_.width) + " x " +
                      std::to_string(header_.height));
    unsigned left = 0;
    unsigned top = 0;
    if (!guarded([&] { start(region, left, top); })) return end(Status::bad(failure_.text.data()));

    const unsigned x = static_cast<unsigned>(region.x) - left;
    const unsigned skipped = static_cast<unsigned>(region.y) - top;
    const unsigned rows = skipped + static_cast<unsigned>(region.height);
    const std::size_t stride =
        std::size_t{handle_.output_width} * static_cast<std::size_t>(handle_.output_components);
    reserve(stride * rows);
    if (!guarded([&] { read_rows(rows, stride); })) return end(Status::bad(failure_.text.data()));

    std::uint8_t* first_row = scratch_.data() + skipped * stride;
    if (handle_.output_components == 4)
      for (int row = 0; row < region.height; ++row)
        cmyk_to_rgb(first_row + static_cast<std::size_t>(row) * stride, handle_.output_width);
    view = {first_row + std::size_t{3} * x, region.width, region.height, stride};
    return end(Status::ok());
  }

  Status check() {
    begin();
    // A strip at the left edge costs little beside the entropy decoding, which has to go over all
    // of the data anyway.
    unsigned left = 0;
    unsigned top = 0;
    if (!guarded([&] { start({0, 0, 1, header_.height}, left, top); }))
      return end(Status::bad(failure_.text.data()));
    if (jpeg_has_multiple_scans(&handle_)) return end(Status::ok());  // all read by now

    reserve(std::size_t{handle_.output_width} *
            static_cast<std::size_t>(handle_.output_components));
    if (!guarded([&] { read_rows(handle_.output_height, 0); }))
      return end(Status::bad(failure_.text.data()));
    return end(Status::ok());
  }

 private:
  /// Runs libjpeg calls; false where one failed, with the reason in `failure_.text`. libjpeg is
  /// left by `longjmp`, so `calls` and what it calls must hold nothing that has a destructor.
  template <typename Calls>
  bool guarded(const Calls& calls) {
    if (setjmp(failure_.jump) != 0) return false;
    calls();
    return true;
  }

  void begin() {
    if (!opened_)
      throw Error(ErrorCode::invalid_argument,
                  "no image is open; call open() before each decode() or check()");
    opened_ = false;
  }

  /// Gives libjpeg's memory for the image back.
  Status end(Status status) {
    jpeg_abort_decompress(&handle_);
    return status;
  }

  void reserve(std::size_t bytes) {
    if (scratch_.size() >= bytes) return;
    scratch_.clear();  // nothing in it is worth copying
    scratch_.resize(std::bit_ceil(bytes));
  }

  /// Begins output so that the next row is row `top` of the image and its first pixel is column
  /// `left`; both at or before the region's.
  void start(const Region& region, unsigned& left, unsigned& top) {
    handle_.out_color_space = handle_.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&handle_);
    // Smoothing takes a block at the crop's edge for one at the image's edge, so such images are
    // decoded at full width.
    if (is_smoothed(handle_)) return;
    crop(region, left);
    top = static_cast<unsigned>(region.y);
    if (top > 0) jpeg_skip_scanlines(&handle_, top);
  }

  void crop(const Region& region, unsigned& left) {
    // Where colour is stored at a lower resolution, upsampling looks at both neighbours of a pixel
    // and would take the crop's edges for the image's; a crop of under two samples of colour is
    // even upsampled in another way. So: one column more on each side, and never less than two
    // blocks.
    const bool upsampled = handle_.max_h_samp_factor > 1;
    const unsigned margin = upsampled ? 1 : 0;
    const unsigned narrowest = static_cast<unsigned>(2 * DCTSIZE * handle_.max_h_samp_factor);
    const auto x = static_cast<unsigned>(region.x);
    left = x < margin ? 0 : x - margin;
    unsigned right =
        std::min(x + static_cast<unsigned>(region.width) + margin, handle_.output_width);
    if (right - left < narrowest) {
      right = std::min(left + narrowest, handle_.output_width);
      left = std::min(left, right < narrowest ? 0 : right - narrowest);
    }
    unsigned width = right - left;
    if (width < handle_.output_width)
      jpeg_crop_scanline(&handle_, &left, &width);  // moves `left` to a block's edge
  }

  void read_rows(unsigned rows, std::size_t stride) {
    std::array<JSAMPROW, 32> pointers;
    for (unsigned done = 0; done < rows;) {
      const auto wanted = std::min(rows - done, static_cast<unsigned>(pointers.size()));
      for (unsigned row = 0; row < wanted; ++row)
        pointers[row] = scratch_.data() + (done + row) * stride;
      done += jpeg_read_scanlines(&handle_, pointers.data(), wanted);
    }
  }

  jpeg_decompress_struct handle_{};
  Failure failure_{};
  jpeg_progress_mgr progress_{};
  JpegHeader header_;
  bool opened_ = false;
  std::vector<std::uint8_t> scratch_;
};

JpegDecoder::JpegDecoder() : impl_(std::make_unique<Impl>()) {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

Status JpegDecoder::open(std::span<const std::byte> encoded) { return impl_->open(encoded); }
const JpegHeader& JpegDecoder::header() const { return impl_->header(); }
Status JpegDecoder::decode(const Region& region, PixelView& view) {
  return impl_->decode(region, view);
}
Status JpegDecoder::check() { return impl_->check(); }

}  // namespace millrace
