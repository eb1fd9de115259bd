// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>

// Datasets of single image files: a folder of class folders (`list_image_folder`), and a text file
// with lines "path,label" (`read_image_list`). The list's paths are relative to its own folder.
// These functions are for the format table of `open_dataset`. A probe returns whether the existing
// file or folder at `path` is of the format, and the reason if it is not. It throws `Error` (`io`)
// if that cannot be read. The openers throw the same errors as `open_dataset`.
//
// Records have the fields "image" and "label". Each read of a record opens, reads and closes its
// file. A file that is missing, empty, unreadable or larger than 1 GiB is a bad record. The
// fingerprint covers the paths and labels alone, not the contents.

namespace millrace {

Status probe_image_folder(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_image_folder(const std::filesystem::path& path,
                                                 const OpenOptions& options);

Status probe_image_list(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_image_list(const std::filesystem::path& path,
                                               const OpenOptions& options);

}  // namespace millrace
