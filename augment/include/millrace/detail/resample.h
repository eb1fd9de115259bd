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

/// An image of size `from`, or the part `box` of it, resized to `to`, of which the pixels in
/// `window` (inside `to`, not empty) are wanted.
struct Resampling {
  Size from;
  Size to;
  Region window;
  Interpolation interpolation = Interpolation::bilinear;
  Like like = Like::pillow_13;
  /// Whether the window comes out with its left and right exchanged.
  bool mirrored = false;
  /// Whether it comes out with its top and bottom exchanged.
  bool flipped = false;
  /// Inside the image; nullopt is the whole.
  std::optional<SourceBox> box = std::nullopt;
  /// How the image is turned that is resized so, which is stored otherwise. All else is said of the
  /// upright image.
  Turn turn = {};
};

/// The bilinear filter's weights of all pixels of an axis.
struct BilinearWeights {
  /// Of each pixel: the source pixel of its first weight.
  std::vector<std::int32_t> begins;
  /// All pixels' first weights, then all second ones ...: `taps` lists that are `stride` numbers
  /// apart. Those behind a pixel's own are 0.
  std::vector<std::int32_t> weights;
  int taps = 0;
  std::size_t stride = 0;
  std::vector<double> shares;  // scratch
};

/// Of what the pixels along one axis of a window are made: each is the sum of some source pixels
/// in a row, by weights in units of 2^-22. Source: precompute_coeffs and normalize_coeffs_8bpc in
/// Pillow's Resample.c; for `nearest`, ImagingScaleAffine in its Geometry.c.
class ResampleAxis {
 public:
  static constexpr int precision_bits = 22;

  /// What is wanted of one axis: the pixels `begin` to `begin` + `count` of `to` that the part
  /// [low, high) of `from` pixels is resized to.
  struct Wanted {
    int from;
    float low;
    float high;
    int to;
    int begin;
    int count;
    Interpolation interpolation;
    bool mirrored;
    /// Whether the source's pixels are stored from the last to the first. What is said of them here
    /// is of the right order, what is told of them of the stored one.
    bool backwards = false;
  };
  /// Its memory only grows.
  void make(const Wanted& wanted);

  int count() const { return static_cast<int>(begins_.size()); }
  /// The source pixels that have a weight in any pixel: `needed` of them from `first` on.
  int first() const { return first_; }
  int needed() const { return end_ - first_; }
  /// The number of weights that each pixel has, zeros behind its own included.
  int taps() const { return taps_; }
  /// The source pixel, counted from `first`, of a pixel's first weight. The zeros behind the
  /// pixel's own weights may reach beyond `needed`.
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
  /// Makes the weights those of `from` pixels that are stored backwards.
  void reverse_source(int from);
  /// The weights of a pixel, zeros before and behind them left out: no source pixel is needed for
  /// a weight of zero.
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

/// An axis as the passes take it. A weight of 22 bits does not fit a factor of 16: it is
/// high x 2^11 + low. Of two weights that follow each other, the high halves are one 32-bit number
/// and the low halves another, so that one instruction multiplies and adds two products.
struct PackedAxis {
  int count = 0;
  /// Pairs of weights per pixel; 2 x `pairs` numbers: high, low, high, low ...
  int pairs = 0;
  std::vector<std::int32_t> weights;
  /// As `ResampleAxis::begin`. Four pixels are made at a time: both lists are filled up with zeros.
  std::vector<int> begins;

  void pack(const ResampleAxis& axis);
  const std::int32_t* weights_of(int pixel) const {
    return weights.data() + static_cast<std::size_t>(pixel) * static_cast<std::size_t>(2 * pairs);
  }
};

/// An axis as processors take it that multiply and add four bytes at once: a weight is three digits
/// of 8 bits with a sign, d2 x 2^16 + d1 x 2^8 + d0.
struct DigitAxis {
  /// As many sums of 32 bits as a vector has.
  static constexpr int lanes = 16;
  static constexpr int most_quads = 4;

  int count = 0;
  int taps = 0;
  /// Weights per pixel, by four.
  int quads = 0;
  /// Of each quad of each pixel: four digits d0, four d1, four d2, and nothing.
  std::vector<std::uint32_t> digits;
  std::vector<int> begins;

