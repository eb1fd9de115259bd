// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/instruction_sets.h>
#include <millrace/detail/jpeg_recoder.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "codec/limits.h"
#include "coefficients/expansion_check.h"
#include "coefficients/file_restorer.h"
#include "coefficients/record.h"
#include "coefficients/skeleton.h"
#include "jpeg/coefficients.h"
#include "jpeg/entropy.h"
#include "jpeg/frame.h"
#include "jpeg/libjpeg.h"
#include "jpeg/progressive/progressive_coefficients.h"
#include "jpeg/progressive/progressive_entropy.h"
#include "jpeg/progressive/script.h"

namespace millrace {
namespace {

using coefficients::Coefficients;
using coefficients::FileParts;

std::uint64_t bytes_of_blocks(const jpeg::Frame& frame) {
  std::uint64_t blocks = 0;
  for (int component = 0; component < frame.component_count; ++component)
    blocks += static_cast<std::uint64_t>(coefficients::blocks_across(frame, component)) *
              static_cast<std::uint64_t>(coefficients::blocks_down(frame, component));
  return blocks * coefficients::block_values * sizeof(std::int16_t);
}

/// Returns whether no step of an inverse transform exceeds 16 bits. Then all implementations of it
/// make the same samples. The first pass multiplies a column's sum by less than 1.39 and by 4, and
/// the second pass adds two of its results. The coefficients of 8-bit samples have sums of at most
/// 2,897 before they are rounded.
bool fits(const std::vector<std::int16_t>& blocks, const std::array<std::uint16_t, 64>& steps) {
  constexpr int largest_sum = 2940;
  for (std::size_t at = 0; at < blocks.size(); at += coefficients::block_values) {
    std::array<int, 8> sums{};
    for (std::size_t n = 0; n < coefficients::block_values; n += 8)
      for (std::size_t column = 0; column < 8; ++column)
        sums[column] += std::abs(blocks[at + n + column] * steps[n + column]);
    if (std::ranges::max(sums) > largest_sum) return false;
  }
  return true;
}

}  // namespace

struct JpegRecoder::State {
  explicit State(std::uint64_t max_scan_pixels) : libjpeg(max_scan_pixels) {}

  template <typename Make>
  Status open_and_make(std::span<const std::byte> jpeg, const DecodeLimits& limits,
                       const Make& make);
  bool read_by_stages();
  bool read_progressive();
  void clear_outside();
  std::array<std::int16_t*, 3> begins();
  void take_row(std::array<std::int16_t*, 3>& to);
  Status read_by_libjpeg();
  Status fit() const;
  Status make_record(std::span<const std::byte> jpeg, std::vector<std::byte>& record);
  Status make_pixel_record(bool progressive, std::vector<std::byte>& record);
  Status restore(std::span<const std::byte> record);

  Libjpeg libjpeg;
  jpeg::Frame frame;
  jpeg::EntropyDecoder entropy;
  jpeg::Script script;
  jpeg::ProgressiveEntropyDecoder progressive_entropy;
  jpeg::ProgressiveCoefficients progressive_coefficients;
  jpeg::CoefficientRow row;
  Coefficients all;
  std::vector<std::uint8_t> skeleton;
  std::vector<std::uint8_t> file;
  coefficients::RecordReader reader;
};

JpegRecoder::JpegRecoder(std::shared_ptr<DecodeBudget> budget)
    : budget_(std::move(budget)),
      state_(std::make_unique<State>(budget_->limits().max_scan_pixels)) {}
JpegRecoder::~JpegRecoder() = default;

/// Opens a file and calls `make` with its header and size, if its number of pixels is allowed.
template <typename Make>
Status JpegRecoder::State::open_and_make(std::span<const std::byte> jpeg,
                                         const DecodeLimits& limits, const Make& make) {
  choose_instruction_set(jpeg::stages);
  choose_instruction_set(coefficients::expansion);
  if (Status opened = libjpeg.open(jpeg); !opened.is_ok()) return opened;
  const jpeg_decompress_struct& image = libjpeg.image();
  const Size size{static_cast<int>(image.image_width), static_cast<int>(image.image_height)};
  Status made = check_pixels(size, limits);
  if (made.is_ok()) made = make(image, size);
  libjpeg.end();
  return made;
}

Status JpegRecoder::store(std::span<const std::byte> jpeg, std::vector<std::byte>& record) {
  State& state = *state_;
  const DecodeLimits& limits = budget_->limits();
  return state.open_and_make(jpeg, limits, [&](const jpeg_decompress_struct& image, Size size) {
    if (const char* other = jpeg::read_layout(image, state.frame))
      return Status::bad(std::string("its pixels need ") + other);
    // Memory for libjpeg's blocks, for our blocks, and for files.
    const std::uint64_t needed = state.libjpeg.all_coefficient_bytes() +
                                 bytes_of_blocks(state.frame) + 5 * std::uint64_t{jpeg.size()};
    if (Status allowed = check_memory(size, needed, limits); !allowed.is_ok()) return allowed;
    const DecodeBudget::Reservation reservation = budget_->take(needed);
    return state.make_record(jpeg, record);
  });
}

/// Makes the record of the opened file.
Status JpegRecoder::State::make_record(std::span<const std::byte> jpeg,
                                       std::vector<std::byte>& record) {
  if (jpeg.size() > std::numeric_limits<std::uint32_t>::max())
    return Status::bad("it has 4 GiB or more");
  all.shape(frame);
  if (!read_by_stages())
    if (Status read = read_by_libjpeg(); !read.is_ok()) return read;
  if (Status fits = fit(); !fits.is_ok()) return fits;
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(jpeg.data()), jpeg.size());
  coefficients::take_skeleton(bytes, skeleton);
  FileParts parts{.skeleton = skeleton,
                  .bytes = jpeg.size(),
                  .checksum = XXH3_64bits(jpeg.data(), jpeg.size())};
  for (const bool padding : {true, false}) {
    parts.padding = padding;
    if (!write_record(frame, all, parts, record))
      return Status::bad("its record would have 4 GiB or more");
    if (restore(record).is_ok() && file.size() == bytes.size() &&
        std::memcmp(file.data(), bytes.data(), bytes.size()) == 0)
      return Status::ok();
  }
  return Status::bad("its scans are not coded as libjpeg codes them");
}

