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

#include "command/dataset/annotations/coco.h"
#include "command/dataset/images/pack_image.h"
#include "command/dataset/pack_listing.h"
#include "command/dataset/pack_run.h"
#include "command/dataset/pack_tar.h"

namespace millrace::cli {

class ListingHash;

/// The input of a pack: a folder of images, with or without a list and annotations, or tars, or a
/// dataset.
class PackSource {
 public:
  /// Lists all images. The inputs are one folder; or tars and patterns (glob(7)) of tars; or any
  /// other dataset that `open_dataset` opens. OUT is skipped if it is a dataset, and so is its
  /// index. Throws `Error`: `invalid_argument` if OUT is among the inputs, or if annotations are
  /// given without a folder of images; `not_found` if annotations do not exist. Also throws the
  /// errors of `list_folder`, `read_list`, `read_coco`, `list_tars` and `open_dataset`.
  explicit PackSource(const PackOptions& options);

  const Listing& listing() const { return listing_; }
  /// Text for people that identifies the input, with a hash of the listing.
  const std::string& identity() const { return identity_; }
  /// Returns an image of the listing. Call it with ascending numbers; they need not begin at 0.
  UncheckedImage image(std::size_t item);
  bool has_images() const { return !dataset_ || has_images_; }
  /// Whether a field "label" of 8 bytes is an integer, and not a value of another dtype.
  bool has_integer_labels() const { return has_integer_labels_; }
  /// Whether the listing has the images' labels. Otherwise they are in a dataset's records, and a
  /// resumed pack does not read those of earlier records.
  bool lists_labels() const { return !dataset_; }
  /// Specs of the fields that a dataset's records keep.
  std::vector<FieldSpec> field_specs() const;
  /// Name for people: a path or a record's key.
  std::string path(std::size_t item) const;
  /// Annotations of boxes; null if none were given.
  const CocoFile* coco() const { return coco_ ? &*coco_ : nullptr; }
  /// "file" or "record".
  const char* noun() const { return dataset_ ? "record" : "file"; }

 private:
  // These return the source's name for people.
  std::string take_dataset(const PackOptions& options, ListingHash& hash);
  std::string take_folder(const PackOptions& options, ListingHash& hash);
  std::string take_tars(const PackOptions& options, ListingHash& hash);
  std::string take_masks(const PackOptions& options, ListingHash& hash);
  /// Throws the errors of the constructor.
  static std::shared_ptr<const Dataset> open(const std::string& input, const OpenOptions& options);
  UncheckedImage record(std::uint64_t index);
  /// Whether packed records of a dataset have this field, kept or made by pack.
  bool is_packed(std::string_view field) const;

  std::filesystem::path folder_;
  std::filesystem::path masks_;
  std::optional<CocoFile> coco_;
  std::optional<TarImages> tars_;
  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<DatasetReader> reader_;
  /// Fields of the dataset that records keep.
  std::vector<std::string> kept_;
  bool has_images_ = false;
  bool has_integer_labels_ = true;
  Listing listing_;
  std::string identity_;
};

/// Whether an input is a folder, but not an LMDB folder.
bool is_image_folder(const std::filesystem::path& input);
/// Whether a name has the wildcards of glob(7).
bool is_pattern(const std::string& name);

}  // namespace millrace::cli
