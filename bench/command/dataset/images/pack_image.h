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

#include "command/dataset/annotations/record_rest.h"
#include "command/dataset/images/image_recoder.h"

namespace millrace::cli {

/// Maximum size of a file to pack.
inline constexpr std::uintmax_t max_image_bytes = std::uintmax_t{1} << 30;

/// An image's bytes if it decodes; else `status` has the reason.
struct CheckedImage {
  Status status = Status::ok();
  std::vector<std::byte> bytes;
  ImageHeader header;
  std::optional<RecordRest> rest;
  /// Bytes of the image before it was stored as coefficients; 0 if it was not.
  std::size_t recoded_bytes = 0;
  /// Reason why an image that should become coefficients is kept as a JPEG.
  std::string reason_kept_as_jpeg;
};

/// An image to check: a file, or its bytes if `file` is empty.
struct UncheckedImage {
  std::filesystem::path file = {};
  std::vector<std::byte> bytes = {};
  /// Other fields from a dataset's record or from annotations. `status` is bad if a dataset's
  /// record could not be read.
  std::optional<RecordRest> rest = {};
  Status status = Status::ok();
  /// Size in pixels by the annotations, before EXIF orientation; 0 = unknown.
  std::int64_t width = 0;
  std::int64_t height = 0;
  /// PNG file for the field `mask`; empty = no mask.
  std::filesystem::path mask = {};

  /// Bytes in memory before the file is read.
  std::size_t held_bytes() const;
};

/// One decoder and one recoder for each worker of a runtime.
struct Decoders {
  std::vector<std::unique_ptr<ImageDecoder>> all;
  std::vector<std::unique_ptr<ImageRecoder>> recoders;
};
std::shared_ptr<Decoders> make_decoders(std::size_t workers, const DecodeLimits& limits,
                                        StoredForm form = StoredForm::unchanged);

/// Reads and decodes an image, and converts it to the form of `recoder` unless that is null. The
/// status is bad if the image does not decode, if the path is not a regular file, or if mask or
/// size do not match. Throws `Error` (`io`) if the system cannot read the file, or if the file
/// changes meanwhile.
CheckedImage check_image(UncheckedImage image, ImageDecoder& decoder,
                         ImageRecoder* recoder = nullptr);

/// Reads, checks and recodes some images on a pool's workers. It owns all its data, so that it may
/// outlive the caller.
class ReadImages final : public Job {
 public:
  ReadImages(std::vector<UncheckedImage> unchecked, std::shared_ptr<Decoders> decoders);

  std::size_t items() const override { return unchecked_.size(); }
  void run(std::size_t item, unsigned worker) override;

  /// Waits for an image; call it once for each. Rethrows the exceptions of reading it.
  CheckedImage take(std::size_t item) { return images_[item].get_future().get(); }

 private:
  std::vector<UncheckedImage> unchecked_;
  std::shared_ptr<Decoders> decoders_;
  std::vector<std::promise<CheckedImage>> images_;
};

}  // namespace millrace::cli
