// SPDX-License-Identifier: Apache-2.0
#include "dataset/pack_listing.h"

#include <fmt/core.h>
#include <millrace/detail/json_text.h>
#include <millrace/error.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "console/text.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_unread(const fs::path& path, const std::error_code& error) {
  throw Error(ErrorCode::io, path.string() + " cannot be read: " + error.message());
}

/// Device and inode.
using FileId = std::pair<dev_t, ino_t>;

FileId id_of(const fs::path& folder) {
  struct stat found {};
  (void)stat(folder.c_str(), &found);  // Where that fails, reading the folder does.
  return {found.st_dev, found.st_ino};
}

class Walk {
 public:
  Walk(const fs::path& folder, const std::vector<fs::path>& without)
      : folder_(folder), without_(without) {}

  Listing run() {
    const Entries top = read_folder("");
    for (const std::string& name : top.folders) {
      const auto first = static_cast<std::ptrdiff_t>(listing_.images.size());
      walked_ = {{id_of(folder_), true}};
      walk(name, static_cast<std::int64_t>(listing_.classes.size()));
      std::ranges::sort(listing_.images.begin() + first, listing_.images.end(), {},
                        &ListedImage::path);
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
  struct Entries {
    std::vector<std::string> folders;
    std::vector<std::string> files;
  };

  void leave_out(const std::string& path, const std::string& reason) {
    listing_.left_out.push_back({path, reason});
  }

  /// Names in a folder, sorted; what is neither file nor folder is left out.
  Entries read_folder(const std::string& relative) {
    Entries entries;
    const fs::path here = relative.empty() ? folder_ : folder_ / relative;
    std::error_code error;
    fs::directory_iterator at(here, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (name.starts_with('.'))
        ++listing_.hidden;
      else
        sort_in(*at, name, (fs::path(relative) / name).string(), entries);
    }
    if (error) throw_unread(here, error);
    std::ranges::sort(entries.folders);
    std::ranges::sort(entries.files);
    return entries;
  }

  void sort_in(const fs::directory_entry& entry, const std::string& name,
               const std::string& relative, Entries& entries) {
    std::error_code error;
    const fs::file_status status = entry.status(error);
    if (fs::is_directory(status))
      entries.folders.push_back(name);
    else if (fs::is_regular_file(status)) {
      if (std::ranges::none_of(without_, [&](const fs::path& one) {
            return fs::equivalent(entry.path(), one, error);
          }))
        entries.files.push_back(name);
    } else if (fs::exists(status))
      leave_out(relative, "is neither file nor folder");
    else if (status.type() != fs::file_type::not_found && error.value() != ELOOP)
      throw_unread(entry.path(), error);
    else
      leave_out(relative, entry.is_symlink(error) ? "is a link that leads nowhere" : "is gone");
  }

  void walk(const std::string& relative, std::int64_t label) {
    const auto [here, is_new] = walked_.try_emplace(id_of(folder_ / relative), true);
    if (!is_new)
      return leave_out(relative, here->second ? "is a link back to a folder above it"
                                              : "is a folder of this class by another name");
    const Entries entries = read_folder(relative);
    for (const std::string& name : entries.files)
      listing_.images.push_back({.path = (fs::path(relative) / name).string(), .label = label});
    for (const std::string& name : entries.folders)
      walk((fs::path(relative) / name).string(), label);
    here->second = false;
  }

  fs::path folder_;
  const std::vector<fs::path>& without_;
  /// The folders of a class, and whether each is being walked, so that links in circles end.
  std::map<FileId, bool> walked_;
  Listing listing_;
};

ListedImage parse_line(std::string_view line, const std::string& where) {
  const auto refuse = [&](const std::string& what) {
    return Error(ErrorCode::invalid_argument, where + ": " + what);
  };
  const std::size_t comma = line.rfind(',');
  if (comma == std::string_view::npos)
    throw refuse(fmt::format("\"{}\" has no comma; a line is path,label", cut(printable(line))));
  const std::string_view path = line.substr(0, comma);
  const std::string_view digits = line.substr(comma + 1);
  if (path.empty()) throw refuse("the path before the comma is empty");
  if (path.starts_with('/'))
    throw refuse(fmt::format("path \"{}\" is not relative to the folder", cut(printable(path))));
  const std::optional<std::int64_t> label = parse_label(digits);
  if (!label)
    throw refuse(fmt::format("label \"{}\" is no number from -1 up", cut(printable(digits))));
  return {.path = std::string(path), .label = *label};
}

}  // namespace

std::optional<std::int64_t> parse_label(std::string_view digits) {
  const std::optional<std::int64_t> label = parse_number<std::int64_t>(digits);
  return label.value_or(-2) < -1 ? std::nullopt : label;
}

Listing list_folder(const fs::path& folder, const std::vector<fs::path>& without) {
  return Walk(folder, without).run();
}

Listing read_list(const fs::path& list) {
  if (fs::is_directory(list))
    throw Error(ErrorCode::io, list.string() + " is a folder; --list takes a file");
  std::ifstream file(list, std::ios::binary);
  if (!file)
    throw Error(ErrorCode::not_found, fmt::format("{} cannot be read: {}", list.string(),
                                                  std::generic_category().message(errno)));
  Listing listing;
  std::vector<char> buffer(PATH_MAX + 32);
  std::uint64_t number = 1;
  for (; file.getline(buffer.data(), static_cast<std::streamsize>(buffer.size())); ++number) {
    const auto read = static_cast<std::size_t>(file.gcount());
    std::string_view line(buffer.data(), file.eof() ? read : read - 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty())
      listing.images.push_back(parse_line(line, fmt::format("{}:{}", list.string(), number)));
  }
  if (file.bad()) throw Error(ErrorCode::io, list.string() + " cannot be read to its end");
  if (!file.eof())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}:{}: the line is longer than any path", list.string(), number));
  return listing;
}

}  // namespace millrace::cli
