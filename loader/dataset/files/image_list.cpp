// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/errno_text.h>
#include <millrace/detail/image_list.h>
#include <millrace/detail/interrupted.h>
#include <millrace/detail/json_text.h>
#include <millrace/detail/webdataset_sample.h>
#include <millrace/error.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <optional>
#include <system_error>

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> extensions = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                                        ".pgm", ".tif",  ".tiff", ".webp"};

/// U+FEFF in UTF-8, with which some editors begin a text.
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

[[noreturn]] void throw_unread(const fs::path& path, const std::error_code& error) {
  throw Error(ErrorCode::io, path.string() + " cannot be read: " + error.message());
}

void take_line(std::string_view line, const std::string& where, const TakeListed& take) {
  const auto refuse = [&](const std::string& what) {
    return Error(ErrorCode::corrupt, where + ": " + what);
  };
  const auto quoted = [](std::string_view text) { return "\"" + cut(std::string(text)) + "\""; };
  const std::size_t comma = line.rfind(',');
  if (comma == line.npos) throw refuse(quoted(line) + " has no comma; a line is path,label");
  const std::string_view path = line.substr(0, comma);
  const std::string_view digits = line.substr(comma + 1);
  if (path.empty()) throw refuse("the path before the comma is empty");
  if (path.starts_with('/'))
    throw refuse("path " + quoted(path) + " is not relative to the folder");
  const std::optional<std::int64_t> label = parse_label(digits);
  if (!label) throw refuse("label " + quoted(digits) + " is not a number from -1 up");
  take(path, *label);
}

void sort_in(const fs::directory_entry& entry, std::string name, FolderEntries& entries) {
  std::error_code error;
  const fs::file_status status = entry.status(error);
  if (fs::is_directory(status))
    entries.folders.push_back(std::move(name));
  else if (fs::is_regular_file(status))
    entries.files.push_back(std::move(name));
  else if (fs::exists(status))
    entries.others.emplace_back(std::move(name), "is neither file nor folder");
  else if (status.type() != fs::file_type::not_found && error.value() != ELOOP)
    throw_unread(entry.path(), error);
  else
    entries.others.emplace_back(
        std::move(name), entry.is_symlink(error) ? "is a link that leads nowhere" : "is gone");
}

bool is_hidden(std::string_view name) { return name.starts_with('.'); }

}  // namespace

bool has_image_extension(std::string_view name) {
  const auto ends_with = [name](std::string_view extension) {
    if (name.size() < extension.size()) return false;
    return std::ranges::equal(
        name.substr(name.size() - extension.size()), extension, [](char letter, char small) {
          return letter == small || (letter >= 'A' && letter <= 'Z' && letter - 'A' + 'a' == small);
        });
  };
  return std::ranges::any_of(extensions, ends_with);
}

IgnoredNames ignore_hidden(FolderEntries& entries) {
  IgnoredNames ignored;
  ignored.folders = std::erase_if(entries.folders, [](const std::string& name) {
    return is_hidden(name) || name == "lost+found";
  });
  ignored.files = std::erase_if(entries.files, [](const std::string& name) {
    return name.starts_with("._") || (is_hidden(name) && !has_image_extension(name));
  });
  ignored.files +=
      std::erase_if(entries.others, [](const auto& other) { return is_hidden(other.first); });
  return ignored;
}

void read_image_list(const fs::path& list, const TakeListed& take) {
  if (fs::is_directory(list))
    throw Error(ErrorCode::io, list.string() + " is a folder; a list of files is a file");
  auto file = open_stream<std::ifstream>(list, std::ios::binary);
  if (!file)
    throw Error(ErrorCode::not_found, list.string() + " cannot be read: " + errno_text(errno));
  std::vector<char> buffer(PATH_MAX + 32);
  std::uint64_t number = 1;
  const auto where = [&] { return list.string() + ":" + std::to_string(number); };
  for (; file.getline(buffer.data(), static_cast<std::streamsize>(buffer.size())); ++number) {
    const auto read = static_cast<std::size_t>(file.gcount());
    std::string_view line(buffer.data(), file.eof() ? read : read - 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1 && line.starts_with(byte_order_mark))
      line.remove_prefix(byte_order_mark.size());
    if (!line.empty()) take_line(line, where(), take);
  }
  if (file.bad()) throw Error(ErrorCode::io, list.string() + " cannot be read to its end");
  if (!file.eof()) throw Error(ErrorCode::corrupt, where() + ": the line is longer than any path");
}

FileId id_of_file(const fs::path& path) {
  struct stat found {};
  (void)stat(path.c_str(), &found);  // If this fails, reading the folder fails too.
  return {found.st_dev, found.st_ino};
}

FolderEntries read_folder(const fs::path& folder,
                          const std::function<bool(const std::string& name)>& take) {
  FolderEntries entries;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error))
    if (std::string name = at->path().filename().string(); take(name))
      sort_in(*at, std::move(name), entries);
  if (error) throw_unread(folder, error);
  std::ranges::sort(entries.folders);
  std::ranges::sort(entries.files);
  return entries;
}

}  // namespace millrace
