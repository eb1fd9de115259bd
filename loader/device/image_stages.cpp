// SPDX-License-Identifier: Apache-2.0
#include "device/image_stages.h"

#include <millrace/mix_work.h>

#include <cstdint>

namespace millrace {
namespace {

/// Returns the samples' values of `field`; null if `field` is nullopt.
template <typename Value>
const Value* values_of(const DeviceStage::Samples& samples,
                       const std::optional<std::size_t>& field) {
  return field ? reinterpret_cast<const Value*>(samples.fields[*field]) : nullptr;
}

class MixStage final : public DeviceStage {
 public:
  MixStage(const ConversionWork& work, const ImageFields& fields)
      : fields_(fields),
        work_{.height = work.height, .width = work.width, .channels = work.channels} {}

  // The same kernel erases and mixes, so a batch with both has one stage.
  const char* name() const override {
    if (!fields_.mix_field) return "erase";
    return fields_.erase_field ? "erase+mix" : "mix";
  }
  std::size_t scratch_bytes(std::size_t) const override { return 0; }
  void launch(Stream& stream, const Samples& samples) const override {
    MixWork work = work_;
    work.images = reinterpret_cast<std::uint8_t*>(samples.to);
    work.flips = values_of<std::uint8_t>(samples, fields_.flip_field);
    work.erases = values_of<std::int32_t>(samples, fields_.erase_field);
    work.mixes = values_of<std::int32_t>(samples, fields_.mix_field);
    work.samples = samples.count;
    work.workers = samples.workers;
    stream.launch(work);
  }

 private:
  const ImageFields fields_;
  const MixWork work_;
};

class ConversionStage final : public DeviceStage {
 public:
  ConversionStage(const ConversionWork& work, const ImageFields& fields,
                  std::size_t images_per_sample)
      : fields_(fields), work_(work), images_per_sample_(images_per_sample) {}

  const char* name() const override { return "convert"; }
  std::size_t scratch_bytes(std::size_t) const override { return 0; }
  void launch(Stream& stream, const Samples& samples) const override {
    ConversionWork work = work_;
    work.source = reinterpret_cast<const std::uint8_t*>(samples.from);
    work.destination = samples.to;
    work.flips = values_of<std::uint8_t>(samples, fields_.flip_field);
    work.samples = samples.count * images_per_sample_;
    work.workers = samples.workers;
    stream.launch(work);
  }

 private:
  const ImageFields fields_;
  const ConversionWork work_;
  const std::size_t images_per_sample_;
};

}  // namespace

std::shared_ptr<const DeviceStage> mix_stage(const ConversionWork& work,
                                             const ImageFields& fields) {
  if (!fields.erase_field && !fields.mix_field) return nullptr;
  return std::make_shared<const MixStage>(work, fields);
}

std::shared_ptr<const DeviceStage> conversion_stage(const ConversionWork& work,
                                                    const ImageFields& fields,
                                                    std::size_t images_per_sample) {
  return std::make_shared<const ConversionStage>(work, fields, images_per_sample);
}

}  // namespace millrace
