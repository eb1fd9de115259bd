// SPDX-License-Identifier: Apache-2.0
//
// Pillow's `Image.resize` of 8-bit RGB, to the bit. For millrace's own folders; not installed.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/operation.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace MILLRACE_API millrace {

/// A part of an image whose edges need not lie between pixels.
struct SourceBox {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;
};

/// A resize of an image, or of its part `box`, to the size `to`. Only the pixels in `window`, which
/// lies inside `to` and is not empty, are made.
struct Resampling {
  Size from;
  Size to;
  Region window;
  Interpolation interpolation = Interpolation::bilinear;
  Like like = Like::pillow_13;
  /// Whether the window is made with its left and right exchanged.
  bool mirrored = false;
  /// Whether it is made with its top and bottom exchanged.
  bool flipped = false;
  /// The part to resize, inside the image; nullopt is the whole image.
  std::optional<SourceBox> box = std::nullopt;
  /// The turn of the stored image. All other members are about the upright image.
  Turn turn = {};
};

/// The bilinear filter's weights of all pixels of an axis.
struct BilinearWeights {
  /// For each pixel: the source pixel of its first weight.
  std::vector<std::int32_t> begins;
  /// The first weights of all pixels, then all second ones, and so on: `taps` lists that are
  /// `stride` numbers apart. Weights after a pixel's own are 0.
  std::vector<std::int32_t> weights;
  int taps = 0;
  std::size_t stride = 0;
  std::vector<double> shares;  // scratch
};

/// The weights along one axis of a window. Each pixel is the sum of some consecutive source pixels,
/// by weights in units of 2^-22. Source: precompute_coeffs and normalize_coeffs_8bpc in Pillow's
/// Resample.c; for `nearest`, ImagingScaleAffine in its Geometry.c.
class ResampleAxis {
 public:
  static constexpr int precision_bits = 22;

  /// The wanted part of one axis: the pixels `begin` to `begin` + `count` of `to`. The part [low,
  /// high) of `from` source pixels is resized to these `to` pixels.
  struct Wanted {
    int from;
    float low;
    float high;
    int to;
    int begin;
    int count;
    Interpolation interpolation;
    bool mirrored;
    /// Whether the source's pixels are stored from the last to the first. The members here count in
    /// the upright order. The results of `ResampleAxis` count in the stored order.
    bool backwards = false;
  };
  /// Computes the weights. Its memory only grows.
  void make(const Wanted& wanted);

  int count() const { return static_cast<int>(begins_.size()); }
  /// The source pixels that have a weight in any pixel: `needed` of them from `first` on.
  int first() const { return first_; }
  int needed() const { return end_ - first_; }
  /// The number of weights that each pixel has, zeros after its own included.
  int taps() const { return taps_; }
  /// Returns the source pixel, counted from `first`, of a pixel's first weight. The zeros after
  /// the pixel's own weights may reach beyond `needed`.
  int begin(int pixel) const { return begins_[static_cast<std::size_t>(pixel)]; }
  std::span<const std::int32_t> weights(int pixel) const {
    return {weights_.data() + static_cast<std::size_t>(pixel) * stride_,
            static_cast<std::size_t>(taps_)};
  }

 private:
  template <typename Filter>
  void weigh(const Wanted& wanted, double support, Filter filter);
  void weigh_bilinear(const Wanted& wanted);
  void pick_nearest(const Wanted& wanted);
  /// Changes the weights to those of `from` pixels that are stored backwards.
  void reverse_source(int from);
  /// Adds a pixel's weights without the zeros before and after them: a weight of zero needs no
  /// source pixel.
  void add(int place, int begin, int length);

  int first_ = 0;
  int end_ = 0;
  int taps_ = 0;
  std::size_t stride_ = 0;  // from one pixel's weights to the next one's
  std::vector<int> begins_;
  std::vector<std::int32_t> weights_;
  std::vector<double> shares_;  // scratch: one pixel's weights
  BilinearWeights bilinear_;    // scratch
};

/// An axis in the form that the passes take. A weight of 22 bits does not fit a factor of 16 bits,
/// so it is high x 2^11 + low. For two consecutive weights, the high halves are one 32-bit number
/// and the low halves another. So one instruction multiplies and adds two products.
struct PackedAxis {
  int count = 0;
  /// Pairs of weights per pixel; 2 x `pairs` numbers: high, low, high, low ...
  int pairs = 0;
  std::vector<std::int32_t> weights;
  /// As `ResampleAxis::begin`. Four pixels are made at a time, so both lists are padded with zeros.
  std::vector<int> begins;

  void pack(const ResampleAxis& axis);
  const std::int32_t* weights_of(int pixel) const {
    return weights.data() + static_cast<std::size_t>(pixel) * static_cast<std::size_t>(2 * pairs);
  }
};

