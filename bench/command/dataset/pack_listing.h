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
  /// Relative to the packed folder. For a tar: its name and the member's.
  std::string path;
  std::int64_t label = -1;
  /// For a tar: its number, and the member's number in it, from 0.
  std::size_t tar = 0;
  std::uint64_t member = 0;
};

/// A file that is left out, and why.
struct LeftOut {
  std::string path;
  std::string reason;
};

/// The images to pack, in the order of records.
struct Listing {
  std::vector<ListedImage> images;
  /// Names of the labels, from 0; empty if only numbers are known.
  std::vector<std::string> classes;
  std::vector<LeftOut> left_out;
  /// Numbers of files and folders with hidden names, which are skipped. For tars: of all hidden
  /// members.
  std::uint64_t hidden = 0;
  std::uint64_t hidden_folders = 0;
};

/// Lists the files of a folder. Its sub-folders are the classes, sorted bytewise by name; an empty
/// one counts. Each class is walked recursively: folders in the order of their paths, files sorted
/// by name, as `open_dataset` does. A file beside class folders is left out, since it has no class.
/// Without sub-folders all files get label -1. Links are followed, but no folder is walked twice
/// for a class. Hidden names (`ignore_hidden`) and the files `without` are skipped. Throws `Error`
/// (`io`) if the folder or an entry cannot be read.
Listing list_folder(const std::filesystem::path& folder,
                    const std::vector<std::filesystem::path>& without);

/// Lists the files of a text file (`read_image_list`).
Listing read_list(const std::filesystem::path& list);

}  // namespace millrace::cli
