// SPDX-License-Identifier: Apache-2.0
#include "resample/resample.h"

#include <millrace/error.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <opencv2/imgproc.hpp>
#include <opencv2/imgproc/hal/hal.hpp>

namespace millrace {
namespace {

std::size_t offset(int x, int y, std::size_t stride) {
  return static_cast<std::size_t>(y) * stride + static_cast<std::size_t>(x) * 3;
}

/// Room for an image in scratch, without gaps between rows.
struct Room {
  std::uint8_t* pixels;
  std::size_t stride;
};

constexpr std::size_t kept_bytes = std::size_t{16} << 20;

/// How much scratch an image is given.
std::size_t room_bytes(Size size) {
  const std::size_t bytes = offset(0, size.height, offset(size.width, 0, 0));
  return bytes > kept_bytes ? bytes : std::bit_ceil(bytes);
}

Room reserve(std::vector<std::uint8_t>& scratch, int width, int height) {
  const std::size_t bytes = room_bytes({width, height});
  if (scratch.size() < bytes) {
    scratch = {};  // nothing in it is worth copying
    scratch.resize(bytes);
  }
  return {scratch.data(), offset(width, 0, 0)};
}

void copy(const PixelView& from, std::uint8_t* to, std::size_t stride) {
  for (int row = 0; row < from.height; ++row)
    std::memcpy(to + offset(0, row, stride), from.pixels + offset(0, row, from.stride),
                offset(from.width, 0, 0));
}

/// How many pixels are made per pixel read.
struct Scale {
  double x;
  double y;
};

/// The size that OpenCV gives to what it makes of an image.
Size made_size(int width, int height, Scale scale) {
  return {cvRound(width * scale.x), cvRound(height * scale.y)};
}

/// Calls OpenCV's resize at a scale that need not be the ratio of the sizes; it makes `made_size`
/// pixels, whatever size it is told.
void resize(const PixelView& from, std::uint8_t* to, std::size_t stride, Scale scale,
            int interpolation) {
  const Size made = made_size(from.width, from.height, scale);
  try {
    cv::hal::resize(CV_8UC3, from.pixels, from.stride, from.width, from.height, to, stride,
                    made.width, made.height, scale.x, scale.y, interpolation);
  } catch (const cv::Exception& error) {
    throw Error(ErrorCode::internal, std::string("OpenCV cannot resize: ") + error.what(),
                "augment");
  }
}

/// Makes means of 2 x 2 pixels; both sides must be even.
PixelView halve(const PixelView& view, std::vector<std::uint8_t>& scratch) {
  const Room half = reserve(scratch, view.width / 2, view.height / 2);
  resize(view, half.pixels, half.stride, {0.5, 0.5}, cv::INTER_AREA);
  return {half.pixels, view.width / 2, view.height / 2, half.stride};
}

/// How often the image is halved before the bilinear step.
int halvings(const Resampling& resampling) {
  int times = 0;
  while (resampling.from.width >> (times + 1) >= resampling.to.width &&
         resampling.from.height >> (times + 1) >= resampling.to.height)
    ++times;
  return times;
}

Scale bilinear_scale(const Resampling& resampling, int times) {
  const double unit = 1 << times;
  return {resampling.to.width * unit / resampling.from.width,
          resampling.to.height * unit / resampling.from.height};
}

struct Interval {
  int begin;
  int end;
};

/// Tells what bilinear pixels [first, first + count) are made of, on an axis of `available` pixels;
/// with a margin, so that none of them meets the end of the interval.
Interval source_of(int first, int count, double scale, int available) {
  const auto source = [&](int pixel) {
    return static_cast<int>(std::floor((pixel + 0.5) / scale - 0.5));
  };
  const int begin = std::clamp(source(first) - 2, 0, available - 1);
  return {begin, std::clamp(source(first + count - 1) + 4, begin + 1, available)};
}

/// Tells which region of the image, as it is after halving, the window is made of.
Region bilinear_source(const Resampling& resampling, int times) {
  const Scale scale = bilinear_scale(resampling, times);
  const Region& window = resampling.window;
  const Interval x = source_of(window.x, window.width, scale.x, resampling.from.width >> times);
  const Interval y = source_of(window.y, window.height, scale.y, resampling.from.height >> times);
  return {x.begin, y.begin, x.end - x.begin, y.end - y.begin};
}

/// Tells how much of the image, from its corner on, OpenCV is given where it would make more than
/// the window. Halving drops what does not fill its last pixel; where OpenCV would then make a
/// pixel too few, the last ones are repeated.
Size source_with_corner(const Resampling& resampling, int times) {
  const Scale scale = bilinear_scale(resampling, times);
  const Region place = bilinear_source(resampling, times);
  const Region& window = resampling.window;
  const Size end{place.x + place.width, place.y + place.height};
  return {end.width + (cvRound(end.width * scale.x) < window.x + window.width ? 1 : 0),
          end.height + (cvRound(end.height * scale.y) < window.y + window.height ? 1 : 0)};
}

bool makes_window_alone(const Resampling& resampling, int times, Size source) {
  const Region& window = resampling.window;
  return window.x == 0 && window.y == 0 &&
         made_size(source.width, source.height, bilinear_scale(resampling, times)) ==
             Size{window.width, window.height};
}

}  // namespace

Region Resampler::needed(const Resampling& resampling) {
  const int times = halvings(resampling);
  const Region source = bilinear_source(resampling, times);
  return {source.x << times, source.y << times, source.width << times, source.height << times};
}

std::uint64_t Resampler::scratch_bytes(const Resampling& resampling) {
  const int times = halvings(resampling);
  const Region region = needed(resampling);
  std::uint64_t bytes = 0;
  for (int n = 1; n <= std::min(times, 2); ++n)
    bytes += room_bytes({region.width >> n, region.height >> n});
  if (makes_window_alone(resampling, times, {region.width >> times, region.height >> times}))
    return bytes;
  const Scale scale = bilinear_scale(resampling, times);
  const Size source = source_with_corner(resampling, times);
  return bytes + room_bytes(source) + room_bytes(made_size(source.width, source.height, scale));
}

void Resampler::trim() {
  std::size_t held = source_.size() + resized_.size();
  for (const Pixels& half : halves_) held += half.size();
  if (held > kept_bytes) *this = {};
}

void Resampler::run(const Resampling& resampling, const PixelView& source, std::uint8_t* window,
                    std::size_t stride) {
  const int times = halvings(resampling);
  PixelView view = source;
  for (int n = 0; n < times; ++n) view = halve(view, halves_[static_cast<std::size_t>(n % 2)]);

  if (makes_window_alone(resampling, times, {view.width, view.height}))
    resize(view, window, stride, bilinear_scale(resampling, times), cv::INTER_LINEAR);
  else
    cut_from_more(resampling, view, window, stride);
}

void Resampler::cut_from_more(const Resampling& resampling, const PixelView& view,
                              std::uint8_t* window, std::size_t stride) {
  // OpenCV samples from half a pixel beside the corner on, and not from elsewhere. So the view is
  // put where it lies in its image, and the window is cut from what comes out; what else comes out
  // is made of stale pixels and goes unseen.
  const int times = halvings(resampling);
  const Scale scale = bilinear_scale(resampling, times);
  const Region place = bilinear_source(resampling, times);
  const Size end{place.x + place.width, place.y + place.height};
  const Size size = source_with_corner(resampling, times);
  const Room whole = reserve(source_, size.width, size.height);
  copy(view, whole.pixels + offset(place.x, place.y, whole.stride), whole.stride);
  if (size.width > end.width)
    for (int y = place.y; y < end.height; ++y)
      std::memcpy(whole.pixels + offset(end.width, y, whole.stride),
                  whole.pixels + offset(end.width - 1, y, whole.stride), 3);
  if (size.height > end.height)
    std::memcpy(whole.pixels + offset(0, end.height, whole.stride),
                whole.pixels + offset(0, end.height - 1, whole.stride), whole.stride);

  const Size made = made_size(size.width, size.height, scale);
  const Room resized = reserve(resized_, made.width, made.height);
  resize({whole.pixels, size.width, size.height, whole.stride}, resized.pixels, resized.stride,
         scale, cv::INTER_LINEAR);
  const Region& wanted = resampling.window;
  copy({resized.pixels + offset(wanted.x, wanted.y, resized.stride), wanted.width, wanted.height,
        resized.stride},
       window, stride);
}

}  // namespace millrace
