// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace millrace {

/// Largest number of tars that a name may stand for.
inline constexpr std::size_t max_tars = 99999;

/// Returns whether a name is a pattern of tars: it ends with ".tar" and has wildcards (glob(7)) or
/// braces (`has_braces`).
bool is_tar_pattern(const std::filesystem::path& name);
/// Expands a pattern to file names. Names from braces keep their order, and each must exist. Names
/// that match wildcards are sorted. The names are strings, since `std::filesystem::path` takes much
/// more memory. Throws `Error`: `not_found` if nothing matches; `invalid_argument` for more than
/// `max_tars` names or 32 MiB of names; `io`.
std::vector<std::string> expand_tar_pattern(const std::filesystem::path& name);

/// Returns whether the first non-empty line of a file ends with ".tar". Throws `Error` (`io`).
bool is_tar_list(const std::filesystem::path& path);
/// Reads a list of tars from a text file with one name or pattern a line. Names may be relative to
/// the file's folder. Empty lines are ignored. Throws `Error`: `corrupt` if the file is not such a
/// list, `io`, and `not_found` as `expand_tar_pattern` does.
std::vector<std::string> read_tar_list(const std::filesystem::path& path);

}  // namespace millrace
