// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <millrace/dataset_writer.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "support/jpeg_samples.h"
#include "support/temporary_folder.h"

namespace millrace::testing {

/// Makes small different pictures, `width` + `widen` x n pixels wide.
inline std::vector<Bytes> pictures(std::size_t count, int width, int height, int widen = 0) {
  std::vector<Bytes> images;
  for (std::size_t n = 0; n < count; ++n)
    images.push_back(
        encode(noise(width + widen * static_cast<int>(n), height, static_cast<unsigned>(n)), {}));
  return images;
}

/// Writes a dataset of images with the labels 0, 1, 2, 0 ...
inline void write_pictures(const std::filesystem::path& path, std::span<const Bytes> images) {
  DatasetWriter writer(path);
  std::int64_t number = 0;
  for (const Bytes& image : images) {
    const std::int64_t label = number++ % 3;
    const RecordField fields[] = {{"image", image}, {"label", std::as_bytes(std::span(&label, 1))}};
    writer.append(fields);
  }
  writer.finish();
}

/// A test over a dataset of small pictures.
class OverPictures : public ::testing::Test {
 protected:
  explicit OverPictures(std::span<const Bytes> images) { write_pictures(dataset_, images); }

  const TemporaryFolder folder_;
  const std::filesystem::path dataset_ = folder_ / "pictures.lmdb";
};

}  // namespace millrace::testing