/// An axis in the form for processors that multiply and add four bytes at once (VNNI). A weight is
/// three signed digits of 8 bits, d2 x 2^16 + d1 x 2^8 + d0.
struct DigitAxis {
  /// Sums of 32 bits in a vector.
  static constexpr int lanes = 16;
  static constexpr int most_quads = 4;

  int count = 0;
  int taps = 0;
  /// Groups of four weights per pixel.
  int quads = 0;
  /// For each quad of each pixel: four digits d0, four d1, four d2, and four zeros.
  std::vector<std::uint32_t> digits;
  std::vector<int> begins;

  /// The two lists of the horizontal pass, which makes `lanes` bytes of a row at a time. `bases`
  /// has, for each group of `lanes` bytes, the source byte from which a vector is read; two vectors
  /// if `wide`. `table` has, for each quad of the group, the places in them of the lanes' bytes,
  /// and then their digits d2, d1, d0. Both cover whole vectors of bytes, so the last groups may be
  /// without pixels.
  std::vector<int> bases;
  std::vector<std::uint32_t> table;
  bool wide = false;
  /// Bytes of a row that are read.
  std::size_t reach = 0;

  void pack(const ResampleAxis& axis);
  /// Fills `bases` and `table`; returns false if a group's pixels lie too far apart.
  bool arrange();
  const std::uint32_t* digits_of(int pixel) const {
    return digits.data() + static_cast<std::size_t>(pixel) * static_cast<std::size_t>(4 * quads);
  }
};

/// Resizes 8-bit RGB as Pillow does, to the bit. It uses AVX-512, AVX2, SSE4, SSSE3 or NEON, chosen
/// at run time, or plain code. It makes only the window, and reads only the source pixels of the
/// window. It holds tables and scratch that only grow. Not for two threads at once.
class Resampler {
 public:
  /// Checks the vector code if it is the first of a process. Throws as `check_instruction_set`
  /// does.
  Resampler();

  /// Makes the tables for `run`. Returns the part of the source image, as stored, that `run` needs.
  Region prepare(const Resampling& resampling);

  /// Makes the window from `source`, which shows the region that `prepare` returned. The window's
  /// rows are `stride` bytes apart. May be called again for more images.
  void run(const PixelView& source, std::uint8_t* window, std::size_t stride);

 private:
  friend struct ResampleCheck;
  /// Tag of the constructor without the check, for the check itself.
  struct Unchecked {};
  explicit Resampler(Unchecked) {}

  /// Writes each row `step` bytes after the row before.
  void make_rows(const PixelView& source, std::uint8_t* row_to, std::ptrdiff_t step);
  void rows_first(const PixelView& source, std::uint8_t* row_to, std::ptrdiff_t step);
  void columns_first(const PixelView& source, std::uint8_t* row_to, std::ptrdiff_t step);
  std::size_t row_reach() const;
  void pack();
  /// The horizontal pass over at most `pass_rows` rows, and the vertical pass that makes row `y`
  /// from the rows in `taps_`.
  void pass_across(const std::uint8_t* const* rows, std::uint8_t* const* made, std::size_t count);
  void pass_down(int y, std::uint8_t* made, std::size_t bytes);

  bool vertical_first_ = false;
  bool transposed_ = false;
  /// Whether the rows are read from the last to the first, since they are stored upside down.
  bool upwards_ = false;
  ResampleAxis horizontal_;
  ResampleAxis vertical_;
  /// The form of each axis, packed or by digits.
  PackedAxis across_;
  PackedAxis down_;
  DigitAxis across_digits_;
  DigitAxis down_digits_;
  bool across_by_vnni_ = false;
  bool down_by_vnni_ = false;
  /// Rows that passed the horizontal pass and are still needed, in a ring of `kept_rows_`.
  std::size_t kept_rows_ = 0;
  std::vector<std::uint8_t> rows_;
  /// Copies of the last rows, with room after them for reads beyond a row's end.
  std::vector<std::uint8_t> last_rows_;
  std::vector<const std::uint8_t*> taps_;  // the rows that a row is made of
  std::vector<std::uint8_t> stored_;       // a window before it is transposed
};

/// Returns whether the vertical pass comes first. The result of the first pass is rounded to 8
/// bits, so the order shows in the pixels.
bool vertical_first(const Resampling& resampling);

/// Copies an 8-bit RGB image, rows without gaps, with left and right exchanged. The copy must not
/// overlap the image.
void mirror_rows(const std::uint8_t* from, Size size, std::uint8_t* to);

/// Resizes as Pillow does, pixel by pixel; the reference for the faster code. `image` is the whole
/// upright image, and is not turned.
void resample_plainly(const Resampling& resampling, const PixelView& image, std::uint8_t* window,
                      std::size_t stride);

}  // namespace millrace
