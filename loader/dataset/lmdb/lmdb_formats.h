// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <filesystem>
#include <memory>

// Other programs' datasets in LMDB, for the format table of `open_dataset`. A probe returns whether
// `path`, an LMDB file or a folder with data.mdb, has the schema, judged by a sample of its
// records, and the reason if it does not. It throws `Error` (`io`) if the file cannot be read. The
// openers throw the same errors as `open_dataset`.

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

/// Text recognition, with the keys num-samples, image-000000001, label-000000001 ...
Status probe_ocr(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_ocr(const std::filesystem::path& path,
                                        const OpenOptions& options);

/// Named databases: one of images, whose values have any of the other schemas except text
/// recognition, and one of labels.
Status probe_databases(const std::filesystem::path& path);
std::shared_ptr<const Dataset> open_databases(const std::filesystem::path& path,
                                              const OpenOptions& options);

}  // namespace millrace
