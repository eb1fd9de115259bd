// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>

// How others keep datasets in LMDB, for the table of `open_dataset`. A probe says whether what lies
// at `path`, an LMDB file or a folder with data.mdb, is of the flavour by some of its records, and
// the reason if it is not; it throws `Error` (`io`) if the file cannot be read. The openers throw
// as `open_dataset` does.

namespace millrace {

Status probe_caffe_datum(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_caffe_datum(const std::filesystem::path& path,
                                                const OpenOptions& options);

Status probe_caffe2_tensors(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_caffe2_tensors(const std::filesystem::path& path,
                                                   const OpenOptions& options);

Status probe_plain_images(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_plain_images(const std::filesystem::path& path,
                                                 const OpenOptions& options);

Status probe_tuples(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_tuples(const std::filesystem::path& path,
                                           const OpenOptions& options);

/// Text recognition: num-samples, image-000000001, label-000000001 ...
Status probe_ocr(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_ocr(const std::filesystem::path& path,
                                        const OpenOptions& options);

/// Named databases: of images, whose values are of any of the other flavours but the last, and of
/// labels.
Status probe_databases(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_databases(const std::filesystem::path& path,
                                              const OpenOptions& options);

}  // namespace millrace
