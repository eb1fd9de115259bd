// SPDX-License-Identifier: Apache-2.0
#include "jpeg/decoder/jpeg_decoder.h"

#include <millrace/detail/instruction_sets.h>
#include <xxhash.h>

#include <algorithm>
#include <string>

#include "codec/limits.h"
#include "jpeg/decoder/baseline.h"
#include "jpeg/decoder/cmyk.h"
#include "jpeg/decoder/decoder_names.h"
#include "jpeg/decoder/progressive.h"
#include "jpeg/decoder/region_pixels.h"
#include "jpeg/frame.h"
#include "jpeg/index.h"
#include "jpeg/libjpeg.h"
#include "jpeg/progressive/scan_index.h"
#include "jpeg/progressive/script.h"

namespace millrace {
namespace {

std::size_t row_bytes(const jpeg_decompress_struct& image) {
  return std::size_t{image.output_width} * static_cast<std::size_t>(image.output_components);
}

}  // namespace

JpegDecoder::JpegDecoder(std::shared_ptr<DecodeBudget> budget)
    : budget_(std::move(budget)),
      libjpeg_(std::make_unique<Libjpeg>(budget_->limits().max_scan_pixels)),
      frame_(std::make_unique<jpeg::Frame>()),
      script_(std::make_unique<jpeg::Script>()) {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

Status JpegDecoder::open(std::span<const std::byte> encoded) {
  opened_ = false;
  close();
  encoded_ = encoded;
  uses_index_ = false;
  index_.points.clear();
  given_points_ = 0;
  Status status = libjpeg_->open(encoded);
  if (status.is_ok()) {
    const jpeg_decompress_struct& image = libjpeg_->image();
    header_.kind = ImageKind::jpeg;
    header_.width = static_cast<int>(image.image_width);
    header_.height = static_cast<int>(image.image_height);
    header_.components = image.num_components;
    header_.repaired = false;
    header_.progressive = image.progressive_mode != FALSE;
    header_.arithmetic = image.arith_code != FALSE;
    status = check_header(encoded.size());
  }
  if (!status.is_ok()) {
    libjpeg_->end();
    return status;
  }
  header_.decoder = choose_decoder();
  opened_ = true;  // set last: no image is open if memory runs out above
  return status;
}

/// Sets whether millrace's stages decode the opened image. Returns the name of its decoder.
const char* JpegDecoder::choose_decoder() {
  takes_stages_ = takes_progressive_ = false;
  const std::uint64_t max_scan_pixels = budget_->limits().max_scan_pixels;
  // If even one scan exceeds the limit, libjpeg reports it.
  if (static_cast<std::uint64_t>(pixels_of(header_.size())) > max_scan_pixels)
    return "libjpeg-turbo (max_scan_pixels)";
  if (const char* other = jpeg::read_frame(libjpeg_->image(), *frame_)) return other;
  choose_instruction_set(jpeg::stages);
  if (!header_.progressive) {
    takes_stages_ = true;
    if (stages_ == nullptr) stages_ = std::make_unique<jpeg::BaselineDecoder>();
    return "millrace";
  }
  // The stages take more memory than libjpeg. Beyond the limits libjpeg decodes the image.
  takes_progressive_ =
      jpeg::read_script(libjpeg_->image(), *frame_, max_scan_pixels, *script_) &&
      check_memory(header_.size(), needed_by_progressive({0, 0, header_.width, header_.height}),
                   budget_->limits())
          .is_ok();
  if (!takes_progressive_) return "libjpeg-turbo (progressive)";
  if (progressive_ == nullptr) progressive_ = std::make_unique<jpeg::ProgressiveDecoder>();
  return "millrace (progressive)";
}

Status JpegDecoder::check_header(std::size_t encoded_bytes) const {
  if (Status few = check_pixels(header_.size(), budget_->limits()); !few.is_ok()) return few;
  if (header_.components != 1 && header_.components != 3 && header_.components != 4)
    return Status::bad("a JPEG of " + std::to_string(header_.components) +
                       " components; only 1, 3 and 4 are supported");
  return check_limits(header_.size(), encoded_bytes,
                      needed_bytes({0, 0, header_.width, header_.height}), budget_->limits());
}

/// Returns the peak memory for the decode of a region, as far as it depends on the image's size.
std::uint64_t JpegDecoder::needed_bytes(Region region) const {
  const jpeg_decompress_struct& image = libjpeg_->image();
  const std::uint64_t coefficients = libjpeg_->coefficient_bytes();
  // `start` chooses a crop that extends at most two blocks beyond the region on each side. An image
  // of several scans is counted from its corner.
  constexpr int widest_blocks = 2 * 2 * DCTSIZE * MAX_SAMP_FACTOR;
  if (coefficients > 0) region = {0, 0, header_.width, region.y + region.height};
  const auto width =
      static_cast<std::uint64_t>(std::min(header_.width, region.width + widest_blocks));
  const std::uint64_t scratch =
      width * static_cast<std::uint64_t>(region.height) * (image.num_components == 4 ? 4U : 3U);
  return coefficients + scratch;
}

/// Returns the peak memory if millrace's stages decode a progressive image, at any resolution.
std::uint64_t JpegDecoder::needed_by_progressive(const Region& region) const {
  return jpeg::ProgressiveCoefficients::bytes_for(*frame_, script_->refined_bit_count) +
         jpeg::RegionPixels::stride_of(region.width) * static_cast<std::uint64_t>(region.height);
}

DecodeBudget::Reservation JpegDecoder::take(const Region& region) const {
  // Scratch that is larger than needed counts for the budget, but not for the limits: earlier
  // images must not make an image bad.
  std::uint64_t needed =
      std::max(needed_bytes(region), libjpeg_->coefficient_bytes() + scratch_.bytes());
  // For a narrow image the stages' rows are longer than the image's.
  if (takes_stages_)
    needed = std::max<std::uint64_t>(needed, jpeg::RegionPixels::stride_of(region.width) *
                                                 static_cast<std::uint64_t>(region.height));
  const std::uint64_t kept = progressive_ != nullptr ? progressive_->bytes() : 0;
  if (takes_progressive_)
    needed = std::max(needed, needed_by_progressive(region) + scratch_.bytes());
  else
    needed += kept;
  return budget_->take(needed);
}

Status JpegDecoder::decode(const Region& region, PixelView& view) {
  return decode_at(region, 1, view);
}

Status JpegDecoder::decode_reduced(const Region& region, int reduction, PixelView& view) {
  check_reduction(reduction);
  return decode_at(region, reduction, view);
}

Status JpegDecoder::decode_at(const Region& region, int reduction, PixelView& view) {
  view = {};
  take_image();
  const Size whole = reduced_size(header_.size(), reduction);
  check_inside(region, whole);
  const bool crops = libjpeg_->crops_exactly(static_cast<unsigned>(reduction));
  DecodeBudget::Reservation reservation =
      take(crops ? region : Region{0, region.y, whole.width, region.height});
  Status status =
      read_by_stages(region, reduction, view) ? Status::ok() : read(region, reduction, view);
  if (reduction > 1) header_.decoder = reduced_name(takes_stages_ || takes_progressive_, reduction);
  note_repair(status);
  libjpeg_->end();
  reservation_ = std::move(reservation);
  if (!status.is_ok()) close();
  return status;
}

bool JpegDecoder::use_index(std::span<const std::byte> index, std::optional<std::uint64_t> checksum,
                            IndexPoints points) {
  begun_.reset();
  uses_index_ = takes_stages_ || (takes_progressive_ && jpeg::can_have_index(*frame_, *script_));
  if (!uses_index_) return false;
  checksum_ = checksum ? *checksum : XXH3_64bits(encoded_.data(), encoded_.size());
  index_.granularity = points;
  const bool taken = takes_progressive_
                         ? jpeg::unpack_scan_index(index, *frame_, *script_, checksum_, index_)
                         : jpeg::unpack_index(index, *frame_, checksum_, index_);
  given_points_ = index_.points.size();
  return taken;
}

std::span<const std::byte> JpegDecoder::extended_index() {
  if (index_.points.size() <= given_points_) return {};
  if (header_.progressive)
    jpeg::pack_scan_index(index_, script_->scans.size(), checksum_, packed_);
  else
    jpeg::pack_index(index_, header_.components, checksum_, packed_);
  given_points_ = index_.points.size();
  return packed_;
}

Status JpegDecoder::check() {
  take_image();
  begun_.reset();
  const DecodeBudget::Reservation reservation = take({0, 0, 1, 1});
  Status status = read_all();
  note_repair(status);
  libjpeg_->end();
  if (status.is_ok() && takes_progressive_ && uses_index_) check_scans(status);
  if (status.is_ok() && given_points_ > 0 && !takes_stages_ && !takes_progressive_)
    status = Status::bad("its seek index is of data that libjpeg-turbo has to decode");
  return status;
}

void JpegDecoder::close() {
  begun_.reset();
  scratch_.drop_if_large();
  free_large_coefficients();
  // The data that is kept is as long as the image or its index: usually some kilobytes.
  constexpr std::size_t many_bytes = std::size_t{1} << 20;
  if (uses_index_ && (encoded_.size() > 8 * many_bytes ||
                      index_.points.size() * sizeof(jpeg::SeekPoint) > many_bytes)) {
    index_ = {};
    packed_ = std::vector<std::byte>();  // {} would keep its memory
    stages_.reset();
    progressive_.reset();
    opened_ = false;
  }
  reservation_ = {};
}

void JpegDecoder::free_large_coefficients() {
  if (progressive_ != nullptr &&
      progressive_->bytes() + scratch_.bytes() > DecodeBudget::small_bytes)
    progressive_->free_memory();
}

/// An opened image can be decoded or checked once.
void JpegDecoder::take_image() {
  check_open();
  opened_ = false;
}

void JpegDecoder::check_open() const {
  if (!opened_)
    throw Error(ErrorCode::invalid_argument,
                "no image is open; call open() before each decode() or check()");
}

bool JpegDecoder::begin_decode(const Region& region) {
  check_open();
  check_inside(region, header_.size());
  begun_.reset();
  // A small region needs no reservation from the budget. So this call never waits for the budget
  // while another image of the worker holds a part of it.
  if (!takes_stages_ || pixels_of({region.width, region.height}) > max_pixels) return false;
  stages_->begin(*frame_, region, 1, reserve(region), uses_index_ ? &index_ : nullptr);
  begun_ = region;
  return stages_->can_interleave();
}

bool JpegDecoder::can_interleave() const { return begun_ && stages_->can_interleave(); }

bool JpegDecoder::decode_interleaved(InterleavedDecoder& other) {
  auto* const second = dynamic_cast<JpegDecoder*>(&other);
  if (second == nullptr) return false;
  if (can_interleave() && second->can_interleave())
    jpeg::BaselineDecoder::decode_interleaved(*stages_, *second->stages_);
  return true;
}

/// Reserves memory for a region's pixels in the stages' layout.
std::uint8_t* JpegDecoder::reserve(const Region& region) {
  return scratch_.reserve(jpeg::RegionPixels::stride_of(region.width) *
                          static_cast<std::size_t>(region.height));
}

/// Returns false if libjpeg-turbo must decode the region.
bool JpegDecoder::read_by_stages(const Region& region, int reduction, PixelView& view) {
  if (!takes_stages_ && !takes_progressive_) return false;
  std::uint8_t* const pixels = reserve(region);
  const bool is_begun = begun_ == region && reduction == 1;
  bool sound = false;
  if (takes_progressive_)
    sound = progressive_->decode(*frame_, *script_, region, reduction, pixels,
                                 uses_index_ ? &index_ : nullptr);
  else
    sound = is_begun ? stages_->finish()
                     : stages_->decode(*frame_, region, reduction, pixels,
                                       uses_index_ ? &index_ : nullptr);
  begun_.reset();
  if (!sound) {
    doubt();
    return false;
  }
  view = {pixels, region.width, region.height, jpeg::RegionPixels::stride_of(region.width)};
  return true;
}

void JpegDecoder::doubt() {
  takes_stages_ = takes_progressive_ = false;
  // libjpeg-turbo needs the memory now.
  if (progressive_ != nullptr) progressive_->free_memory();
  header_.decoder = "libjpeg-turbo (doubtful data)";
}

/// Sets whether stray bytes were skipped. Call it after an image was read.
void JpegDecoder::note_repair(const Status& status) {
  // If the stages decode a progressive image, they skip no stray bytes, and libjpeg has not begun.
  header_.repaired = status.is_ok() && (takes_stages_ ? stages_->skipped_stray_bytes()
                                                      : libjpeg_->skipped_stray_bytes());
  if (header_.repaired)
    header_.decoder = repaired_name(takes_stages_, header_.arithmetic, header_.progressive);
}

Status JpegDecoder::read(const Region& region, int reduction, PixelView& view) {
  unsigned left = 0;
  unsigned top = 0;
  if (Status started = start(region, reduction, left, top); !started.is_ok()) return started;

  const jpeg_decompress_struct& image = libjpeg_->image();
  const unsigned x = static_cast<unsigned>(region.x) - left;
  const unsigned skipped = static_cast<unsigned>(region.y) - top;
  const unsigned rows = skipped + static_cast<unsigned>(region.height);
  const std::size_t stride = row_bytes(image);
  std::uint8_t* pixels = scratch_.reserve(stride * rows);
  if (Status done = libjpeg_->read(rows, pixels, stride); !done.is_ok()) return done;

  std::uint8_t* first_row = pixels + skipped * stride;
  if (image.output_components == 4)
    for (int row = 0; row < region.height; ++row)
      cmyk_to_rgb(first_row + static_cast<std::size_t>(row) * stride, image.output_width);
  view = {first_row + std::size_t{3} * x, region.width, region.height, stride};
  return Status::ok();
}

/// Returns false if libjpeg-turbo must check the image.
bool JpegDecoder::check_by_stages(Status& status) {
  jpeg::SeekIndex whole{.granularity = index_.granularity};
  if (!stages_->check(*frame_, uses_index_ ? &whole : nullptr)) {
    doubt();
    return false;
  }
  if (uses_index_) take_whole_index(std::move(whole), status);
  return true;
}

/// Replaces the given index by the whole one if that begins with it. Otherwise sets a bad status.
void JpegDecoder::take_whole_index(jpeg::SeekIndex whole, Status& status) {
  if (std::ranges::mismatch(index_.points, whole.points).in1 == index_.points.end())
    index_ = std::move(whole);
  else
    status = Status::bad("its seek index is not that of the image");
}

/// Makes the index of a progressive image that libjpeg-turbo has checked.
void JpegDecoder::check_scans(Status& status) {
  jpeg::SeekIndex whole;
  takes_progressive_ = progressive_->make_index(*frame_, *script_, whole);
  free_large_coefficients();
  if (takes_progressive_) take_whole_index(std::move(whole), status);
}

Status JpegDecoder::read_all() {
  if (Status checked = Status::ok(); takes_stages_ && check_by_stages(checked)) return checked;
  // A strip at the left edge costs little, compared with the entropy decoding, which must read all
  // data anyway.
  unsigned left = 0;
  unsigned top = 0;
  if (Status started = start({0, 0, 1, header_.height}, 1, left, top); !started.is_ok())
    return started;
  if (libjpeg_->has_multiple_scans()) return Status::ok();  // all scans are read already
  const jpeg_decompress_struct& image = libjpeg_->image();
  Status read = libjpeg_->read(image.output_height, scratch_.reserve(row_bytes(image)), 0);
  return read.is_ok() ? libjpeg_->finish() : read;
}

/// Begins output. The next row is then row `top` of the image, and its first pixel is column
/// `left`. They are not after the region's first row and column.
Status JpegDecoder::start(const Region& region, int reduction, unsigned& left, unsigned& top) {
  if (Status started = libjpeg_->start(static_cast<unsigned>(reduction)); !started.is_ok())
    return started;
  // Smoothing treats the block at a crop's edge as the block at the image's edge. So images that
  // are smoothed are decoded at full width.
  if (libjpeg_->smooths()) return Status::ok();
  if (libjpeg_->crops_exactly(static_cast<unsigned>(reduction)))
    if (Status cropped = crop(region, left); !cropped.is_ok()) return cropped;
  top = static_cast<unsigned>(region.y);
  return top > 0 ? libjpeg_->skip(top) : Status::ok();
}

Status JpegDecoder::crop(const Region& region, unsigned& left) {
  // Where colour is stored at a lower resolution, upsampling reads both neighbours of a pixel, and
  // would treat the crop's edges as the image's. A crop of less than two samples of colour is even
  // upsampled by another method. So the crop has one column more on each side, and at least two
  // blocks.
  const jpeg_decompress_struct& image = libjpeg_->image();
  const unsigned margin = image.max_h_samp_factor > 1 ? 1 : 0;
  const unsigned narrowest = static_cast<unsigned>(2 * DCTSIZE * image.max_h_samp_factor);
  const auto x = static_cast<unsigned>(region.x);
  left = x < margin ? 0 : x - margin;
  unsigned right = std::min(x + static_cast<unsigned>(region.width) + margin, image.output_width);
  if (right - left < narrowest) {
    right = std::min(left + narrowest, image.output_width);
    left = std::min(left, right < narrowest ? 0 : right - narrowest);
  }
  unsigned width = right - left;
  return width < image.output_width ? libjpeg_->crop(left, width) : Status::ok();
}

}  // namespace millrace
