// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "command/dataset/pack_listing.h"

struct archive;

namespace millrace::cli {

/// Lists the samples of WebDataset tars, also compressed ones, in the order of their members. A
/// sample is the adjacent members whose paths are equal up to the first dot of the file name. It
/// has one image (`is_image_extension`) and a label: a decimal number in .cls, or "label" or "cls"
/// in a .json. Anything else is left out with the reason. An image is also left out if it would
/// bring the images of its tar above a limit: 64 MiB plus `max_expansion` times the bytes of the
/// tar read so far. Such images are sparse or compressed. Class names are not known. Throws
/// `Error`: `corrupt` for a file that is not a tar or is truncated, `io` if the system cannot read
/// it.
Listing list_tars(const std::vector<std::filesystem::path>& tars, std::uint64_t max_expansion);

struct ArchiveDeleter {
  void operator()(archive* opened) const;
};

/// Reads the images that `list_tars` found. Not thread-safe.
class TarImages {
 public:
  explicit TarImages(std::vector<std::filesystem::path> tars) : tars_(std::move(tars)) {}

  /// Returns the bytes of an image, which must follow the last call's image. Throws `Error`:
  /// `corrupt` if the tar has changed since it was listed, and `io`.
  std::vector<std::byte> read(const ListedImage& image);

 private:
  std::vector<std::filesystem::path> tars_;
  std::unique_ptr<archive, ArchiveDeleter> archive_;
  std::size_t tar_ = 0;
  std::uint64_t next_member_ = 0;
};

}  // namespace millrace::cli
