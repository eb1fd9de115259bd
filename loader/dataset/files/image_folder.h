// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataset/files/path_table.h"

namespace millrace {

/// Image files, by number.
struct ListedImages {
  /// Paths relative to the folder.
  PathTable paths{};
  /// For a folder with classes: the class names, and the number of each class's first image.
  std::vector<std::string> classes{};
  std::vector<std::uint64_t> class_begins{};
  /// For a list: the label of each image.
  std::vector<std::int64_t> labels{};
  /// Sentences about hidden folders and images that are ignored.
  std::vector<std::string> warnings{};

  std::int64_t label(std::uint64_t number) const;
};

/// Returns whether a folder contains a class folder or an image. Throws `Error` (`io`).
bool may_be_image_folder(const std::filesystem::path& folder);

/// Lists the images of a folder of class folders, in the order and with the labels of torchvision's
/// `ImageFolder` (datasets/folder.py: find_classes, make_dataset).
/// - The classes are its subfolders, sorted by name. Hidden ones are ignored with a warning
///   (`ignore_hidden`).
/// - Each class is walked recursively: its folders in the order of their paths, the files of each
///   folder sorted by name. A file counts if its name has an image's extension.
/// - Names are compared bytewise, which is Python's order for UTF-8 names.
/// - Symbolic links are followed, except into a folder that is being walked. So cycles end here,
///   while `ImageFolder` follows them until the system refuses.
/// - `ImageFolder` refuses a folder without subfolders. Here its images have label -1.
///
/// Throws `Error`: `corrupt` if the folder or one of its classes has no image, as `ImageFolder`
/// does, and if links lead to the same folders more than 10,000 times; `io` if a folder cannot be
/// read.
ListedImages list_image_folder(const std::filesystem::path& folder);

}  // namespace millrace
