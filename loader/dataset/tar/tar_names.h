// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace millrace {

/// As many tars as a name may stand for.
inline constexpr std::size_t most_tars = 99999;

/// Whether a name is a pattern of tars: it has wildcards (glob(7)) or braces (`has_braces`), and
/// ends with ".tar".
bool is_tar_pattern(const std::filesystem::path& name);
/// The files that a pattern stands for: those of braces in their order, of which each must be
/// there, and those that wildcards match sorted by name. They are strings, since as many paths take
/// much more memory. Throws `Error`: `not_found` where nothing matches; `invalid_argument` for more
/// than `most_tars`, or 32 MiB of names; `io`.
std::vector<std::string> expand_tar_pattern(const std::filesystem::path& name);

/// Whether a file's first line that is not empty ends with ".tar", as a list's does. Throws `Error`
/// (`io`).
bool is_tar_list(const std::filesystem::path& path);
/// The tars that a text file lists, a line each, which may be relative to the file's folder and may
/// be a pattern. Empty lines do not count. Throws `Error`: `corrupt` for what is no
/// such list, `io`, and `not_found` as `expand_tar_pattern` does.
std::vector<std::string> read_tar_list(const std::filesystem::path& path);

}  // namespace millrace
