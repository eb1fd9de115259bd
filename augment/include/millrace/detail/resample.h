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

/// A part of an image, whose edges may lie within pixels.
struct SourceBox {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;
};

/// A resize of an image, or of its part `box`, to the size `to`. Makes only the pixels in `window`,
/// which lies inside `to` and is not empty.
struct Resampling {
  Size from;
  Size to;
  Region window;
  Interpolation interpolation = Interpolation::bilinear;
  Like like = Like::pillow_13;
  /// Whether the window is made with its left and right exchanged.
  bool mirrored = false;
  /// Whether the window is made with its top and bottom exchanged.
  bool flipped = false;
  /// The part to resize, inside the image; nullopt is the whole image.
  std::optional<SourceBox> box = std::nullopt;
  /// The turn that makes the stored image upright. All other members describe the upright image.
  Turn turn = {};
};

/// Weights of the bilinear filter for all output pixels of an axis.
struct BilinearWeights {
  /// For each pixel: the source pixel of its first weight.
  std::vector<std::int32_t> begins;
  /// `taps` lists, `stride` numbers apart: the first has every pixel's first weight, the second
  /// every pixel's second weight, and so on. A pixel with fewer weights has zeros after them.
  std::vector<std::int32_t> weights;
  /// For each pixel: the number of its weights, without the zeros after them.
  std::vector<std::int32_t> lengths;
  int taps = 0;
  std::size_t stride = 0;
  /// Whether a pixel's first weight may be zero.
  bool leading_zeros = false;
  std::vector<double> shares;  // scratch
};

/// The weights along one axis of a window. Each pixel is a weighted sum of consecutive source
/// pixels; the weights are in units of 2^-22. Source: precompute_coeffs and normalize_coeffs_8bpc
/// in Pillow's Resample.c; for `nearest`, ImagingScaleAffine in its Geometry.c.
class ResampleAxis {
 public:
  static constexpr int precision_bits = 22;

  /// Range of output pixels along one axis. A resize makes `to` output pixels of the part [low,
  /// high) of `from` source pixels. Of these, the range has `count`, beginning at `begin`.
  struct Wanted {
    int from;
    float low;
    float high;
    int to;
    int begin;
    int count;
    Interpolation interpolation;
    bool mirrored;
    /// Whether the source pixels are stored from the last to the first. The members of `Wanted`
    /// count in the upright order, the results of `ResampleAxis` in the stored order.
    bool stored_backwards = false;
  };
  /// Computes the weights. Memory of earlier calls is reused.
  void make(const Wanted& wanted);

  int count() const { return static_cast<int>(begins_.size()); }
  /// Range of source pixels with a weight in any output pixel: `needed` pixels, beginning at
  /// `first`.
  int first() const { return first_; }
  int needed() const { return end_ - first_; }
  /// The number of weights of each pixel, including the zeros after its own weights.
  int taps() const { return taps_; }
  /// Returns the source pixel of a pixel's first weight, counted from `first`. The zeros after the
  /// pixel's own weights may belong to source pixels beyond the `needed` ones.
  int begin(int pixel) const { return begins_[static_cast<std::size_t>(pixel)]; }
  std::span<const std::int32_t> begins() const { return begins_; }
  std::span<const std::int32_t> weights(int pixel) const {
    return {weights_.data() + static_cast<std::size_t>(pixel) * stride_,
            static_cast<std::size_t>(taps_)};
  }
  /// Returns the weights of all pixels, which begin `stride` numbers apart.
  std::span<const std::int32_t> weights() const {
    return {weights_.data(), begins_.size() * stride_};
  }
  std::size_t stride() const { return stride_; }

 private:
  template <typename Filter>
  void weigh(const Wanted& wanted, double support, Filter filter);
  void weigh_bilinear(const Wanted& wanted);
  void pick_nearest(const Wanted& wanted);
  /// Changes the weights to those of `from` pixels that are stored backwards.
  void reverse_source(int from);
  /// Stores the first source pixel of an output pixel's weights, and their number. Zeros before and
  /// after the weights do not count, since they need no source pixel.
  void add(int place, int begin, int length);

  int first_ = 0;
  int end_ = 0;
  int taps_ = 0;
  std::size_t stride_ = 0;  // from one pixel's weights to the next one's
  std::vector<std::int32_t> begins_;
  std::vector<std::int32_t> weights_;
  std::vector<double> shares_;  // scratch: one pixel's weights
  BilinearWeights bilinear_;    // scratch
};

/// Both axes of a resampling's window, in the upright order.
struct WantedAxes {
  ResampleAxis::Wanted horizontal;
  ResampleAxis::Wanted vertical;
};
WantedAxes wanted_axes(const Resampling& resampling);

/// Weights of an axis, in the layout that the resize passes read. A weight is too large for a
/// multiplication of 16-bit numbers, so it is split: high x 2^11 + low. Two consecutive weights
/// become two 32-bit numbers: one holds both high halves, the other both low halves. So one
/// instruction multiplies two halves and adds the products.
struct PackedAxis {
  int count = 0;
  /// Pairs of weights per pixel. `weights` has 2 x `pairs` numbers per pixel: high, low, high ...
  int pairs = 0;
  std::vector<std::int32_t> weights;
  /// The results of `ResampleAxis::begin`. Four pixels are made at a time, so both lists are padded
  /// with zeros to a multiple of four pixels.
  std::vector<int> begins;

  void pack(const ResampleAxis& axis);
  const std::int32_t* weights_of(int pixel) const {
    return weights.data() + static_cast<std::size_t>(pixel) * static_cast<std::size_t>(2 * pairs);
  }
};

