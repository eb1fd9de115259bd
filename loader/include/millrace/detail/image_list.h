// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
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

// Text lists and folders of image files, for packing and for datasets that read the files in place.
// Threads: all functions may be called by several threads at the same time.

namespace MILLRACE_API millrace {

/// Called for each line of a list. `path` is relative and not empty; `label` is -1 or more.
using TakeListed = std::function<void(std::string_view path, std::int64_t label)>;

/// Reads a text file that lists images, in its order. A line is a relative path, a comma (the last
/// one of the line) and the label. Empty lines are skipped, and so is a UTF-8 byte order mark at
/// the beginning. Throws `Error` (`not_found`, `corrupt` with the line's number, `io`), and any
/// exception of `take`.
void read_image_list(const std::filesystem::path& list, const TakeListed& take);

/// Device and inode, which identify a folder that has several names.
using FileId = std::pair<dev_t, ino_t>;
FileId id_of_file(const std::filesystem::path& path);

/// Entries of a folder by name, each kind sorted bytewise.
struct FolderEntries {
  /// Folders, including symbolic links to folders.
  std::vector<std::string> folders{};
  std::vector<std::string> files{};
  /// Other entries with the reason why they are not used: broken symbolic links, pipes, sockets.
  std::vector<std::pair<std::string, std::string>> others{};
};
/// Reads one folder. Names for which `take` returns false are skipped. Throws `Error` (`io`) if the
/// folder or an entry cannot be read.
FolderEntries read_folder(const std::filesystem::path& folder,
                          const std::function<bool(const std::string& name)>& take);

/// Numbers of hidden folders and files that are ignored in a folder of images.
struct IgnoredNames {
  std::size_t folders = 0;
  std::size_t files = 0;
};
/// Removes hidden names from a folder's entries, by the rule for all folders of images. Hidden
/// folders are those whose name begins with a dot, and `lost+found`. Hidden files are those whose
/// name begins with a dot, except image files (`has_image_extension`). Image files that begin with
/// "._" (made by macOS) are hidden, too.
IgnoredNames ignore_hidden(FolderEntries& entries);

/// Whether a name has an extension of torchvision's IMG_EXTENSIONS, in lower or upper case.
bool has_image_extension(std::string_view name);

}  // namespace millrace
