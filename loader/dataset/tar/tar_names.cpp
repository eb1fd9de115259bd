// SPDX-License-Identifier: Apache-2.0
#include "dataset/tar/tar_names.h"

#include <glob.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/interrupted.h>
#include <millrace/detail/json_text.h>
#include <millrace/detail/webdataset_sample.h>
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

/// Largest size of a list of tars, the same as for an index of shards.
constexpr std::size_t max_list_bytes = std::size_t{64} << 20;

/// The names that a pattern or a list stands for. Number and total length are limited, since a
/// short pattern of a few ranges can stand for many long names.
class Names {
 public:
  /// If a limit is exceeded, `add` throws an `Error` that has `code` and names `of`.
  Names(const fs::path& of, ErrorCode code) : of_(of), code_(code) {}

  void add(std::string name) {
    letters_ += name.size();
    if (files_.size() == max_tars) refuse(std::to_string(max_tars) + " tars");
    if (letters_ > max_letters) refuse(std::to_string(max_letters >> 20) + " MiB of names");
    files_.push_back(std::move(name));
  }
  std::vector<std::string> take() { return std::move(files_); }

 private:
  static constexpr std::size_t max_letters = std::size_t{32} << 20;

  [[noreturn]] void refuse(const std::string& most) const {
    throw Error(code_, of_.string() + " stands for more than " + most);
  }

  fs::path of_;
  ErrorCode code_;
  std::vector<std::string> files_;
  std::size_t letters_ = 0;
};

std::optional<std::uint64_t> number_in(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [read, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || error != std::errc() || read != end) return {};
  return value;
}

/// A range between braces, "000..012", "12..0..2" or "a..e", with bash's meaning.
struct BraceRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t step = 1;
  /// Smallest number of digits, padded with zeros.
  std::size_t digits = 0;
  /// Whether the values are ASCII codes of letters.
  bool letters = false;

  std::uint64_t steps() const { return (std::max(first, last) - std::min(first, last)) / step; }
  std::string item(std::uint64_t at) const {
    const std::uint64_t value = first < last ? first + at * step : first - at * step;
    if (letters) return std::string(1, static_cast<char>(value));
    std::string text = std::to_string(value);
    return text.insert(0, digits - std::min(digits, text.size()), '0');
  }
};

/// Returns the code of a text that is one letter from `least` to `most`; nullopt for other texts.
std::optional<std::uint64_t> letter_in(std::string_view text, char least, char most) {
  if (text.size() != 1 || text[0] < least || text[0] > most) return {};
  return static_cast<std::uint64_t>(text[0]);
}

/// Parses a range. "a..Z" with letters of both cases is not a range here; bash would include the
/// characters between the cases.
std::optional<BraceRange> brace_range(std::string_view inside) {
  const std::size_t dots = inside.find("..");
  if (dots == inside.npos) return {};
  const std::string_view begin = inside.substr(0, dots);
  std::string_view end = inside.substr(dots + 2);
  std::string_view step = "1";
  if (const std::size_t more = end.find(".."); more != end.npos) {
    step = end.substr(more + 2);
    end = end.substr(0, more);
    // The direction follows from the range; the step's sign is ignored.
    if (step.starts_with('-')) step.remove_prefix(1);
  }
  const auto by = number_in(step);
  if (!by) return {};
  for (const auto& [least, most] : {std::pair('a', 'z'), std::pair('A', 'Z')})
    if (const auto first = letter_in(begin, least, most), last = letter_in(end, least, most);
        first && last)
      return BraceRange{*first, *last, std::max<std::uint64_t>(*by, 1), 0, true};
  const auto first = number_in(begin), last = number_in(end);
  if (!first || !last) return {};
  const auto is_padded = [](std::string_view text) { return text.size() > 1 && text[0] == '0'; };
  const std::size_t digits =
      is_padded(begin) || is_padded(end) ? std::max(begin.size(), end.size()) : 0;
  return BraceRange{*first, *last, std::max<std::uint64_t>(*by, 1),
                    std::min<std::size_t>(digits, 20)};
}

/// Braces that stand for several names, a range or alternatives. `end` is one past the closing
/// brace.
struct Braces {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::optional<BraceRange> range;
  std::vector<std::string> alternatives;
};

/// Returns the first braces that stand for several names. Takes time linear in the name's length.
std::optional<Braces> first_braces(std::string_view name) {
  struct Open {
    std::size_t at;
    std::vector<std::size_t> ends;
  };
  std::vector<Open> open;
  std::optional<Braces> first;
  for (std::size_t at = name.find_first_of("{,}"); at != name.npos;
       at = name.find_first_of("{,}", at + 1)) {
    if (name[at] == '{') {
      open.push_back({at, {}});
      continue;
    }
    if (open.empty()) continue;
    open.back().ends.push_back(at);
    if (name[at] == ',') continue;
    const Open closed = std::move(open.back());
    open.pop_back();
    if (first && first->begin < closed.at) continue;
    Braces found{closed.at, at + 1, {}, {}};
    if (closed.ends.size() == 1) {
      found.range = brace_range(name.substr(closed.at + 1, at - closed.at - 1));
      if (!found.range) continue;
    }
    std::size_t begin = closed.at + 1;
    for (const std::size_t end : closed.ends) {
      found.alternatives.emplace_back(name.substr(begin, end - begin));
      begin = end + 1;
    }
    first = std::move(found);
  }
  return first;
}

