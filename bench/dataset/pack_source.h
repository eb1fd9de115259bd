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

#include "dataset/pack_image.h"
#include "dataset/pack_listing.h"
#include "dataset/pack_tar.h"

namespace millrace::cli {

/// What there is to pack: a folder of images, by a list or without one, tars, or the records of a
/// dataset.
class PackSource {
 public:
  /// Looks through all of it. `inputs`: one folder, tars and patterns (glob(7)) of tars, or what
  /// `open_dataset` takes by `how` and is neither; `list` may be empty; `out` is passed over if it
  /// is a dataset, with its index. Throws `Error`: `invalid_argument` if `out` is among the inputs,
  /// and as `list_folder`, `read_list`, `list_tars` and `open_dataset` do.
  PackSource(const std::vector<std::string>& inputs, const std::string& list,
             std::uint64_t max_expansion, const OpenOptions& how, const std::filesystem::path& out);

  const Listing& listing() const { return listing_; }
  /// For a person, with a hash of all that is listed.
  const std::string& identity() const { return identity_; }
  /// An image of the listing. Asked for in order, though not from the first on.
  UncheckedImage image(std::size_t item);
  /// What a person can find it by.
  std::string path(std::size_t item) const;
  /// "file", or what else the listing counts.
  const char* noun() const { return dataset_ ? "record" : "file"; }

 private:
  void take_folder(const std::string& list, const std::filesystem::path& out);
  /// Throws `Error` as the constructor does.
  static std::shared_ptr<const Dataset> open(const std::string& input, const OpenOptions& how);
  UncheckedImage record(std::uint64_t index);

  std::filesystem::path folder_;
  std::optional<TarImages> tars_;
  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<DatasetReader> reader_;
  /// The dataset's fields that each record keeps.
  std::vector<std::string> kept_;
  bool has_images_ = false;
  Listing listing_;
  std::string identity_;
};

/// Whether a name has the wildcards of glob(7).
bool is_pattern(const std::string& name);

}  // namespace millrace::cli
