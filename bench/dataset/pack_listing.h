// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace millrace::cli {

/// An image to pack.
struct ListedImage {
  /// Relative to the folder that is packed; in a tar, its name and the member's.
  std::string path;
  std::int64_t label = -1;
  /// In a tar: its number, and the member's in it, from 0.
  std::size_t tar = 0;
  std::uint64_t member = 0;
};

/// A file that is not packed, and why.
struct LeftOut {
  std::string path;
  std::string reason;
};

/// What there is to pack, in the order of the records.
struct Listing {
  std::vector<ListedImage> images;
  /// Names of the labels, from 0; empty if only numbers are known.
  std::vector<std::string> classes;
  std::vector<LeftOut> left_out;
  /// Files with hidden names, which are passed over; of tars all hidden members.
  std::uint64_t hidden = 0;
  std::uint64_t hidden_folders = 0;
};

/// The files of a folder. If it has folders in it these are the classes, sorted bytewise by name
/// (an empty one counts); each is walked to the bottom, its folders in the order of their
/// paths, the files of each sorted by name, as `open_dataset` has them. Hidden names are passed
/// over (`ignore_hidden`).
/// A file beside class folders is left out, since it has no class. Without folders in it all files
/// get label -1. Links are followed, but no folder is walked twice for a class. The files `without`
/// are passed over. Throws `Error` (`io`) if the folder or something in it cannot be read.
Listing list_folder(const std::filesystem::path& folder,
                    const std::vector<std::filesystem::path>& without);

/// The files that a text file lists (`read_image_list`).
Listing read_list(const std::filesystem::path& list);

}  // namespace millrace::cli