  /// For the horizontal pass, which makes `lanes` bytes of a row at a time: of each such group the
  /// source's byte from which it reads a vector, or two if it is `wide`; and of each of its quads
  /// the places therein of the lanes' bytes, then their digits d2, d1, d0. Whole vectors of bytes:
  /// the last groups may be of none.
  std::vector<int> bases;
  std::vector<std::uint32_t> table;
  bool wide = false;
  /// How many bytes of a row are read.
  std::size_t reach = 0;

  void pack(const ResampleAxis& axis);
  /// Makes what the horizontal pass takes; false if a group's pixels lie too far apart for it.
  bool arrange();
  const std::uint32_t* digits_of(int pixel) const {
    return digits.data() + static_cast<std::size_t>(pixel) * static_cast<std::size_t>(4 * quads);
  }
};

/// Resizes 8-bit RGB as Pillow does, to the bit, as fast as the processor's vectors allow: with
/// AVX-512, AVX2, SSE4, SSSE3 or NEON, chosen when it runs, or without. It makes the window alone
/// and reads no more than that is made of. It holds tables and scratch that only grow, and is not
/// for two threads at once.
class Resampler {
 public:
  /// The first one of a process checks the vector code. Throws as `check_instruction_set` does.
  Resampler();

  /// Makes the tables for `run`, and tells which part of the source image, as it is stored, the
  /// window is made of.
  Region prepare(const Resampling& resampling);

  /// Makes the window from `source`, which shows the region that `prepare` told, into rows that are
  /// `stride` bytes apart. May be called again for more images.
  void run(const PixelView& source, std::uint8_t* window, std::size_t stride);

 private:
  friend struct ResampleCheck;
  /// For the check itself.
  struct Unchecked {};
  explicit Resampler(Unchecked) {}

  /// Row after row is written `step` bytes from the one before.
  void make_rows(const PixelView& source, std::uint8_t* row_to, std::ptrdiff_t step);
  void rows_first(const PixelView& source, std::uint8_t* row_to, std::ptrdiff_t step);
  void columns_first(const PixelView& source, std::uint8_t* row_to, std::ptrdiff_t step);
  std::size_t row_reach() const;
  void pack();
  /// The horizontal pass over at most `pass_rows` rows, and the vertical one that makes row `y` of
  /// the rows in `taps_`.
  void pass_across(const std::uint8_t* const* rows, std::uint8_t* const* made, std::size_t count);
  void pass_down(int y, std::uint8_t* made, std::size_t bytes);

  bool vertical_first_ = false;
  bool transposed_ = false;
  /// Whether the rows come from the last to the first, as they are stored so.
  bool upwards_ = false;
  ResampleAxis horizontal_;
  ResampleAxis vertical_;
  /// Each axis by digits or not.
  PackedAxis across_;
  PackedAxis down_;
  DigitAxis across_digits_;
  DigitAxis down_digits_;
  bool across_by_digits_ = false;
  bool down_by_digits_ = false;
  /// Rows that went through the horizontal pass and are still needed, in a ring of so many.
  std::size_t kept_rows_ = 0;
  std::vector<std::uint8_t> rows_;
  /// Copies of the last rows, with room behind them to read.
  std::vector<std::uint8_t> last_rows_;
  std::vector<const std::uint8_t*> taps_;  // the rows that a row is made of
  std::vector<std::uint8_t> stored_;       // a window before it is transposed
};

/// Whether the vertical pass comes first. The result of the first pass is rounded to 8 bits, so the
/// order shows in the pixels.
bool vertical_first(const Resampling& resampling);

/// Copies an 8-bit RGB image, rows without gaps, and exchanges its left and right; the copy is
/// elsewhere.
void mirror_rows(const std::uint8_t* from, Size size, std::uint8_t* to);

/// Resizes as Pillow does, pixel by pixel: what every faster way is compared with. `image` is the
/// whole image and upright; it is not turned.
void resample_plainly(const Resampling& resampling, const PixelView& image, std::uint8_t* window,
                      std::size_t stride);

}  // namespace millrace
