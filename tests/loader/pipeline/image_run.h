// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/detail/plain_conversion.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_dataset.h"
#include "support/fake_transform.h"

namespace millrace::testing {

/// A run of small images with odd extents that may be converted: fields "label", "image", "flip"
/// and "boxes", which varies in length.
struct ImageRun {
  static constexpr std::size_t height = 5;
  static constexpr std::size_t width = 7;

  explicit ImageRun(std::uint64_t records, std::size_t channels = 3)
      : channels(channels), dataset(std::make_shared<MemoryDataset>(records)) {
    options.batch_size = 8;
    options.seed = 11;
    options.epochs = 1;
  }

  std::size_t channels;
  /// Whether the spec declares "flip" to be the flips of "image".
  bool flips = false;
  std::shared_ptr<MemoryDataset> dataset;
  std::shared_ptr<Device> device = std::make_shared<HostDevice>();
  PipelineOptions options;

  std::shared_ptr<FunctionTransform> transform() const {
    SampleSpec spec({{"label", DType::int64, {}},
                     {"image", DType::uint8, {height, width, channels}},
                     {.name = "flip",
                      .dtype = DType::uint8,
                      .shape = {},
                      .flipped_image = flips ? "image" : ""},
                     {"boxes", DType::float32, {3, 2}, true}});
    return std::make_shared<FunctionTransform>(
        std::move(spec), [](const Record& record, Random& random, Sample& sample) {
          const std::uint64_t draw = random.bits64();
          sample["label"].as<std::int64_t>()[0] = record.integer("label");
          const auto image = sample["image"].as<std::uint8_t>();
          for (std::size_t place = 0; place < image.size(); ++place)
            image[place] =
                static_cast<std::uint8_t>(StampTransform::pixel(record.index(), draw, place));
          sample["flip"].as<std::uint8_t>()[0] =
              static_cast<std::uint8_t>(draw % 3);  // any value but 0 is a flip
          std::ranges::fill(sample["boxes"].as<float>(), static_cast<float>(record.index()));
          sample.set_length(3, record.index() % 4);
          return Status::ok();
        });
  }
  Pipeline pipeline() const { return Pipeline(dataset, transform(), device, options); }
};

/// The bytes of every field of a batch that can be read on the host.
using BatchBytes = std::vector<std::pair<std::string, std::vector<std::byte>>>;

inline BatchBytes bytes_of(const Batch& batch) {
  BatchBytes result;
  for (const char* name : {"label", "image", "flip", "boxes", "boxes.length", "index", "valid"}) {
    const Tensor tensor = batch[name];
    const auto* data = static_cast<const std::byte*>(tensor.data);
    result.emplace_back(name, std::vector<std::byte>(data, data + tensor.bytes()));
  }
  return result;
}

/// Returns a batch's bytes after the plain conversion.
inline BatchBytes converted(BatchBytes batch, const Conversion& conversion, std::size_t channels,
                            bool flips) {
  const std::vector<std::byte> images = batch[1].second;
  std::vector<std::byte> result(images.size() * size_of(conversion.dtype));
  convert_plainly(
      {.source = reinterpret_cast<const std::uint8_t*>(images.data()),
       .destination = result.data(),
       .flips = flips ? reinterpret_cast<const std::uint8_t*>(batch[2].second.data()) : nullptr,
       .samples = images.size() / (ImageRun::height * ImageRun::width * channels),
       .height = ImageRun::height,
       .width = ImageRun::width,
       .channels = channels,
       .dtype = conversion.dtype,
       .layout = conversion.layout,
       .mean = conversion.mean,
       .std = conversion.std});
  batch[1].second = std::move(result);
  return batch;
}

/// All batches of the run as they come to the host.
inline std::vector<BatchBytes> all_bytes(Pipeline pipeline) {
  std::vector<BatchBytes> result;
  while (const Batch batch = pipeline.next()) result.push_back(bytes_of(batch));
  return result;
}

/// Expected batches of the run: those of a run without conversion, converted on the host.
inline std::vector<BatchBytes> expected_bytes(ImageRun run) {
  const std::optional<Conversion> conversion = std::exchange(run.options.conversion, std::nullopt);
  const bool flips = std::exchange(run.flips, false);
  run.device = std::make_shared<HostDevice>();
  std::vector<BatchBytes> result = all_bytes(run.pipeline());
  for (BatchBytes& batch : result)
    if (conversion) batch = converted(std::move(batch), *conversion, run.channels, flips);
  return result;
}

}  // namespace millrace::testing
