// SPDX-License-Identifier: Apache-2.0
// For the folders of millrace alone; it is not installed.
#pragma once

#include <millrace/detail/export.h>
#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What members of a WebDataset tar mean, for those who read tars in place and for those who pack
// them. Threads: all functions may be called from any thread at once.

namespace MILLRACE_API millrace {

/// The longest .cls or .json that is looked at for a label.
inline constexpr std::size_t max_label_text_bytes = std::size_t{1} << 20;

/// What the path of a member says: all up to the first dot of the file's name is the key of its
/// sample, what is behind that, in small letters, what it is to the sample. Without a dot it has no
/// extension.
struct MemberName {
  std::string_view key;
  std::string extension;
};
/// The key is a part of `path`.
MemberName parse_member_name(std::string_view path);

/// A member's path without "./" before it.
std::string_view without_here(std::string_view path);
/// Whether the file's name begins with a dot: such files are passed over.
bool is_hidden_member(std::string_view path);

/// Whether an extension, in small letters, is that of a sample's image.
bool is_image_extension(std::string_view extension);

/// A label, a number from -1 up; nullopt for any other text.
std::optional<std::int64_t> parse_label(std::string_view digits);

/// Reads the label of a sample that has a .cls: a number, with blanks around it. The reason of a
/// bad one is a clause for people: "the label in its .cls, "cat", is not a number from -1 up".
Status read_cls_label(std::string_view text, std::int64_t& label);
/// Reads the label of a sample without a .cls from its .json, an object: "label", or else "cls".
/// `label` stays empty if it has neither.
Status read_json_label(std::string_view text, std::optional<std::int64_t>& label);

/// Whether a name has braces that stand for several names, as in bash: "{000..012}", "{2..0}",
/// "{0..4..2}", "{a,b}".
bool has_braces(std::string_view name);
/// The names that a name with braces stands for, in their order. Throws `Error`
/// (`invalid_argument`) for more than 99,999 names, or 32 MiB of them.
std::vector<std::string> expand_braces(const std::filesystem::path& name);

}  // namespace millrace
