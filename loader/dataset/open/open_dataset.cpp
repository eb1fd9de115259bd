// SPDX-License-Identifier: Apache-2.0
#include "dataset/array/array_dataset.h"
#include "dataset/files/files_dataset.h"
#include "dataset/lmdb/lmdb_formats.h"
#include "dataset/open/format.h"
#include "dataset/packed/packed_dataset.h"
#include "dataset/tar/tar_dataset.h"

namespace millrace {
namespace {

/// The formats in the order of their probes: a more specific one comes before a more general one.
/// To add a format, add a row here and a file with its probe and opener.
constexpr Format formats[] = {
    {"npy file", probe_npy, open_npy},
    {"arrays", probe_arrays, open_arrays},
    {"list of shards", probe_shard_list, open_shard_list},
    {"packed file", probe_packed_file, open_packed_file},
    {"databases", probe_databases, open_databases, true},
    {"ocr", probe_ocr, open_ocr},
    {"images", probe_plain_images, open_plain_images, true},
    {"caffe-datum", probe_caffe_datum, open_caffe_datum, true},
    {"caffe2-tensors", probe_caffe2_tensors, open_caffe2_tensors, true},
    {"tuples", probe_tuples, open_tuples, true},
    {"tars", probe_tars, open_tars, false, probe_tar_pattern},
    {"image folder", probe_image_folder, open_image_folder},
    {"image list", probe_image_list, open_image_list},
};

}  // namespace

std::shared_ptr<const Dataset> open_dataset(const std::filesystem::path& path,
                                            const OpenOptions& options) {
  return open_by_format(formats, path, options);
}

}  // namespace millrace
