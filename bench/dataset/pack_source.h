// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dataset/pack_image.h"
#include "dataset/pack_listing.h"
#include "dataset/pack_tar.h"

namespace millrace::cli {

/// What there is to pack: a folder of images, by a list or without one, or tars.
class PackSource {
 public:
  /// Looks through all of it. `inputs`: one folder, or tars and patterns (glob(7)) of tars; `list`
  /// may be empty; `out` is passed over if it is a dataset, with its index. Throws `Error`:
  /// `invalid_argument` if `out` is among the inputs, and as `list_folder`, `read_list` and
  /// `list_tars` do.
  PackSource(const std::vector<std::string>& inputs, const std::string& list,
             std::uint64_t max_expansion, const std::filesystem::path& out);

  const Listing& listing() const { return listing_; }
  /// For a person, with a hash of all that is listed.
  const std::string& identity() const { return identity_; }
  /// An image of the listing. Asked for in order, though not from the first on.
  UncheckedImage image(std::size_t item);

 private:
  std::filesystem::path folder_;
  std::optional<TarImages> tars_;
  Listing listing_;
  std::string identity_;
};

/// Whether a name has the wildcards of glob(7).
bool is_pattern(const std::string& name);

}  // namespace millrace::cli
