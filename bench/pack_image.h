// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/jpeg_decoder.h>
#include <millrace/worker_pool.h>

#include <cstddef>
#include <filesystem>
#include <future>
#include <memory>
#include <vector>

namespace millrace::cli {

/// A file's bytes, if they are an image that decodes; else the reason.
struct CheckedImage {
  Status status = Status::ok();
  std::vector<std::byte> bytes;
  JpegHeader header;
};

CheckedImage read_image(const std::filesystem::path& path, JpegDecoder& decoder);

/// Reads some files on a pool's workers. It holds all it needs, so that it may outlive who submitted it.
class ReadImages final : public Job {
 public:
  /// With a decoder for each worker of the runtime.
  ReadImages(std::vector<std::filesystem::path> files, std::shared_ptr<std::vector<JpegDecoder>> decoders);

  std::size_t items() const override { return files_.size(); }
  void run(std::size_t item, unsigned worker) override;

  /// Waits for a file and takes what became of it, once. Throws what its reading threw.
  CheckedImage take(std::size_t item) { return images_[item].get_future().get(); }

 private:
  std::vector<std::filesystem::path> files_;
  std::shared_ptr<std::vector<JpegDecoder>> decoders_;
  std::vector<std::promise<CheckedImage>> images_;
};

}  // namespace millrace::cli
