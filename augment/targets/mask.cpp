// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/mask_decoder.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "targets/placement.h"
#include "targets/target_worker.h"

namespace millrace {
namespace {

constexpr std::array<std::uint8_t, 8> png_signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

/// Returns the largest number that a mask of the dtype holds.
unsigned largest(DType dtype) { return dtype == DType::uint8 ? 255 : 65535; }

class MaskWorker final : public TargetWorker {
 public:
  MaskWorker(const MaskTarget& target, std::shared_ptr<DecodeBudget> budget)
      : target_(target), decoder_(std::move(budget)) {}

  Status read(std::span<const std::byte> bytes) override {
    bytes_ = bytes;
    return Status::ok();
  }

  Status place(Size stored, const ResamplePlan& plan) override {
    output_ = plan.output;
    places_.find(plan);
    made_.resize(static_cast<std::size_t>(output_.width) *
                 static_cast<std::size_t>(output_.height));
    if (bytes_.size() >= png_signature.size() &&
        std::memcmp(bytes_.data(), png_signature.data(), png_signature.size()) == 0) {
      const struct Close {
        MaskDecoder& decoder;
        ~Close() { decoder.close(); }
      } at_end{decoder_};
      MaskView view;
      if (Status decoded = decoder_.decode(bytes_, stored, view); !decoded.is_ok()) return decoded;
      return pick(stored, [&](std::size_t at) { return view.values[at]; });
    }
    const std::size_t pixels =
        static_cast<std::size_t>(stored.width) * static_cast<std::size_t>(stored.height);
    if (bytes_.size() != pixels * size_of(target_.dtype))
      return Status::bad("is not a PNG and has " + std::to_string(bytes_.size()) + " bytes; " +
                         to_string(target_.dtype) + " of " + std::to_string(stored.width) + " x " +
                         std::to_string(stored.height) + " pixels have " +
                         std::to_string(pixels * size_of(target_.dtype)));
    if (target_.dtype == DType::uint8)
      return pick(stored,
                  [&](std::size_t at) { return std::to_integer<std::uint16_t>(bytes_[at]); });
    return pick(stored, [&](std::size_t at) {
      std::uint16_t value = 0;
      std::memcpy(&value, &bytes_[2 * at], sizeof value);
      return value;
    });
  }

  void warp(const AffineMap& map) override {
    remake([&](const std::uint8_t* from, std::uint8_t* to) {
      millrace::warp(from, output_, map, Interpolation::nearest, fill(), to);
    });
  }
  void warp(const PerspectiveMap& map) override {
    remake([&](const std::uint8_t* from, std::uint8_t* to) {
      millrace::warp(from, output_, map, Interpolation::nearest, fill(), to);
    });
  }
  void rotate(double degrees) override {
    remake([&](const std::uint8_t* from, std::uint8_t* to) {
      millrace::rotate(from, output_, degrees, Interpolation::nearest, fill(), to);
    });
  }

  Status write(Sample& sample, std::size_t field, const Kept&) override {
    void* const to = sample[field].data;
    if (target_.dtype == DType::uint16)
      std::memcpy(to, made_.data(), made_.size() * sizeof(std::uint16_t));
    else
      std::ranges::transform(made_, static_cast<std::uint8_t*>(to),
                             [](std::uint16_t value) { return static_cast<std::uint8_t>(value); });
    return Status::ok();
  }

 private:
  /// Fills the output from the stored mask's values.
  template <typename ValueAt>
  Status pick(Size stored, const ValueAt& value_at) {
    std::size_t across = 1;
    auto down = static_cast<std::size_t>(stored.width);
    if (places_.transposed) std::swap(across, down);
    unsigned highest = 0;
    auto to = made_.begin();
    for (const int row : places_.rows)
      for (const int column : places_.columns) {
        unsigned value = static_cast<unsigned>(target_.fill);
        if (row >= 0 && column >= 0)
          value = value_at(static_cast<std::size_t>(row) * down +
                           static_cast<std::size_t>(column) * across);
        highest = std::max(highest, value);
        *to++ = static_cast<std::uint16_t>(value);
      }
    if (highest <= largest(target_.dtype)) return Status::ok();
    return Status::bad("has the number " + std::to_string(highest) +
                       ", and the recipe's \"dtype\" " + to_string(target_.dtype) +
                       " holds 255 at most");
  }

  /// Returns the value as a colour, so that the mask can be warped as an image.
  static std::array<std::uint8_t, 3> colour_of(unsigned value) {
    return {static_cast<std::uint8_t>(value & 255U), static_cast<std::uint8_t>(value >> 8U), 0};
  }
  Colour fill() const {
    const auto colour = colour_of(static_cast<unsigned>(target_.fill));
    return {colour[0], colour[1], colour[2]};
  }

  /// Replaces the mask by the result of `make(from, to)`. `from` is the mask as an RGB image.
  template <typename Make>
  void remake(const Make& make) {
    const std::size_t bytes = 3 * made_.size();
    images_.resize(2 * bytes);
    std::uint8_t* to = images_.data();
    for (const std::uint16_t value : made_) to = std::ranges::copy(colour_of(value), to).out;
    make(images_.data(), to);
    for (std::uint16_t& value : made_) {
      value = static_cast<std::uint16_t>(to[0] | to[1] << 8);
      to += 3;
    }
  }

  MaskTarget target_;
  MaskDecoder decoder_;
  /// The record's field.
  std::span<const std::byte> bytes_;
  Size output_{};
  NearestSources places_;
  std::vector<std::uint16_t> made_;
  std::vector<std::uint8_t> images_;
};

}  // namespace

std::unique_ptr<TargetWorker> make_mask_worker(const MaskTarget& target,
                                               std::shared_ptr<DecodeBudget> budget) {
  return std::make_unique<MaskWorker>(target, std::move(budget));
}

}  // namespace millrace
