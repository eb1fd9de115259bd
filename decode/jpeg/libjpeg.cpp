// SPDX-License-Identifier: Apache-2.0
#include "jpeg/libjpeg.h"

#include <jerror.h>

#include <algorithm>

namespace millrace {

void Libjpeg::fail(j_common_ptr handle, const char* format, int value) {
  Failure& failure = *static_cast<Failure*>(handle->client_data);
  std::snprintf(failure.text.data(), failure.text.size(), format, value);
  std::longjmp(failure.jump, 1);
}

void Libjpeg::fail_with_libjpegs_text(j_common_ptr handle) {
  Failure& failure = *static_cast<Failure*>(handle->client_data);
  failure.manager.format_message(handle, failure.text.data());
  std::longjmp(failure.jump, 1);
}

void Libjpeg::on_error(j_common_ptr handle) {
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

void Libjpeg::on_message(j_common_ptr handle, int level) {
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

void Libjpeg::on_progress(j_common_ptr handle) {
  if (reinterpret_cast<j_decompress_ptr>(handle)->input_scan_number > max_scans)
    fail(handle, "more than %d scans", max_scans);
}

/// Runs libjpeg calls; bad, with libjpeg's reason, if one failed. libjpeg is left by `longjmp`, so
/// `calls` and what it calls must hold nothing that has a destructor.
template <typename Calls>
Status Libjpeg::guarded(const Calls& calls) {
  if (setjmp(failure_.jump) != 0) return Status::bad(failure_.text.data());
  calls();
  return Status::ok();
}

Libjpeg::Libjpeg() {
  handle_.err = jpeg_std_error(&failure_.manager);
  handle_.client_data = &failure_;
  failure_.manager.error_exit = on_error;
  failure_.manager.emit_message = on_message;
  failure_.manager.output_message = [](j_common_ptr) {};
  if (Status made = guarded([this] { jpeg_create_decompress(&handle_); }); !made.is_ok())
    throw Error(ErrorCode::internal, made.reason(), "decode");
  progress_.progress_monitor = on_progress;
  handle_.progress = &progress_;
}

Libjpeg::~Libjpeg() { jpeg_destroy_decompress(&handle_); }

Status Libjpeg::open(std::span<const std::byte> encoded) {
  end();
  return guarded([&] {
    jpeg_mem_src(&handle_, reinterpret_cast<const unsigned char*>(encoded.data()), encoded.size());
    jpeg_read_header(&handle_, TRUE);
  });
}

Status Libjpeg::start() {
  return guarded([&] {
    handle_.out_color_space = handle_.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&handle_);
  });
}

Status Libjpeg::crop(unsigned& left, unsigned& width) {
  return guarded([&] { jpeg_crop_scanline(&handle_, &left, &width); });
}

Status Libjpeg::skip(unsigned rows) {
  return guarded([&] { jpeg_skip_scanlines(&handle_, rows); });
}

Status Libjpeg::read(unsigned rows, std::uint8_t* to, std::size_t stride) {
  return guarded([&] {
    std::array<JSAMPROW, 32> pointers;
    for (unsigned done = 0; done < rows;) {
      const auto wanted = std::min(rows - done, static_cast<unsigned>(pointers.size()));
      for (unsigned row = 0; row < wanted; ++row) pointers[row] = to + (done + row) * stride;
      done += jpeg_read_scanlines(&handle_, pointers.data(), wanted);
    }
  });
}

bool Libjpeg::smooths() const {
  if (!handle_.progressive_mode || handle_.coef_bits == nullptr) return false;
  for (int component = 0; component < handle_.num_components; ++component)
    for (const int missing_bits : handle_.coef_bits[component])
      if (missing_bits != 0) return true;
  return false;
}

bool Libjpeg::has_multiple_scans() const {
  // libjpeg takes a pointer that is not const, and only looks.
  return jpeg_has_multiple_scans(const_cast<jpeg_decompress_struct*>(&handle_)) != FALSE;
}

}  // namespace millrace
