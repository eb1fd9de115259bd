// SPDX-License-Identifier: Apache-2.0
#include "dataset/tar/tar_names.h"

#include <glob.h>
#include <millrace/detail/json_text.h>
#include <millrace/error.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file_descriptor.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// As long as a list of shards may be.
constexpr std::size_t most_list_bytes = std::size_t{64} << 20;

bool has_wildcard(std::string_view name) { return name.find_first_of("*?[") != name.npos; }

/// What a pattern or a list stands for. A few ranges one behind the other make a short pattern
/// stand for many long names, so these are bounded in number and length.
class Names {
 public:
  /// Beyond the bounds `of` is at fault, with the error `code`.
  Names(const fs::path& of, ErrorCode code) : of_(of), code_(code) {}

  void add(std::string name) {
    letters_ += name.size();
    if (files_.size() == most_tars) refuse(std::to_string(most_tars) + " tars");
    if (letters_ > most_letters) refuse(std::to_string(most_letters >> 20) + " MiB of names");
    files_.push_back(std::move(name));
  }
  std::vector<std::string> take() { return std::move(files_); }

 private:
  static constexpr std::size_t most_letters = std::size_t{32} << 20;

  [[noreturn]] void refuse(const std::string& most) const {
    throw Error(code_, of_.string() + " stands for more than " + most);
  }

  fs::path of_;
  ErrorCode code_;
  std::vector<std::string> files_;
  std::size_t letters_ = 0;
};

/// "{000..012}" in a name.
struct BraceRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::size_t digits = 0;
};

std::optional<BraceRange> brace_range(std::string_view name) {
  const auto number = [](std::string_view digits) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [read, error] = std::from_chars(digits.data(), end, value);
    if (digits.empty() || error != std::errc() || read != end) return {};
    return value;
  };
  for (std::size_t open = name.find('{'); open != name.npos; open = name.find('{', open + 1)) {
    const std::size_t close = name.find('}', open);
    if (close == name.npos) return {};
    const std::string_view inside = name.substr(open + 1, close - open - 1);
    const std::size_t dots = inside.find("..");
    if (dots == inside.npos) continue;
    const auto first = number(inside.substr(0, dots));
    const auto last = number(inside.substr(dots + 2));
    if (first && last && *first <= *last)
      return BraceRange{open, close + 1, *first, *last, std::min<std::size_t>(dots, 20)};
  }
  return {};
}

void add_matches(const std::string& pattern, Names& names) {
  glob_t found{};
  const std::unique_ptr<glob_t, decltype(&globfree)> at_end(&found, globfree);
  // Passing over a folder that cannot be read would leave out its files.
  const auto ends = [](const char*, int error) { return names_no_file(error) ? 0 : 1; };
  const int result = glob(pattern.c_str(), GLOB_NOSORT, ends, &found);
  if (result == GLOB_NOMATCH) throw Error(ErrorCode::not_found, pattern + " matches no file");
  if (result != 0)
    throw Error(ErrorCode::io,
                pattern + " cannot be looked for: " + std::generic_category().message(errno));
  // By bytes: the order of records must not depend on the program's locale.
  std::vector<std::string> matches(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::ranges::sort(matches);
  for (std::string& match : matches) names.add(std::move(match));
}

/// Adds what a part of `pattern`, whose first ranges stand for one number each, stands for.
void expand(const std::string& part, const fs::path& pattern, Names& names) {
  const std::optional<BraceRange> range = brace_range(part);
  if (!range) return has_wildcard(part) ? add_matches(part, names) : names.add(part);
  if (range->last - range->first >= most_tars)
    throw Error(ErrorCode::invalid_argument,
                pattern.string() + " stands for more than " + std::to_string(most_tars) + " tars");
  for (std::uint64_t number = range->first; number <= range->last; ++number) {
    std::string digits = std::to_string(number);
    digits.insert(0, range->digits - std::min(range->digits, digits.size()), '0');
    expand(part.substr(0, range->begin) + digits + part.substr(range->end), pattern, names);
  }
}

}  // namespace

bool is_tar_pattern(const fs::path& name) {
  const std::string text = name.string();
  return text.size() < PATH_MAX && text.ends_with(".tar") &&
         (has_wildcard(text) || brace_range(text));
}

std::vector<std::string> expand_tar_pattern(const fs::path& name) {
  Names names(name, ErrorCode::invalid_argument);
  expand(name.string(), name, names);
  return names.take();
}

bool is_tar_list(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string begin = read_text(file, std::size_t{2} * PATH_MAX);
  if (!file.is_open() || file.bad())
    throw Error(ErrorCode::io,
                path.string() + " cannot be read: " + std::generic_category().message(errno));
  std::string_view line = begin;
  line.remove_prefix(std::min(line.find_first_not_of("\r\n"), line.size()));
  line = line.substr(0, line.find_first_of("\r\n"));
  return line.ends_with(".tar") && line.find('\0') == line.npos;
}

namespace {

/// Adds what a line of a list stands for. A range that is too long is the list's fault, and not the
/// caller's.
void add_line(const fs::path& name, const fs::path& list, Names& tars) {
  std::error_code ignored;
  try {
    if (!is_tar_pattern(name) || fs::exists(name, ignored))
      tars.add(name.string());
    else
      expand(name.string(), name, tars);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    throw Error(ErrorCode::corrupt, list.string() + ": " + error.what());
  }
}

}  // namespace

std::vector<std::string> read_tar_list(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text = read_text(file, most_list_bytes);
  if (!file.is_open() || file.bad())
    throw Error(ErrorCode::io,
                path.string() + " cannot be read: " + std::generic_category().message(errno));
  if (text.size() > most_list_bytes)
    throw Error(ErrorCode::corrupt, path.string() + " is longer than any list of tars");
  Names tars(path, ErrorCode::corrupt);
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (line.size() >= PATH_MAX)
      throw Error(ErrorCode::corrupt, path.string() + " has a line that is longer than any path");
    // The name may be absolute.
    add_line(path.parent_path() / fs::path(line), path, tars);
  }
  return tars.take();
}

}  // namespace millrace
