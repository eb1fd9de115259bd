// SPDX-License-Identifier: Apache-2.0
//
// A run over made-up images that are converted on the device, and the expected content of its
// batches.
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_dataset.h"
#include "support/fake_transform.h"

namespace millrace::testing {

/// "image" follows from record and random draw, "label" is the record's, "flip" a bit of the draw.
struct GpuRun {
  std::shared_ptr<MemoryDataset> dataset = std::make_shared<MemoryDataset>(44);
  std::size_t height = 6;
  std::size_t width = 16;
  std::size_t channels = 3;
  std::shared_ptr<Runtime> runtime = make_runtime({.workers = 2});
  PipelineOptions options{
      .batch_size = 8, .seed = 11, .epochs = 1, .runtime = runtime, .slots = {.micro_batches = 2}};

  /// With `float32` for ImageNet.
  static Conversion conversion(DType dtype = DType::float32,
                               ImageLayout layout = ImageLayout::nchw) {
    Conversion result{.dtype = dtype, .layout = layout};
    if (dtype == DType::uint8) return result;
    result.mean = Conversion::imagenet_mean;
    result.std = Conversion::imagenet_std;
    return result;
  }

  Pipeline on(std::shared_ptr<Device> device) const {
    return Pipeline(dataset, transform(options.conversion.has_value()), std::move(device), options);
  }

  /// The expected images of each batch of a run on a device: made on the host, without flips, and
  /// converted there.
  std::vector<std::vector<std::uint8_t>> expected() const {
    PipelineOptions plain = options;
    plain.conversion.reset();
    plain.debug.forbid_blocking_calls = false;
    Pipeline pipeline(dataset, transform(false), std::make_shared<HostDevice>(), plain);
    std::vector<std::vector<std::uint8_t>> batches;
    while (const Batch batch = pipeline.next()) batches.push_back(converted(batch));
    return batches;
  }

 private:
  std::shared_ptr<const Transform> transform(bool device_flips) const {
    FieldSpec flip{"flip", DType::uint8, {}};
    if (device_flips) flip.flipped_image = "image";
    SampleSpec spec(
        {{"image", DType::uint8, {height, width, channels}}, {"label", DType::int64, {}}, flip});
    return std::make_shared<FunctionTransform>(
        std::move(spec), [](const Record& record, Random& random, Sample& sample) {
          const std::uint64_t draw = random.bits64();
          const auto image = sample["image"].as<std::uint8_t>();
          for (std::size_t place = 0; place < image.size(); ++place)
            image[place] =
                static_cast<std::uint8_t>(StampTransform::pixel(record.index(), draw, place));
          sample["label"].as<std::int64_t>()[0] = record.integer("label");
          sample["flip"].as<std::uint8_t>()[0] = static_cast<std::uint8_t>(draw & 1U);
          return Status::ok();
        });
  }

  std::vector<std::uint8_t> converted(const Batch& batch) const {
    const Tensor images = batch.images();
    const auto pixels = images.as<std::uint8_t>();
    if (!options.conversion) return {pixels.begin(), pixels.end()};
    const Conversion& conversion = *options.conversion;
    std::vector<std::uint32_t> aligned(images.shape.elements());
    ConversionWork{.source = pixels.data(),
                   .destination = aligned.data(),
                   .flips = batch["flip"].as<std::uint8_t>().data(),
                   .samples = batch.size(),
                   .height = height,
                   .width = width,
                   .channels = channels,
                   .dtype = conversion.dtype,
                   .layout = conversion.layout,
                   .mean = conversion.mean,
                   .std = conversion.std}
        .run_on_host();
    std::vector<std::uint8_t> bytes(images.shape.elements() * size_of(conversion.dtype));
    std::memcpy(bytes.data(), aligned.data(), bytes.size());
    return bytes;
  }
};

}  // namespace millrace::testing
