// SPDX-License-Identifier: Apache-2.0
// Internal: used only by millrace's own folders and not installed.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/error.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Meaning of the members of a WebDataset tar, for readers in place and for packing. Threads: all
// functions may be called by several threads at the same time.

namespace MILLRACE_API millrace {

/// Maximal bytes of a .cls or .json that is read for a label.
inline constexpr std::size_t max_label_text_bytes = std::size_t{1} << 20;

/// Parts of a member's path. The key of its sample is everything up to the first dot of the file's
/// name. The extension is the rest in lower case. It determines the field of the sample that the
/// member fills. It is empty if the name has no dot.
struct MemberName {
  std::string_view key;
  std::string extension;
};
/// The returned key refers to the memory of `path`.
MemberName parse_member_name(std::string_view path);

/// Returns a member's path without a leading "./".
std::string_view without_here(std::string_view path);
/// Whether the file's name begins with a dot; such files are skipped.
bool is_hidden_member(std::string_view path);

/// Extensions of a sample's image, in lower case. `millrace pack --help` lists them.
inline constexpr std::array<std::string_view, 11> image_extensions = {
    "jpg", "jpeg", "png", "webp", "bmp", "gif", "pbm", "pgm", "ppm", "tif", "tiff"};
/// Whether an extension, in lower case, is one of these.
bool is_image_extension(std::string_view extension);

/// Parses a label, a number of -1 or more; nullopt for any other text.
std::optional<std::int64_t> parse_label(std::string_view digits);

/// Reads the label of a sample from its .cls: a number, possibly with blanks around it. For a bad
/// label, the `Status` has a reason that quotes the text.
Status read_cls_label(std::string_view text, std::int64_t& label);
/// Reads the label of a sample without a .cls from its .json, which must be an object: the value of
/// "label", or else of "cls". `label` stays empty if both are missing.
Status read_json_label(std::string_view text, std::optional<std::int64_t>& label);

/// Whether a name has the wildcards of glob(7).
bool has_wildcard(std::string_view name);
/// Returns the paths that match a name with wildcards, sorted bytewise. Throws `Error` (`io`) if a
/// folder cannot be read, unless `on_error` returns 0 for its errno.
std::vector<std::string> glob_matches(const std::string& name, int (*on_error)(const char*, int));

/// Whether a name contains braces that stand for several names, as in bash: "{000..012}", "{2..0}",
/// "{0..4..2}", "{a..e}", "{a,b}".
bool has_braces(std::string_view name);
/// Returns the names that a name with braces stands for, in their order. Throws `Error`
/// (`invalid_argument`) for more than 99,999 names, or 32 MiB of them.
std::vector<std::string> expand_braces(const std::filesystem::path& name);

}  // namespace millrace
