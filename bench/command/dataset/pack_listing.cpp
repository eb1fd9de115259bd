// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/pack_listing.h"

#include <millrace/detail/image_list.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

std::pair<std::string_view, std::string_view> folder_and_name(const ListedImage& image) {
  const std::string_view path = image.path;
  const std::size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

class Walk {
 public:
  Walk(const fs::path& folder, const std::vector<fs::path>& without) : folder_(folder) {
    for (const fs::path& one : without) without_.insert(id_of_file(one));
    without_.erase(FileId());  // `id_of_file` returns this id for a missing file
  }

  Listing run() {
    const FolderEntries top = read_folder("");
    for (const std::string& name : top.folders) {
      const auto first = static_cast<std::ptrdiff_t>(listing_.images.size());
      walked_ = {{id_of_file(folder_), true}};
      walk(name, static_cast<std::int64_t>(listing_.classes.size()));
      std::ranges::sort(listing_.images.begin() + first, listing_.images.end(), {},
                        folder_and_name);
      listing_.classes.push_back(name);
    }
    for (const std::string& name : top.files) {
      if (top.folders.empty())
        listing_.images.push_back({.path = name});
      else
        leave_out(name, "lies beside the class folders, so it has no class");
    }
    std::ranges::sort(listing_.left_out, {}, &LeftOut::path);
    return std::move(listing_);
  }

 private:
  void leave_out(const std::string& path, const std::string& reason) {
    listing_.left_out.push_back({path, reason});
  }

  /// Reads a folder. Entries that are neither a file nor a folder are left out.
  FolderEntries read_folder(const std::string& relative) {
    const fs::path here = relative.empty() ? folder_ : folder_ / relative;
    FolderEntries entries = millrace::read_folder(here, [](const std::string&) { return true; });
    const IgnoredNames ignored = ignore_hidden(entries);
    listing_.hidden += ignored.files;
    listing_.hidden_folders += ignored.folders;
    for (const auto& [name, reason] : entries.others)
      leave_out((fs::path(relative) / name).string(), reason);
    if (!without_.empty())
      std::erase_if(entries.files, [&](const std::string& name) {
        return without_.contains(id_of_file(here / name));
      });
    return entries;
  }

  void walk(const std::string& relative, std::int64_t label) {
    const auto [here, is_new] = walked_.try_emplace(id_of_file(folder_ / relative), true);
    if (!is_new)
      return leave_out(relative, here->second ? "is a link back to a folder above it"
                                              : "is a folder of this class by another name");
    const FolderEntries entries = read_folder(relative);
    for (const std::string& name : entries.files)
      listing_.images.push_back({.path = (fs::path(relative) / name).string(), .label = label});
    for (const std::string& name : entries.folders)
      walk((fs::path(relative) / name).string(), label);
    here->second = false;
  }

  fs::path folder_;
  std::set<FileId> without_;
  /// Visited folders of a class. The value is true while the folder is being walked, which detects
  /// cyclic links.
  std::map<FileId, bool> walked_;
  Listing listing_;
};

}  // namespace

Listing list_folder(const fs::path& folder, const std::vector<fs::path>& without) {
  return Walk(folder, without).run();
}

Listing read_list(const fs::path& list) {
  Listing listing;
  read_image_list(list, [&](std::string_view path, std::int64_t label) {
    listing.images.push_back({.path = std::string(path), .label = label});
  });
  return listing;
}

}  // namespace millrace::cli
