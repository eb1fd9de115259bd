// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataset/annotations/coco.h"
#include "dataset/pack_image.h"
#include "dataset/pack_listing.h"
#include "dataset/pack_run.h"
#include "dataset/pack_tar.h"

namespace millrace::cli {

class ListingHash;

/// What there is to pack: a folder of images, by a list or without one, with annotations or without
/// any, tars, or the records of a dataset.
class PackSource {
 public:
  /// Looks through all of it. The options' inputs are one folder, tars and patterns (glob(7)) of
  /// tars, or what `open_dataset` takes and is neither; OUT is passed over if it is a dataset, with
  /// its index. Throws `Error`: `invalid_argument` if OUT is among the inputs, or if annotations
  /// are given for anything else than a folder of images, `not_found` if these are not there, and
  /// as `list_folder`, `read_list`, `read_coco`, `list_tars` and `open_dataset` do.
  explicit PackSource(const PackOptions& options);

  const Listing& listing() const { return listing_; }
  /// For a person, with a hash of all that is listed.
  const std::string& identity() const { return identity_; }
  /// An image of the listing. Asked for in order, though not from the first on.
  UncheckedImage image(std::size_t item);
  bool has_images() const { return !dataset_ || has_images_; }
  /// What a dataset says of the fields that are kept.
  std::vector<FieldSpec> field_specs() const;
  /// What a person can find it by.
  std::string path(std::size_t item) const;
  /// The boxes' annotations; null if there are none.
  const CocoFile* coco() const { return coco_ ? &*coco_ : nullptr; }
  /// "file", or what else the listing counts.
  const char* noun() const { return dataset_ ? "record" : "file"; }

 private:
  // These return what a person calls it.
  std::string take_dataset(const PackOptions& options, ListingHash& hash);
  std::string take_folder(const PackOptions& options, ListingHash& hash);
  std::string take_tars(const PackOptions& options, ListingHash& hash);
  std::string take_masks(const PackOptions& options, ListingHash& hash);
  /// Throws `Error` as the constructor does.
  static std::shared_ptr<const Dataset> open(const std::string& input, const OpenOptions& how);
  UncheckedImage record(std::uint64_t index);
  /// Whether records of a dataset have the field when they are packed, or one that is made anew.
  bool is_packed(std::string_view field) const;

  std::filesystem::path folder_;
  std::filesystem::path masks_;
  std::optional<CocoFile> coco_;
  std::optional<TarImages> tars_;
  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<DatasetReader> reader_;
  /// The dataset's fields that each record keeps.
  std::vector<std::string> kept_;
  bool has_images_ = false;
  Listing listing_;
  std::string identity_;
};

/// Whether an input is a folder, and not an LMDB folder.
bool is_image_folder(const std::filesystem::path& input);
/// Whether a name has the wildcards of glob(7).
bool is_pattern(const std::string& name);

}  // namespace millrace::cli
