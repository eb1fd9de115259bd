// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

// This room stands behind the rooms of all formats, so that its table may name each of them, while
// no format knows of the others and the seam in dataset/ knows of none.

namespace millrace {

/// A way in which datasets lie on disk. Its functions may be called from any thread at once.
struct Format {
  /// What a person calls it, in the singular.
  std::string_view name;
  /// Whether what lies at `path`, which exists, is of this format, and the reason if it is not. It
  /// reads no more than a beginning. Throws `Error` (`io`) if that cannot be read.
  Status (*probe)(const std::filesystem::path& path);
  /// Opens what the probe took. Throws as `open_dataset` does.
  std::shared_ptr<const Dataset> (*open)(const std::filesystem::path& path,
                                         const OpenOptions& options);
  /// Whether it has a use for `OpenOptions::images` and `labels`; else it is not opened with them.
  bool has_databases = false;
  /// Whether a name at which nothing lies is of this format all the same: a pattern, say. Null if
  /// none is.
  Status (*probe_name)(const std::filesystem::path& name) = nullptr;
};

/// Opens the dataset at `path` by the format that `options.format` names, without a probe, or else
/// by the first of the formats that takes it. Throws `Error`: `not_found` if there is nothing,
/// `invalid_argument` for an unknown name, `corrupt` with the reasons of all formats if none takes
/// it, and what its format throws.
std::shared_ptr<const Dataset> open_by_format(std::span<const Format> formats,
                                              const std::filesystem::path& path,
                                              const OpenOptions& options);

}  // namespace millrace
