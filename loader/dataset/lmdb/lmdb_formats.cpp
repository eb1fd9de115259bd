// SPDX-License-Identifier: Apache-2.0
#include "dataset/lmdb/lmdb_formats.h"

#include "dataset/lmdb/foreign_file.h"

namespace millrace {
namespace {

/// Returns ok if all probed values of the main database have the schema.
template <std::unique_ptr<LmdbSchema> (*make)()>
Status look_for(const LmdbFile& file, const LmdbTree& main) {
  if (holds_databases(file, main)) return Status::bad("its main database holds others");
  const Survey found = survey(file, main, *make());
  return found.fits() ? Status::ok() : Status::bad(found.why_not());
}

}  // namespace

Status probe_caffe_datum(const std::filesystem::path& path) {
  return look_at_main(path, look_for<caffe_datum>);
}

std::shared_ptr<const Dataset> open_caffe_datum(const std::filesystem::path& path,
                                                const OpenOptions& options) {
  return ForeignFile(path, options).open(caffe_datum(), "caffe-datum");
}

Status probe_caffe2_tensors(const std::filesystem::path& path) {
  return look_at_main(path, look_for<caffe2_tensors>);
}

std::shared_ptr<const Dataset> open_caffe2_tensors(const std::filesystem::path& path,
                                                   const OpenOptions& options) {
  return ForeignFile(path, options).open(caffe2_tensors(), "caffe2-tensors");
}

Status probe_plain_images(const std::filesystem::path& path) {
  return look_at_main(path, look_for<plain_images>);
}

std::shared_ptr<const Dataset> open_plain_images(const std::filesystem::path& path,
                                                 const OpenOptions& options) {
  return ForeignFile(path, options).open(plain_images(), "images");
}

Status probe_tuples(const std::filesystem::path& path) {
  return look_at_main(path, look_for<tuples>);
}

std::shared_ptr<const Dataset> open_tuples(const std::filesystem::path& path,
                                           const OpenOptions& options) {
  return ForeignFile(path, options).open(tuples(), "tuples");
}

}  // namespace millrace
