// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

// This room is the last one under dataset/, so that its table may name every format. The formats do
// not include each other, and dataset/ itself includes none of them.

namespace millrace {

/// One on-disk format of datasets. Its functions are thread-safe.
struct Format {
  /// The format's name in messages, in the singular.
  std::string_view name;
  /// Returns whether the existing file or folder at `path` is of this format, and the reason if it
  /// is not. Reads only its beginning. Throws `Error` (`io`) if that cannot be read.
  Status (*probe)(const std::filesystem::path& path);
  /// Opens a dataset that the probe accepted. Throws the same errors as `open_dataset`.
  std::shared_ptr<const Dataset> (*open)(const std::filesystem::path& path,
                                         const OpenOptions& options);
  /// Whether the format uses `OpenOptions::images` and `labels`. Opening any other format with them
  /// is an error.
  bool has_databases = false;
  /// Returns whether a name is of this format although no file has that name, such as a pattern.
  /// Null if the format has no such names.
  Status (*probe_name)(const std::filesystem::path& name) = nullptr;
};

/// Opens the dataset at `path`. Uses the format that `options.format` names, without a probe. If it
/// is not set, uses the first format whose probe accepts the path. Throws `Error`: `not_found` if
/// nothing exists there, `invalid_argument` for an unknown name, `corrupt` with the reasons of all
/// formats if none accepts it, and the errors of the format.
std::shared_ptr<const Dataset> open_by_format(std::span<const Format> formats,
                                              const std::filesystem::path& path,
                                              const OpenOptions& options);

}  // namespace millrace
