// SPDX-License-Identifier: Apache-2.0
#include "coefficients/coefficient_decoder.h"

#include <millrace/detail/instruction_sets.h>

#include <algorithm>
#include <utility>

#include "codec/limits.h"
#include "coefficients/expansion_check.h"
#include "jpeg/jpeg_info.h"

namespace millrace {
namespace {

Status corrupt() { return Status::bad("its coefficients are corrupt; pack the dataset again"); }

void set_header(const jpeg::Frame& frame, ImageHeader& header) {
  header.kind = ImageKind::coefficients;
  header.width = frame.width;
  header.height = frame.height;
  header.components = frame.component_count;
  header.decoder = "millrace (coefficients)";
  header.repaired = false;
}

std::size_t bytes_of(const Region& region) {
  return jpeg::RegionPixels::stride_of(region.width) * static_cast<std::size_t>(region.height);
}

}  // namespace

CoefficientDecoder::CoefficientDecoder(std::shared_ptr<DecodeBudget> budget)
    : budget_(std::move(budget)) {}

Status CoefficientDecoder::open(std::span<const std::byte> encoded) {
  opened_ = false;
  close();
  if (Status read = reader_.open(encoded, frame_); !read.is_ok()) return read;
  set_header(frame_, header_);
  if (Status few = check_pixels(header_.size(), budget_->limits()); !few.is_ok()) return few;
  const std::uint64_t needed = 3 * static_cast<std::uint64_t>(pixels_of(header_.size()));
  if (Status allowed = check_limits(header_.size(), encoded.size(), needed, budget_->limits());
      !allowed.is_ok())
    return allowed;
  choose_instruction_set(jpeg::stages);
  choose_instruction_set(coefficients::expansion);
  opened_ = true;
  return Status::ok();
}

Status CoefficientDecoder::decode(const Region& region, PixelView& view) {
  return decode_at(region, 1, view);
}

Status CoefficientDecoder::decode_reduced(const Region& region, int reduction, PixelView& view) {
  check_reduction(reduction);
  return decode_at(region, reduction, view);
}

Status CoefficientDecoder::decode_at(const Region& region, int reduction, PixelView& view) {
  view = {};
  std::uint8_t* const to = begin(region, reduction, region.height);
  Status made = make_rows(reduction, [](int) {});
  if (made.is_ok())
    view = {to, region.width, region.height, jpeg::RegionPixels::stride_of(region.width)};
  return made;
}

Status CoefficientDecoder::decode_rows(const Region& region, RowSink& sink) {
  // Pieces of fewer rows take longer; pieces of more rows exceed the L1 cache.
  constexpr int min_rows = 24;
  constexpr int mcu_rows = 2 * jpeg::block_side + 1;
  std::uint8_t* const to = begin(region, 1, std::min(region.height, min_rows + mcu_rows));
  int held = 0;
  int left = region.height;
  return make_rows(1, [&](int rows) {
    held += rows;
    left -= rows;
    if (held == 0 || (held < min_rows && left > 0)) return;
    sink.add({to, region.width, held, jpeg::RegionPixels::stride_of(region.width)});
    pixels_.continue_at(to);
    held = 0;
  });
}

/// Begins to decode a region into memory for `rows` rows of it.
std::uint8_t* CoefficientDecoder::begin(const Region& region, int reduction, int rows) {
  take_image();
  check_inside(region, reduced_size(header_.size(), reduction));
  // Scratch that is larger than needed counts for the budget, but not for the limits: earlier
  // images must not make an image bad.
  const std::size_t bytes = bytes_of({0, 0, region.width, rows});
  DecodeBudget::Reservation reservation = budget_->take(std::max(bytes, scratch_.bytes()));
  std::uint8_t* const to = scratch_.reserve(bytes);
  pixels_.begin(frame_, region, reduction, to);
  reservation_ = std::move(reservation);
  return to;
}

/// Makes all rows of the region that has begun. Calls `made` with the number of new rows after each
/// row of MCUs.
template <typename Made>
Status CoefficientDecoder::make_rows(int reduction, const Made& made) {
  const jpeg::McuWindow& window = pixels_.window();
  const bool from_bytes = reduction == 1 && coefficients::tile_transform().run != nullptr;
  if (from_bytes)
    set_steps();
  else
    row_.shape(frame_, window.mcus());
  for (int row = window.first_mcu_row; row <= window.last_mcu_row; ++row) {
    if (row < window.last_mcu_row) prefetch(window, row + 1);
    if (from_bytes ? !make_samples(window, row) : !expand(window, row)) {
      close();
      return corrupt();
    }
    made(from_bytes ? pixels_.add_samples(row) : pixels_.add(row_, row));
  }
  return Status::ok();
}

/// Expands the window's blocks of a row of MCUs. Returns false if they are corrupt.
bool CoefficientDecoder::expand(const jpeg::McuWindow& window, int mcu_row) {
  for (int number = 0; number < frame_.component_count; ++number) {
    const jpeg::Component& component = frame_.components[static_cast<std::size_t>(number)];
    for (int y = 0; y < component.down; ++y)
      if (!reader_.expand(number, mcu_row * component.down + y, window.first_mcu * component.across,
                          window.mcus() * component.across, row_[number].row(y)))
        return false;
  }
  return true;
}

void CoefficientDecoder::set_steps() {
  for (std::size_t number = 0; number < steps_.size(); ++number)
    steps_[number].set(frame_.components[number].steps);
}

/// Makes the samples of the window's blocks of a row of MCUs. Returns false if they are corrupt.
bool CoefficientDecoder::make_samples(const jpeg::McuWindow& window, int mcu_row) {
  for (int number = 0; number < frame_.component_count; ++number) {
    const auto place = static_cast<std::size_t>(number);
    const jpeg::Component& component = frame_.components[place];
    for (int y = 0; y < component.down; ++y) {
      const jpeg::RegionPixels::Samples to = pixels_.samples_of(number, y);
      if (!reader_.make_samples(
              number, mcu_row * component.down + y, window.first_mcu * component.across,
              window.mcus() * component.across, steps_[place], to.first, to.stride))
        return false;
    }
  }
  return true;
}

void CoefficientDecoder::prefetch(const jpeg::McuWindow& window, int mcu_row) const {
  for (int number = 0; number < frame_.component_count; ++number) {
    const jpeg::Component& component = frame_.components[static_cast<std::size_t>(number)];
    for (int y = 0; y < component.down; ++y)
      reader_.prefetch(number, mcu_row * component.down + y, window.first_mcu * component.across,
                       window.mcus() * component.across);
  }
}

Status CoefficientDecoder::check() {
  take_image();
  if (!reader_.has_right_checksum())
    return Status::bad("its checksum is wrong; pack the dataset again");
  const jpeg::McuWindow all{.region = {},
                            .first_mcu = 0,
                            .last_mcu = frame_.mcus_across - 1,
                            .first_mcu_row = 0,
                            .last_mcu_row = frame_.mcus_down - 1};
  row_.shape(frame_, all.mcus());
  for (int row = 0; row <= all.last_mcu_row; ++row)
    if (!expand(all, row)) return corrupt();
  return Status::ok();
}

void CoefficientDecoder::close() {
  scratch_.drop_if_large();
  reservation_ = {};
}

/// An opened image can be decoded or checked once.
void CoefficientDecoder::take_image() {
  if (!opened_)
    throw Error(ErrorCode::invalid_argument,
                "no image is open; call open() before each decode() or check()");
  opened_ = false;
}

Status read_coefficient_info(std::span<const std::byte> encoded, ImageInfo& info) {
  coefficients::RecordReader reader;
  jpeg::Frame frame;
  if (Status read = reader.open(encoded, frame); !read.is_ok()) return read;
  JpegInfo of_file;
  if (Status read = read_jpeg_info(std::as_bytes(reader.file().skeleton), of_file); !read.is_ok())
    return read;
  info = std::move(of_file);
  set_header(frame, info);
  info.scan_type = "coefficients, " + info.scan_type;
  return Status::ok();
}

}  // namespace millrace
