// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/vector_checks.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "resample/passes.h"
#include "resample/vnni_passes.h"

namespace millrace {
namespace {

/// Returns the size to allocate for `bytes` of scratch: a quarter more, so that it seldom grows.
std::size_t with_margin(std::size_t bytes) { return bytes + bytes / 4; }

/// Grows `scratch` to `bytes`. Its content is lost.
std::uint8_t* reserve(std::vector<std::uint8_t>& scratch, std::size_t bytes) {
  if (scratch.size() < bytes) {
    scratch.clear();  // nothing in it is worth copying
    scratch.shrink_to_fit();
    scratch.resize(with_margin(bytes));
  }
  return scratch.data();
}

std::size_t rgb_bytes(int pixels) { return 3 * static_cast<std::size_t>(pixels); }

/// Returns the number of source rows that must be kept at once while the rows of `axis` are made
/// one after the other. Source rows arrive in their order, at most `pass_rows` at a time.
std::size_t rows_at_once(const ResampleAxis& axis) {
  std::vector<int> lowest(static_cast<std::size_t>(axis.count()));
  int low = axis.needed();
  for (int row = axis.count() - 1; row >= 0; --row)
    lowest[static_cast<std::size_t>(row)] = low = std::min(low, axis.begin(row));
  int end = 0;
  int most = 0;
  for (int row = 0; row < axis.count(); ++row) {
    end = std::max(end, std::min(axis.begin(row) + axis.taps(), axis.needed()));
    most = std::max(most, end - lowest[static_cast<std::size_t>(row)]);
  }
  return static_cast<std::size_t>(most) + pass_rows - 1;
}

/// Exchanges rows and columns, in blocks that fit the first-level cache.
void transpose(const std::uint8_t* from, Size size, std::uint8_t* to, std::size_t stride) {
  constexpr int block = 16;
  const std::size_t from_stride = rgb_bytes(size.width);
  for (int top = 0; top < size.height; top += block)
    for (int x = 0; x < size.width; ++x)
      for (int y = top; y < std::min(top + block, size.height); ++y) {
        const std::uint8_t* pixel = from + static_cast<std::size_t>(y) * from_stride + rgb_bytes(x);
        std::copy_n(pixel, 3, to + static_cast<std::size_t>(x) * stride + rgb_bytes(y));
      }
}

}  // namespace

void PackedAxis::pack(const ResampleAxis& axis) {
  count = axis.count();
  pairs = (axis.taps() + 1) / 2;
  const auto padded_count = (static_cast<std::size_t>(count) + 3) / 4 * 4;
  weights.assign(padded_count * static_cast<std::size_t>(2 * pairs), 0);
  begins.assign(padded_count, 0);
  std::int32_t* packed = weights.data();
  for (int pixel = 0; pixel < count; ++pixel) {
    begins[static_cast<std::size_t>(pixel)] = axis.begin(pixel);
    const std::span<const std::int32_t> from = axis.weights(pixel);
    for (std::size_t tap = 0; tap < from.size(); tap += 2) {
      const std::int32_t second = tap + 1 < from.size() ? from[tap + 1] : 0;
      *packed++ = (from[tap] >> 11 & 0xFFFF) |
                  static_cast<std::int32_t>(static_cast<std::uint32_t>(second >> 11) << 16);
      *packed++ = (from[tap] & 0x7FF) | (second & 0x7FF) << 16;
    }
  }
}

bool vertical_first(const Resampling& resampling) {
  const Size from = resampling.from;
  const Size to = resampling.to;
  return resampling.like == Like::pillow_13 && from.height > to.height &&
         from.height - to.height > 2 * (from.width - to.width);
}

Resampler::Resampler() { choose_instruction_set(resample_passes); }

std::size_t Resampler::transposed_bytes(Size window) {
  return with_margin(rgb_bytes(window.width) * static_cast<std::size_t>(window.height));
}

WantedAxes wanted_axes(const Resampling& resampling) {
  const Size from = resampling.from;
  const Region& window = resampling.window;
  const SourceBox box = resampling.box.value_or(
      SourceBox{0, 0, static_cast<float>(from.width), static_cast<float>(from.height)});
  return {
      .horizontal = {from.width, box.left, box.right, resampling.to.width, window.x, window.width,
                     resampling.interpolation, resampling.mirrored, resampling.turn.mirrored},
      .vertical = {from.height, box.top, box.bottom, resampling.to.height, window.y, window.height,
                   resampling.interpolation, resampling.flipped, resampling.turn.flipped}};
}

Region Resampler::prepare(const Resampling& resampling) {
  auto [across, down] = wanted_axes(resampling);
  transposed_ = resampling.turn.transposed;
  if (transposed_) std::swap(across, down);
  // Rows are made in the order in which their source rows are stored, so that few source rows are
  // kept.
  upwards_ = down.mirrored != down.stored_backwards;
  if (upwards_) down.mirrored = !down.mirrored;
  horizontal_.make(across);
  vertical_.make(down);
  vertical_first_ = vertical_first(resampling) != transposed_;
  kept_rows_ = rows_at_once(vertical_);
  pack();
  return {horizontal_.first(), vertical_.first(), horizontal_.needed(), vertical_.needed()};
}

void Resampler::pack() {
  across_by_vnni_ = down_by_vnni_ = has_vnni_passes();
  if (across_by_vnni_) {
    across_weight_digits_.pack(horizontal_);
    across_by_vnni_ = across_weight_digits_.try_arrange();
  }
  if (!across_by_vnni_) across_.pack(horizontal_);
  constexpr std::size_t vector_bytes = 64;
  const std::size_t bytes = rgb_bytes(vertical_first_ ? horizontal_.needed() : horizontal_.count());
  down_by_vnni_ = down_by_vnni_ && bytes >= vector_bytes;
  if (down_by_vnni_)
    down_weight_digits_.pack(vertical_);
  else
    down_.pack(vertical_);
  taps_.resize(
      static_cast<std::size_t>(down_by_vnni_ ? 4 * down_weight_digits_.quads : 2 * down_.pairs));
}

void Resampler::pass_across(const std::uint8_t* const* rows, std::uint8_t* const* made,
                            std::size_t count) {
  if (across_by_vnni_)
    vnni_horizontal(across_weight_digits_, rows, made, count);
  else
    horizontal_pass(across_, rows, made, count);
}

void Resampler::pass_down(int y, std::uint8_t* made, std::size_t bytes) {
  if (down_by_vnni_)
    vnni_vertical(down_weight_digits_.digits_of(y), down_weight_digits_.quads, taps_.data(), made,
                  bytes);
  else
    vertical_pass(down_.weights_of(y), down_.pairs, taps_.data(), made, bytes);
}

void Resampler::run(const PixelView& source, std::uint8_t* window, std::size_t stride) {
  begin(window, stride);
  if (!vertical_first_) return add(source);
  columns_first(source);
  finish();
}

void Resampler::begin(std::uint8_t* window, std::size_t stride) {
  window_ = window;
  stride_ = stride;
  const std::size_t row = transposed_ ? rgb_bytes(horizontal_.count()) : stride;
  const auto rows = static_cast<std::size_t>(vertical_.count());
  row_to_ = transposed_ ? reserve(stored_, row * rows) : window;
  step_ = static_cast<std::ptrdiff_t>(row);
  if (upwards_) {
    row_to_ += (rows - 1) * row;
    step_ = -step_;
  }
  made_ = 0;
  next_ = 0;
}

void Resampler::finish() {
  if (transposed_)
    transpose(stored_.data(), {horizontal_.count(), vertical_.count()}, window_, stride_);
}

/// Returns the number of bytes that the horizontal pass reads from a row's first byte on.
std::size_t Resampler::row_reach() const {
  if (across_by_vnni_) return across_weight_digits_.reach;
  return rgb_bytes(*std::max_element(across_.begins.begin(), across_.begins.end())) +
         pass_reach(across_);
}

void Resampler::add(const PixelView& rows) {
  // The horizontal pass may read beyond a row: into the next one, or beyond the last one.
  const auto height = static_cast<std::size_t>(rows.height);
  const std::size_t row_bytes = rgb_bytes(rows.width);
  const std::size_t reach = row_reach();
  const std::size_t room = std::max(reach, row_bytes);
  std::size_t safe = height;
  while (safe > 0 && (height - safe) * rows.stride + row_bytes < reach) --safe;
  std::uint8_t* copies = reserve(last_rows_, (height - safe) * room);
  for (std::size_t row = safe; row < height; ++row)
    std::memcpy(copies + (row - safe) * room, rows.pixels + row * rows.stride, row_bytes);

  const std::size_t made_bytes = rgb_bytes(horizontal_.count());
  std::uint8_t* ring = reserve(rows_, kept_rows_ * made_bytes);
  for (std::size_t row = 0; row < height;) {
    const std::uint8_t* from[pass_rows];
    std::uint8_t* to[pass_rows];
    std::size_t count = 0;
    for (; count < pass_rows && row < height; ++count, ++row, ++made_) {
      from[count] = row < safe ? rows.pixels + row * rows.stride : copies + (row - safe) * room;
      to[count] = ring + made_ % kept_rows_ * made_bytes;
    }
    pass_across(from, to, count);
    make_complete_rows();
  }
  if (next_ == vertical_.count()) finish();
}

/// Makes the window's next rows, up to the first one whose source rows are still missing.
void Resampler::make_complete_rows() {
  const std::size_t made_bytes = rgb_bytes(horizontal_.count());
  const auto height = static_cast<std::size_t>(vertical_.needed());
  for (; next_ < vertical_.count(); ++next_) {
    const auto begin = static_cast<std::size_t>(vertical_.begin(next_));
    const std::size_t end = std::min(begin + static_cast<std::size_t>(vertical_.taps()), height);
    if (made_ < end) return;
    for (std::size_t tap = 0; tap < taps_.size(); ++tap)
      taps_[tap] = rows_.data() + std::min(begin + tap, end - 1) % kept_rows_ * made_bytes;
    pass_down(next_, row_to_ + next_ * step_, made_bytes);
  }
}

void Resampler::columns_first(const PixelView& source) {
  const std::size_t row_bytes = rgb_bytes(source.width);
  const std::size_t room = std::max(row_reach(), row_bytes);
  std::uint8_t* rows = reserve(rows_, pass_rows * room);
  const auto last = static_cast<std::size_t>(source.height) - 1;
  for (int y = 0; y < vertical_.count();) {
    const std::uint8_t* from[pass_rows];
    std::uint8_t* to[pass_rows];
    std::size_t count = 0;
    for (; count < pass_rows && y < vertical_.count(); ++count, ++y) {
      const auto begin = static_cast<std::size_t>(vertical_.begin(y));
      for (std::size_t tap = 0; tap < taps_.size(); ++tap)
        taps_[tap] = source.pixels + std::min(begin + tap, last) * source.stride;
      pass_down(y, rows + count * room, row_bytes);
      from[count] = rows + count * room;
      to[count] = row_to_ + y * step_;
    }
    pass_across(from, to, count);
  }
}

}  // namespace millrace