void add_matches(const std::string& pattern, Names& names) {
  // An unreadable folder is an error: skipping it would silently leave out its files.
  std::vector<std::string> matches =
      glob_matches(pattern, [](const char*, int error) { return names_no_file(error) ? 0 : 1; });
  if (matches.empty()) throw Error(ErrorCode::not_found, pattern + " matches no file");
  for (std::string& match : matches) names.add(std::move(match));
}

/// Appends the names that `part` stands for. `part` is `pattern` with some of its braces already
/// expanded.
void expand(const std::string& part, const fs::path& pattern, Names& names) {
  const std::optional<Braces> braces = first_braces(part);
  if (!braces) return names.add(part);
  const auto add = [&](const std::string& inside) {
    expand(part.substr(0, braces->begin) + inside + part.substr(braces->end), pattern, names);
  };
  if (!braces->range) {
    std::ranges::for_each(braces->alternatives, add);
    return;
  }
  const std::uint64_t steps = braces->range->steps();
  if (steps >= max_tars)
    throw Error(ErrorCode::invalid_argument,
                pattern.string() + " stands for more than " + std::to_string(max_tars) + " tars");
  for (std::uint64_t at = 0; at <= steps; ++at) add(braces->range->item(at));
}

}  // namespace

bool has_wildcard(std::string_view name) { return name.find_first_of("*?[") != name.npos; }

std::vector<std::string> glob_matches(const std::string& name, int (*on_error)(const char*, int)) {
  glob_t found{};
  const std::unique_ptr<glob_t, decltype(&globfree)> at_end(&found, globfree);
  const int result = glob(name.c_str(), GLOB_NOSORT, on_error, &found);
  if (result == GLOB_NOMATCH) return {};
  if (result != 0) throw Error(ErrorCode::io, name + " cannot be looked for: " + errno_text(errno));
  // Sorts by bytes, so the order of records does not depend on the program's locale.
  std::vector<std::string> matches(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::ranges::sort(matches);
  return matches;
}

bool has_braces(std::string_view name) {
  return name.size() < PATH_MAX && first_braces(name).has_value();
}

std::vector<std::string> expand_braces(const fs::path& name) {
  Names names(name, ErrorCode::invalid_argument);
  expand(name.string(), name, names);
  return names.take();
}

bool is_tar_pattern(const fs::path& name) {
  const std::string text = name.string();
  return text.size() < PATH_MAX && text.ends_with(".tar") &&
         (has_wildcard(text) || has_braces(text));
}

std::vector<std::string> expand_tar_pattern(const fs::path& name) {
  Names names(name, ErrorCode::invalid_argument);
  for (std::string& part : expand_braces(name))
    has_wildcard(part) ? add_matches(part, names) : names.add(std::move(part));
  return names.take();
}

bool is_tar_list(const fs::path& path) {
  auto file = open_stream<std::ifstream>(path, std::ios::binary);
  const std::string begin = read_text(file, std::size_t{2} * PATH_MAX);
  if (!file.is_open() || file.bad())
    throw Error(ErrorCode::io, path.string() + " cannot be read: " + errno_text(errno));
  std::string_view line = begin;
  line.remove_prefix(std::min(line.find_first_not_of("\r\n"), line.size()));
  line = line.substr(0, line.find_first_of("\r\n"));
  return line.ends_with(".tar") && line.find('\0') == line.npos;
}

namespace {

/// Appends the tars of one line of a list. A range that is too long is an error in the list
/// (`corrupt`), not of the caller (`invalid_argument`).
void add_line(const fs::path& name, const fs::path& list, Names& tars) {
  std::error_code ignored;
  try {
    if (!is_tar_pattern(name) || fs::exists(name, ignored))
      tars.add(name.string());
    else
      for (std::string& tar : expand_tar_pattern(name)) tars.add(std::move(tar));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    throw Error(ErrorCode::corrupt, list.string() + ": " + error.what());
  }
}

}  // namespace

std::vector<std::string> read_tar_list(const fs::path& path) {
  auto file = open_stream<std::ifstream>(path, std::ios::binary);
  const std::string text = read_text(file, max_list_bytes);
  if (!file.is_open() || file.bad())
    throw Error(ErrorCode::io, path.string() + " cannot be read: " + errno_text(errno));
  if (text.size() > max_list_bytes)
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
    // If the line is an absolute path, `/` returns it without the folder.
    add_line(path.parent_path() / fs::path(line), path, tars);
  }
  return tars.take();
}

}  // namespace millrace
