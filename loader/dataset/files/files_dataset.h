// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>

// Images as files of their own, for the table of `open_dataset`: a folder of class folders
// (`list_image_folder`), and a text file with lines "path,label", whose paths are relative to its
// own folder (`read_image_list`). A probe says whether what lies at `path` is of the format, and
// the reason if it is not; it throws `Error` (`io`) if that cannot be read. The openers throw as
// `open_dataset` does.
//
// Records have the fields "image" and "label". A file is opened, read and closed for each: one that
// is gone, is empty, has more than 1 GiB or cannot be read is a bad record. The fingerprint is of
// the paths and labels alone.

namespace millrace {

Status probe_image_folder(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_image_folder(const std::filesystem::path& path,
                                                 const OpenOptions& options);

Status probe_image_list(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_image_list(const std::filesystem::path& path,
                                               const OpenOptions& options);

}  // namespace millrace