Status JpegRecoder::store_coefficients_only(std::span<const std::byte> jpeg,
                                            std::vector<std::byte>& record) {
  State& state = *state_;
  const DecodeLimits& limits = budget_->limits();
  return state.open_and_make(jpeg, limits, [&](const jpeg_decompress_struct& image, Size size) {
    const bool progressive = image.progressive_mode != FALSE;
    if (static_cast<std::uint64_t>(pixels_of(size)) > limits.max_scan_pixels ||
        jpeg::read_frame(image, state.frame) != nullptr ||
        (progressive &&
         !jpeg::read_script(image, state.frame, limits.max_scan_pixels, state.script)))
      return Status::bad("its pixels need libjpeg-turbo");
    // Memory for the coefficients, and twice that of the largest possible record.
    const std::uint64_t needed = 2 * bytes_of_blocks(state.frame) + 4 * std::uint64_t{jpeg.size()} +
                                 (progressive ? jpeg::ProgressiveCoefficients::bytes_for(
                                                    state.frame, state.script.refined_bit_count)
                                              : 0);
    if (Status allowed = check_memory(size, needed, limits); !allowed.is_ok()) return allowed;
    const DecodeBudget::Reservation reservation = budget_->take(needed);
    Status made = state.make_pixel_record(progressive, record);
    if (needed > DecodeBudget::small_bytes) {
      state.all = {};
      state.progressive_coefficients.free_memory();
    }
    return made;
  });
}

/// Makes the record of the pixels of the opened file, whose frame and script have been read.
Status JpegRecoder::State::make_pixel_record(bool progressive, std::vector<std::byte>& record) {
  all.shape(frame);
  if (!(progressive ? read_progressive() : read_by_stages()))
    return Status::bad("its pixels need libjpeg-turbo");
  if (!progressive && entropy.skipped_stray_bytes())
    return Status::bad("it has stray bytes, which are counted whenever it is decoded");
  if (Status fits = fit(); !fits.is_ok()) return fits;
  if (!write_record(frame, all, {}, record))
    return Status::bad("its record would have 4 GiB or more");
  return Status::ok();
}

/// Returns a bad status for coefficients that a record cannot have.
Status JpegRecoder::State::fit() const {
  const auto components = static_cast<std::size_t>(frame.component_count);
  for (std::size_t component = 0; component < components; ++component)
    if (!fits(all.blocks[component], frame.components[component].steps))
      return Status::bad("it has coefficients that no 8-bit image has");
  return Status::ok();
}

/// Reads the coefficients of a progressive file by our own entropy stage. Returns false for data
/// that only libjpeg can judge.
bool JpegRecoder::State::read_progressive() {
  progressive_coefficients.shape(frame, script.refined_bit_count,
                                 {.first_column = 0,
                                  .end_column = frame.mcus_across,
                                  .first_row = 0,
                                  .end_row = frame.mcus_down});
  if (!progressive_entropy.decode(frame, script, progressive_coefficients)) return false;
  row.shape(frame, frame.mcus_across);
  std::array<std::int16_t*, 3> to = begins();
  for (int mcu_row = 0; mcu_row < frame.mcus_down; ++mcu_row) {
    progressive_coefficients.copy_row(frame, mcu_row, row);
    take_row(to);
  }
  clear_outside();
  return true;
}

