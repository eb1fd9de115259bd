// SPDX-License-Identifier: Apache-2.0
#include "crop_stage.h"

#include <millrace/crop_work.h>
#include <millrace/detail/crop_layout.h>

#include <algorithm>

namespace millrace {
namespace {

/// Scratch of a sample. A crop that needs more is made by a worker.
constexpr std::size_t sample_scratch = std::size_t{768} << 10U;
/// Samples that share the device at a time.
constexpr std::size_t most_samples = 64;

class CropStage final : public DeviceStage {
 public:
  CropStage(Size output, std::size_t packed) : output_(output), packed_(packed) {}

  const char* name() const override { return "crop"; }
  std::size_t scratch_bytes(std::size_t samples) const override {
    return std::min(samples, most_samples) * sample_scratch;
  }
  void launch(Stream& stream, const Samples& samples) const override {
    CropWork work;
    work.place_bytes =
        3 * static_cast<std::size_t>(output_.width) * static_cast<std::size_t>(output_.height);
    work.scratch = samples.scratch;
    work.scratch_stride = sample_scratch;
    work.workers = samples.workers;
    work.height = output_.height;
    work.width = output_.width;
    for (std::size_t first = 0; first < samples.count; first += most_samples) {
      work.places = samples.from + first * work.place_bytes;
      work.packed = reinterpret_cast<const std::uint8_t*>(samples.fields[packed_]) + first;
      work.images = reinterpret_cast<std::uint8_t*>(samples.to) + first * work.place_bytes;
      work.samples = std::min(samples.count - first, most_samples);
      stream.launch(work);
    }
  }

 private:
  const Size output_;
  const std::size_t packed_;
};

}  // namespace

std::shared_ptr<const DeviceStage> crop_stage(Size output, std::size_t packed) {
  return std::make_shared<const CropStage>(output, packed);
}

bool ImagePacker::takes(const ResamplePlan& plan) {
  const Region& window = plan.resampling.window;
  return !plan.padding_map.shown() && plan.resampling.turn == Turn{} &&
         window.width == plan.output.width && window.height == plan.output.height;
}

CropAxis ImagePacker::Axis::make(const ResampleAxis::Wanted& wanted) {
  axis.make(wanted);
  begins.clear();
  weights.clear();
  for (int pixel = 0; pixel < axis.count(); ++pixel) {
    begins.push_back(axis.begin(pixel));
    const std::span<const std::int32_t> of_pixel = axis.weights(pixel);
    weights.insert(weights.end(), of_pixel.begin(), of_pixel.end());
  }
  return {begins, weights, axis.taps()};
}

Status ImagePacker::pack(std::span<const std::byte> record, bool untrusted,
                         const ResamplePlan& plan, std::span<std::byte> place, bool& fits) {
  fits = false;
  if (Status opened = packer_.open(record); !opened.is_ok()) return opened;
  const Resampling& resampling = plan.resampling;
  const SourceBox box = resampling.box.value_or(SourceBox{
      0, 0, static_cast<float>(resampling.from.width), static_cast<float>(resampling.from.height)});
  const Region& window = resampling.window;
  Crop crop;
  crop.horizontal =
      horizontal_.make({resampling.from.width, box.left, box.right, resampling.to.width, window.x,
                        window.width, resampling.interpolation, resampling.mirrored});
  crop.vertical =
      vertical_.make({resampling.from.height, box.top, box.bottom, resampling.to.height, window.y,
                      window.height, resampling.interpolation, resampling.flipped});
  crop.region = {plan.box.x + horizontal_.axis.first(), plan.box.y + vertical_.axis.first(),
                 horizontal_.axis.needed(), vertical_.axis.needed()};
  crop.vertical_first = vertical_first(resampling);
  const auto skipped = static_cast<std::size_t>(
      reinterpret_cast<const std::byte*>(crop_at(place.data())) - place.data());
  if (place.size() <= skipped) return Status::ok();
  std::size_t bytes = 0;
  Status packed = packer_.pack(crop, sample_scratch, place.subspan(skipped), bytes);
  fits = bytes > 0 && (!untrusted || packer_.has_right_checksum());
  return packed;
}

}  // namespace millrace
