// SPDX-License-Identifier: Apache-2.0
// For the folders of millrace alone; it is not installed.
#pragma once

#include <millrace/detail/export.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Images as files: what a text lists, and what lies in a folder; for those who read such files in
// place and for those who pack them. Threads: all functions may be called from any thread at once.

namespace MILLRACE_API millrace {

/// A line of a list: `path` is relative and not empty, `label` a number from -1 up.
using TakeListed = std::function<void(std::string_view path, std::int64_t label)>;

/// The files that a text file lists, in its order: a line is a path relative to a folder, a comma
/// (its last one) and the label. Empty lines do not count. Throws `Error` (`not_found`,
/// `corrupt` with the line's number, `io`), and what `take` throws.
void read_image_list(const std::filesystem::path& list, const TakeListed& take);

/// Device and inode: what tells folders apart that have several names.
using FileId = std::pair<dev_t, ino_t>;
FileId id_of_file(const std::filesystem::path& path);

/// What lies in a folder, by name, each kind sorted bytewise.
struct FolderEntries {
  /// A link to a folder is one.
  std::vector<std::string> folders{};
  std::vector<std::string> files{};
  /// What is neither, and why: links that lead nowhere, pipes, sockets.
  std::vector<std::pair<std::string, std::string>> others{};
};
/// Reads one folder. Names for which `take` is false are passed over. Throws `Error` (`io`) if the
/// folder or something in it cannot be read.
FolderEntries read_folder(const std::filesystem::path& folder,
                          const std::function<bool(const std::string& name)>& take);

/// Hidden names that a folder of images does not count.
struct IgnoredNames {
  std::size_t folders = 0;
  std::size_t files = 0;
};
/// Removes hidden names from a folder's entries, by the rule for all folders of images. Hidden
/// folders are those whose name begins with a dot, and `lost+found`. Hidden files begin with a dot;
/// they stay if they have an image's name, except those that begin with "._", which macOS makes.
IgnoredNames ignore_hidden(FolderEntries& entries);

/// Whether a name ends as torchvision's IMG_EXTENSIONS do, in small or capital letters.
bool has_image_extension(std::string_view name);

}  // namespace millrace
