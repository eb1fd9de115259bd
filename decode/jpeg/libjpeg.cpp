// SPDX-License-Identifier: Apache-2.0
#include "jpeg/libjpeg.h"

#include <jerror.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <new>
#include <utility>

#include "jpeg/scan_bytes.h"

namespace millrace {

template <typename... Values>
void Libjpeg::fail(j_common_ptr handle, const char* format, Values... values) {
  Failure& failure = of(handle).failure_;
  std::snprintf(failure.text.data(), failure.text.size(), format, values...);
  std::longjmp(failure.jump, 1);
}

void Libjpeg::fail_with_libjpegs_text(j_common_ptr handle) {
  Failure& failure = of(handle).failure_;
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
  if (handle->err->msg_code == JTRC_RST) ++of(handle).unreported_restarts_;
  if (level >= 0) return;
  switch (handle->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
      return;  // these warnings do not change pixels
    case JWRN_EXTRANEOUS_DATA:
      if (reinterpret_cast<j_decompress_ptr>(handle)->input_scan_number == 0) return;
      if (of(handle).skip_stray_bytes()) return;
      [[fallthrough]];
    default:
      fail_with_libjpegs_text(handle);
  }
}

/// Handles libjpeg's report of bytes before a marker, after a scan has begun. Returns false if they
/// are not stray bytes, but data that the decoder did not reach in a damaged scan.
bool Libjpeg::skip_stray_bytes() {
  const auto count = static_cast<std::size_t>(handle_.err->msg_parm.i[0]);
  const int marker = handle_.err->msg_parm.i[1];
  // libjpeg itself warns of missing MCUs, and of a restart marker other than the expected one.
  const bool has_all = handle_.input_iMCU_row >= handle_.total_iMCU_rows;
  const bool is_restart = handle_.restart_interval > 0 && (marker & ~7) == JPEG_RST0;
  if (has_all ? marker != JPEG_EOI : !is_restart) return false;
  // The count includes up to 8 bytes before each restart marker that was read without a report.
  const auto earlier =
      static_cast<std::size_t>(8 * std::max<std::int64_t>(unreported_restarts_, 0));
  const unsigned char* const end = handle_.src->next_input_byte;
  const std::size_t reported = std::min<std::size_t>(count - std::min(count, earlier),
                                                     static_cast<std::size_t>(end - begin_));
  if (!jpeg::are_stray({end - reported, reported}, reported)) return false;
  skipped_stray_bytes_ = true;
  unreported_restarts_ = is_restart ? -1 : 0;  // the JTRC_RST of this marker follows
  return true;
}

void Libjpeg::on_progress(j_common_ptr handle) {
  const jpeg_decompress_struct& image = *reinterpret_cast<j_decompress_ptr>(handle);
  if (image.input_scan_number > max_scans) fail(handle, "more than %d scans", max_scans);
  const std::uint64_t most = of(handle).max_scan_pixels_;
  const auto scans = static_cast<std::uint64_t>(image.input_scan_number);
  if (scans * image.image_width * image.image_height > most)
    fail(handle,
         "%d scans or more of %u x %u pixels; at most %" PRIu64
         " pixels of all scans are decoded (max_scan_pixels)",
         image.input_scan_number, image.image_width, image.image_height, most);
}

/// Allocates all memory in the image's pool. libjpeg would put a file's tables into the permanent
/// pool. There they would outlive their image, and replace tables that the next image lacks.
void* Libjpeg::allocate(j_common_ptr handle, int, std::size_t bytes) {
  return of(handle).allocate_(handle, JPOOL_IMAGE, bytes);
}

/// Runs libjpeg calls. Returns a bad status with libjpeg's reason if one failed. Throws
/// `std::bad_alloc` for lack of memory, which does not make the image bad. libjpeg is left by
/// `longjmp`, so `calls` and its callees must not hold objects with a destructor.
template <typename Calls>
Status Libjpeg::guarded(const Calls& calls) {
  if (setjmp(failure_.jump) != 0) {
    if (failure_.manager.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
    return Status::bad(failure_.text.data());
  }
  calls();
  return Status::ok();
}

// The other constructor has ended when `create` throws, so the destructor runs.
Libjpeg::Libjpeg(std::uint64_t max_scan_pixels) : Libjpeg(max_scan_pixels, Empty()) { create(); }

void Libjpeg::create() {
  handle_.err = jpeg_std_error(&failure_.manager);
  handle_.client_data = this;
  failure_.manager.error_exit = on_error;
  failure_.manager.emit_message = on_message;
  failure_.manager.output_message = [](j_common_ptr) {};
  const Status made = guarded([this] {
    jpeg_create_decompress(&handle_);
    constexpr unsigned char none = 0;
    jpeg_mem_src(&handle_, &none, 1);  // its object is the last one in the permanent pool
  });
  if (!made.is_ok()) throw Error(ErrorCode::internal, made.reason(), "decode");
  allocate_ = std::exchange(handle_.mem->alloc_small, allocate);
  // The environment's JPEGMEM would make large images fail, or use temporary files.
  handle_.mem->max_memory_to_use = 0;
  progress_.progress_monitor = on_progress;
  handle_.progress = &progress_;
}

Libjpeg::~Libjpeg() { jpeg_destroy_decompress(&handle_); }

Status Libjpeg::open(std::span<const std::byte> encoded) {
  end();
  begin_ = reinterpret_cast<const unsigned char*>(encoded.data());
  skipped_stray_bytes_ = false;
  unreported_restarts_ = 0;
  return guarded([&] {
    jpeg_mem_src(&handle_, begin_, encoded.size());
    jpeg_read_header(&handle_, TRUE);
  });
}

Status Libjpeg::start(unsigned reduction) {
  return guarded([&] {
    handle_.scale_num = 1;
    handle_.scale_denom = reduction;
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

Status Libjpeg::finish() {
  return guarded([&] { jpeg_finish_decompress(&handle_); });
}

Status Libjpeg::read_coefficients(std::span<const BlockArray> arrays) {
  return guarded([&] {
    jvirt_barray_ptr* const all = jpeg_read_coefficients(&handle_);
    for (std::size_t number = 0; number < arrays.size(); ++number) {
      const BlockArray& to = arrays[number];
      for (unsigned row = 0; row < to.down; ++row) {
        const JBLOCKARRAY from = handle_.mem->access_virt_barray(
            reinterpret_cast<j_common_ptr>(&handle_), all[number], row, 1, FALSE);
        std::memcpy(to.values + std::size_t{row} * to.across * DCTSIZE2, from[0],
                    to.across * sizeof(JBLOCK));
      }
    }
  });
}

void Libjpeg::end() {
  jpeg_abort_decompress(&handle_);
  std::ranges::fill(handle_.quant_tbl_ptrs, nullptr);
  std::ranges::fill(handle_.dc_huff_tbl_ptrs, nullptr);
  std::ranges::fill(handle_.ac_huff_tbl_ptrs, nullptr);
}

bool Libjpeg::smooths() const {
  if (!handle_.progressive_mode || handle_.coef_bits == nullptr) return false;
  for (int component = 0; component < handle_.num_components; ++component)
    for (const int missing_bits : handle_.coef_bits[component])
      if (missing_bits != 0) return true;
  return false;
}

bool Libjpeg::has_multiple_scans() const {
  // libjpeg takes a pointer that is not const, but only reads.
  return jpeg_has_multiple_scans(const_cast<jpeg_decompress_struct*>(&handle_)) != FALSE;
}

std::uint64_t Libjpeg::all_coefficient_bytes() const {
  const auto round_up = [](JDIMENSION blocks, int factor) {
    const auto unit = static_cast<std::uint64_t>(factor);
    return (blocks + unit - 1) / unit * unit;
  };
  std::uint64_t blocks = 0;
  for (int number = 0; number < handle_.num_components; ++number) {
    const jpeg_component_info& component = handle_.comp_info[number];
    blocks += round_up(component.width_in_blocks, component.h_samp_factor) *
              round_up(component.height_in_blocks, component.v_samp_factor);
  }
  return blocks * sizeof(JBLOCK);
}

}  // namespace millrace
