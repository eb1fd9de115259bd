// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "dataset/pack_listing.h"

struct archive;

namespace millrace::cli {

/// The samples of WebDataset tars (also compressed ones), in the order of their members: members
/// whose paths are the same up to the first dot of the file's name are a sample, and lie together.
/// It has one image (`is_image_extension`) and a label: .cls, a decimal number, or else "label"
/// or "cls" of a .json. What is no such sample is left out with the reason, and so is an image with
/// which all of a tar are more than 64 MiB and `max_expansion` times the bytes of the tar so far:
/// it is sparse, or was compressed. There are no class names. Throws `Error`: `corrupt` for what is
/// no tar or was cut short, `io` for what the system refuses to read.
Listing list_tars(const std::vector<std::filesystem::path>& tars, std::uint64_t max_expansion);

struct ArchiveDeleter {
  void operator()(archive* opened) const;
};

/// Reads the images that `list_tars` found. For one thread.
class TarImages {
 public:
  explicit TarImages(std::vector<std::filesystem::path> tars) : tars_(std::move(tars)) {}

  /// The bytes of an image, which must lie behind that of the last call. Throws `Error`: `corrupt`
  /// if the tar is not what it was when it was listed, and `io`.
  std::vector<std::byte> read(const ListedImage& image);

 private:
  std::vector<std::filesystem::path> tars_;
  std::unique_ptr<archive, ArchiveDeleter> archive_;
  std::size_t tar_ = 0;
  std::uint64_t next_member_ = 0;
};

}  // namespace millrace::cli