/// Weights of an axis, for processors that multiply and add four bytes at once (VNNI). A weight is
/// split into three signed digits of 8 bits: d2 x 2^16 + d1 x 2^8 + d0.
struct DigitAxis {
  /// Number of 32-bit sums in one vector.
  static constexpr int lanes = 16;
  static constexpr int max_quads = 4;

  int count = 0;
  int taps = 0;
  /// Quads per pixel: groups of four weights.
  int quads = 0;
  /// For each quad of each pixel: four digits d0, four d1, four d2, and four zeros.
  std::vector<std::uint32_t> digits;
  std::vector<int> begins;

  /// Tables of the horizontal pass, which makes a row in groups of `lanes` bytes. For each group it
  /// reads one vector of source bytes, or two if `wide`, from the offset in `bases` on. For each
  /// quad of a group, `table` has the positions of the lanes' bytes in these vectors, then the
  /// digits d2, d1, d0. Both tables are padded to whole vectors of output bytes.
  std::vector<int> bases;
  std::vector<std::uint32_t> table;
  bool wide = false;
  /// Number of bytes that the horizontal pass reads of a source row.
  std::size_t reach = 0;

  void pack(const ResampleAxis& axis);
  /// Fills `bases` and `table`. Returns false if a group needs more quads or vectors than the pass
  /// has.
  bool try_arrange();
  const std::uint32_t* digits_of(int pixel) const {
    return digits.data() + static_cast<std::size_t>(pixel) * static_cast<std::size_t>(4 * quads);
  }
};

/// Resizes 8-bit RGB as Pillow does, to the bit. It uses AVX-512, AVX2, SSE4, SSSE3 or NEON, chosen
/// at run time, or plain code. It makes only the window, and reads only the source pixels that the
/// window needs. Its tables and scratch memory grow, but never shrink. For one thread at a time.
class Resampler {
 public:
  /// Checks the vector code, if it has not been checked in this process. Throws as
  /// `check_instruction_set` does.
  Resampler();

  /// Returns the largest memory, in bytes, that a resampler takes to transpose windows of at most
  /// this size. It takes the memory at the first transposed image and keeps it.
  static std::size_t transposed_bytes(Size window);

  /// Makes the tables for `run`. Returns the part of the stored source image that `run` needs.
  Region prepare(const Resampling& resampling);

  /// Makes the window from `source`, the pixels of the region that `prepare` returned. The window's
  /// rows are `stride` bytes apart. May be called for several images after one `prepare`.
  void run(const PixelView& source, std::uint8_t* window, std::size_t stride);

  /// Returns whether `begin` and `add` may be used. This requires that the horizontal pass comes
  /// first.
  bool takes_parts() const { return !vertical_first_; }
  /// Begins a window. Each `add` then takes the next source rows, from the top to the bottom. The
  /// last row completes the window.
  void begin(std::uint8_t* window, std::size_t stride);
  void add(const PixelView& rows);

 private:
  friend struct ResampleCheck;
  /// Tag of the constructor that skips the check. The check itself uses this constructor.
  struct Unchecked {};
  explicit Resampler(Unchecked) {}

  void make_complete_rows();
  void columns_first(const PixelView& source);
  void finish();
  std::size_t row_reach() const;
  void pack();
  /// The two passes. The horizontal one takes at most `pass_rows` rows; the vertical one makes row
  /// `y` from the rows in `taps_`.
  void pass_across(const std::uint8_t* const* rows, std::uint8_t* const* made, std::size_t count);
  void pass_down(int y, std::uint8_t* made, std::size_t bytes);

  bool vertical_first_ = false;
  bool transposed_ = false;
  /// Whether the rows are made from the last to the first, as their source rows are stored.
  bool upwards_ = false;
  ResampleAxis horizontal_;
  ResampleAxis vertical_;
  /// The weights of each axis. Its pass reads either the packed ones or the digits.
  PackedAxis across_;
  PackedAxis down_;
  DigitAxis across_weight_digits_;
  DigitAxis down_weight_digits_;
  bool across_by_vnni_ = false;
  bool down_by_vnni_ = false;
  /// The window in progress. Its next row is number `next_`. Rows are written `step_` bytes apart.
  /// `made_` source rows have passed the horizontal pass.
  std::uint8_t* window_ = nullptr;
  std::size_t stride_ = 0;
  std::uint8_t* row_to_ = nullptr;
  std::ptrdiff_t step_ = 0;
  int next_ = 0;
  std::size_t made_ = 0;
  /// Number of rows in the ring of `add`.
  std::size_t kept_rows_ = 0;
  /// Results of the first pass. `add` keeps those that it still needs in a ring.
  std::vector<std::uint8_t> rows_;
  /// Copies of the last rows, with room after them for reads beyond a row's end.
  std::vector<std::uint8_t> last_rows_;
  std::vector<const std::uint8_t*> taps_;  // input rows of the vertical pass
  std::vector<std::uint8_t> stored_;       // a window before it is transposed
};

/// Returns whether the vertical pass comes first. The result of the first pass is rounded to 8
/// bits, so the pixels depend on the order.
bool vertical_first(const Resampling& resampling);

/// Copies an 8-bit RGB image, rows without gaps, with left and right exchanged. The copy must not
/// overlap the image.
void mirror_rows(const std::uint8_t* from, Size size, std::uint8_t* to);

/// Resizes as Pillow does, pixel by pixel; the reference for the faster code. `image` is the whole
/// image, which must be upright.
void resample_plainly(const Resampling& resampling, const PixelView& image, std::uint8_t* window,
                      std::size_t stride);

}  // namespace millrace
