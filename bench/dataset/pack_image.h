// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/worker_pool.h>
#include <millrace/image_decoder.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataset/annotations/record_rest.h"

namespace millrace::cli {

/// The longest file that is packed.
inline constexpr std::uintmax_t max_image_bytes = std::uintmax_t{1} << 30;

/// An image's bytes, if they decode; else the reason.
struct CheckedImage {
  Status status = Status::ok();
  std::vector<std::byte> bytes;
  ImageHeader header;
  std::optional<RecordRest> rest;
};

/// An image that nobody has looked at: in a file, or its bytes where no file is named.
struct UncheckedImage {
  std::filesystem::path file = {};
  std::vector<std::byte> bytes = {};
  /// Of a record of a dataset; `status` is bad if that could not be read. Or of annotations.
  std::optional<RecordRest> rest = {};
  Status status = Status::ok();
  /// What annotations say of its size in pixels, as it is stored; 0 = nothing.
  std::int64_t width = 0;
  std::int64_t height = 0;
  /// The PNG file that becomes its field `mask`; empty = it has none.
  std::filesystem::path mask = {};

  /// In memory before it is read.
  std::size_t held_bytes() const;
};

/// A decoder for each worker of a runtime.
using Decoders = std::vector<std::unique_ptr<ImageDecoder>>;
std::shared_ptr<Decoders> make_decoders(std::size_t workers, const DecodeLimits& limits);

/// Bad is what was read and does not decode, a path without a regular file, and an image whose mask
/// or size is not as it must be. Throws `Error`
/// (`io`) where the system refused to read, or the file was changed meanwhile.
CheckedImage check_image(UncheckedImage image, ImageDecoder& decoder);

/// Reads and checks some images on a pool's workers. It holds all it needs, so that it may outlive
/// who submitted it.
class ReadImages final : public Job {
 public:
  ReadImages(std::vector<UncheckedImage> unchecked, std::shared_ptr<Decoders> decoders);

  std::size_t items() const override { return unchecked_.size(); }
  void run(std::size_t item, unsigned worker) override;

  /// Waits for an image and takes what became of it, once. Throws what its reading threw.
  CheckedImage take(std::size_t item) { return images_[item].get_future().get(); }

 private:
  std::vector<UncheckedImage> unchecked_;
  std::shared_ptr<Decoders> decoders_;
  std::vector<std::promise<CheckedImage>> images_;
};

}  // namespace millrace::cli
