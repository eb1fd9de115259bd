// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataset/files/path_table.h"

namespace millrace {

/// Images as files, by number.
struct ListedImages {
  /// Relative to the folder.
  PathTable paths{};
  /// Of a folder with classes: their names, and the number of each one's first image.
  std::vector<std::string> classes{};
  std::vector<std::uint64_t> class_begins{};
  /// Of a list: a label for each.
  std::vector<std::int64_t> labels{};
  /// Sentences about hidden folders and images that are ignored.
  std::vector<std::string> warnings{};

  std::int64_t label(std::uint64_t number) const;
};

/// Whether there is a class folder or an image in a folder. Throws `Error` (`io`).
bool may_be_image_folder(const std::filesystem::path& folder);

/// The images of a folder of class folders, in the order and with the labels of torchvision's
/// `ImageFolder` (datasets/folder.py: find_classes, make_dataset): classes are the folders in it,
/// sorted by name, without hidden ones (`ignore_hidden`, a warning); each is walked to the
/// bottom, its folders in the order of their
/// paths, the files of each sorted by name, and those count whose name ends as an image's. Names
/// are compared bytewise, which is Python's order for names that are UTF-8. Links are followed, and
/// lead into no folder that is being walked, so that circles end; `ImageFolder` goes round in them
/// until the system refuses. A folder without folders in it is no `ImageFolder`: here its images
/// have label -1. Throws `Error`: `corrupt` if there is no image, or none in a class, as
/// `ImageFolder` does, and if links lead to the same folders more than 10,000 times; `io` if a
/// folder cannot be read.
ListedImages list_image_folder(const std::filesystem::path& folder);

}  // namespace millrace