/// Clears the blocks that only fill MCUs, since `progressive_coefficients` does not have them.
void JpegRecoder::State::clear_outside() {
  for (int component = 0; component < frame.component_count; ++component) {
    std::vector<std::int16_t>& blocks = all.blocks[static_cast<std::size_t>(component)];
    const auto across = static_cast<std::size_t>(coefficients::blocks_across(frame, component));
    const auto down = static_cast<std::size_t>(coefficients::blocks_down(frame, component));
    const auto inside_across = static_cast<std::size_t>(progressive_coefficients[component].across);
    const auto inside_down = static_cast<std::size_t>(progressive_coefficients[component].down);
    for (std::size_t y = 0; y < down; ++y) {
      const std::size_t inside = y < inside_down ? inside_across : 0;
      std::fill_n(blocks.data() + (y * across + inside) * coefficients::block_values,
                  (across - inside) * coefficients::block_values, std::int16_t{0});
    }
  }
}

/// Reads the coefficients of a file with any kind of scans.
Status JpegRecoder::State::read_by_libjpeg() {
  std::array<BlockArray, 3> arrays;
  for (int component = 0; component < frame.component_count; ++component)
    arrays[static_cast<std::size_t>(component)] = {
        .values = all.blocks[static_cast<std::size_t>(component)].data(),
        .across = static_cast<unsigned>(coefficients::blocks_across(frame, component)),
        .down = static_cast<unsigned>(coefficients::blocks_down(frame, component))};
  const auto components = static_cast<std::size_t>(frame.component_count);
  if (Status read = libjpeg.read_coefficients(std::span(arrays).first(components)); !read.is_ok())
    return read;
  return libjpeg.smooths() ? Status::bad("its scans leave out precision") : Status::ok();
}

/// Reads the coefficients of a baseline file by our own entropy stage, which is faster than
/// libjpeg's. Returns false if libjpeg must read them.
bool JpegRecoder::State::read_by_stages() {
  const jpeg_decompress_struct& image = libjpeg.image();
  if (image.progressive_mode || jpeg::read_frame(image, frame) != nullptr ||
      !entropy.begin(frame, 0))
    return false;
  row.shape(frame, frame.mcus_across);
  std::array<std::int16_t*, 3> to = begins();
  for (int mcu_row = 0; mcu_row < frame.mcus_down; ++mcu_row) {
    if (!entropy.select_mcus(std::int64_t{mcu_row} * frame.mcus_across, frame.mcus_across, row) ||
        !entropy.finish())
      return false;
    take_row(to);
  }
  return entropy.is_at_end();
}

/// Returns the first block of each component.
std::array<std::int16_t*, 3> JpegRecoder::State::begins() {
  std::array<std::int16_t*, 3> to{};
  for (std::size_t component = 0; component < to.size(); ++component)
    to[component] = all.blocks[component].data();
  return to;
}

/// Copies a row of MCUs to the next blocks of each component.
void JpegRecoder::State::take_row(std::array<std::int16_t*, 3>& to) {
  for (int component = 0; component < frame.component_count; ++component) {
    std::int16_t*& next = to[static_cast<std::size_t>(component)];
    const jpeg::CoefficientRow::Blocks& blocks = row[component];
    for (int y = 0; y < blocks.down; ++y)
      next = coefficients::copy_blocks(blocks.row(y), blocks.across, next);
  }
}

Status JpegRecoder::restore(std::span<const std::byte> record, std::vector<std::byte>& jpeg) {
  choose_instruction_set(jpeg::stages);
  choose_instruction_set(coefficients::expansion);
  State& state = *state_;
  if (Status opened = state.reader.open(record, state.frame); !opened.is_ok()) return opened;
  const Size size{state.frame.width, state.frame.height};
  const std::uint64_t needed =
      bytes_of_blocks(state.frame) + 2 * std::uint64_t{state.reader.file().bytes};
  if (Status few = check_pixels(size, budget_->limits()); !few.is_ok()) return few;
  if (Status allowed = check_limits(size, record.size(), needed, budget_->limits());
      !allowed.is_ok())
    return allowed;
  const DecodeBudget::Reservation reservation = budget_->take(needed);
  Status restored = state.restore(record);
  if (restored.is_ok()) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(state.file.data());
    jpeg.assign(bytes, bytes + state.file.size());
  }
  return restored;
}

/// Restores the file of a record, whose header sets the frame.
Status JpegRecoder::State::restore(std::span<const std::byte> record) {
  if (Status opened = reader.open(record, frame); !opened.is_ok()) return opened;
  if (!reader.has_right_checksum())
    return Status::bad("its checksum is wrong; pack the dataset again");
  const FileParts& parts = reader.file();
  if (!reader.expand_all(frame, all) || !restore_file(frame, all, parts, file) ||
      file.size() != parts.bytes || XXH3_64bits(file.data(), file.size()) != parts.checksum)
    return Status::bad("its original file cannot be restored; pack the dataset again");
  return Status::ok();
}

}  // namespace millrace
