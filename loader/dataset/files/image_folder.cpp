// SPDX-License-Identifier: Apache-2.0
#include "dataset/files/image_folder.h"

#include <millrace/detail/image_list.h>
#include <millrace/detail/json_text.h>
#include <millrace/error.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr unsigned max_repeats = 10'000;

FolderEntries read_all(const fs::path& folder) {
  return read_folder(folder, [](const std::string&) { return true; });
}

/// Walks the class folders of a dataset one by one.
class ClassWalk {
 public:
  explicit ClassWalk(const fs::path& folder) : folder_(folder) {}

  /// Appends the images of one class in order.
  void add(const std::string& name, PathTable& paths) {
    visits_.clear();
    visits_[id_of_file(folder_)].is_open = true;
    walk(name);
    std::ranges::sort(folders_, {}, &Images::folder);
    for (const Images& images : folders_)
      for (const std::string& file : images.files) paths.add(images.folder + "/" + file);
    folders_.clear();
  }

  std::size_t ignored_folders() const { return ignored_folders_; }

 private:
  struct Images {
    std::string folder;
    std::vector<std::string> files;
  };
  struct Visit {
    bool is_open = false;
    bool was_here = false;
  };

  void walk(const std::string& relative) {
    Visit& visit = visits_[id_of_file(folder_ / relative)];
    if (visit.is_open) return;
    if (visit.was_here && ++repeats_ > max_repeats)
      throw Error(ErrorCode::corrupt, folder_.string() +
                                          ": links in it lead to the same folders more than " +
                                          std::to_string(max_repeats) + " times");
    visit = {.is_open = true, .was_here = true};
    FolderEntries entries = read_all(folder_ / relative);
    ignored_folders_ += ignore_hidden(entries).folders;
    // An entry that cannot be opened is listed if it has the extension of an image. It becomes a
    // bad record.
    for (auto& [name, reason] : entries.others) entries.files.push_back(std::move(name));
    std::erase_if(entries.files,
                  [](const std::string& name) { return !has_image_extension(name); });
    std::ranges::sort(entries.files);
    if (!entries.files.empty()) folders_.push_back({relative, std::move(entries.files)});
    for (const std::string& name : entries.folders) walk(relative + "/" + name);
    visit.is_open = false;
  }

  const fs::path& folder_;
  std::map<FileId, Visit> visits_;
  std::vector<Images> folders_;
  std::size_t ignored_folders_ = 0;
  unsigned repeats_ = 0;
};

std::string with_count(std::size_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

}  // namespace

std::int64_t ListedImages::label(std::uint64_t number) const {
  if (!labels.empty()) return labels[static_cast<std::size_t>(number)];
  return std::ranges::upper_bound(class_begins, number) - class_begins.begin() - 1;
}

bool may_be_image_folder(const fs::path& folder) {
  FolderEntries top = read_all(folder);
  ignore_hidden(top);
  return !top.folders.empty() || std::ranges::any_of(top.files, has_image_extension);
}

ListedImages list_image_folder(const fs::path& folder) {
  ListedImages images;
  FolderEntries top = read_all(folder);
  std::size_t ignored = ignore_hidden(top).folders;
  std::erase_if(top.files, [](const std::string& name) { return !has_image_extension(name); });
  if (top.folders.empty())
    for (const std::string& name : top.files) images.paths.add(name);
  ClassWalk walk(folder);
  std::string empty;
  for (std::string& name : top.folders) {
    images.class_begins.push_back(images.paths.size());
    walk.add(name, images.paths);
    if (images.paths.size() == images.class_begins.back())
      empty += (empty.empty() ? "\"" : ", \"") + name + "\"";
    images.classes.push_back(std::move(name));
  }
  const std::string kinds =
      "images are files named .jpg, .jpeg, .png, .ppm, .bmp, .pgm, .tif, .tiff or .webp";
  if (images.paths.size() == 0)
    throw Error(ErrorCode::corrupt,
                folder.string() + " has no image in its class folders; " + kinds);
  if (!empty.empty())
    throw Error(ErrorCode::corrupt, folder.string() + " has class folders without an image: " +
                                        cut(empty) + "; " + kinds +
                                        ". Remove these folders, or pack the dataset, which "
                                        "counts empty classes");
  images.paths.shrink();
  ignored += walk.ignored_folders();
  if (ignored > 0)
    images.warnings.push_back(folder.string() + ": ignored " +
                              with_count(ignored, "hidden folder") + ".");
  if (!top.folders.empty() && !top.files.empty())
    images.warnings.push_back(folder.string() + ": ignored " +
                              with_count(top.files.size(), "image") +
                              " beside the class folders; move them into one of these.");
  return images;
}

}  // namespace millrace
