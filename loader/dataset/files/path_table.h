// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Compressed table of paths, by number. Each path is stored as the part in which it differs from
/// the path before; every 16th path is stored whole. Paths in folder order take about 10 to 20
/// bytes each.
class PathTable {
 public:
  /// Appends a path of at most 65,535 bytes.
  void add(std::string_view path);
  /// Frees memory that was reserved for more paths.
  void shrink();

  std::uint64_t size() const { return size_; }
  std::string operator[](std::uint64_t number) const;
  /// Bytes of memory in use.
  std::size_t bytes() const { return text_.capacity() + groups_.capacity() * sizeof groups_[0]; }

 private:
  static constexpr std::uint64_t group_paths = 16;

  /// For each path: two lengths of 2 bytes, then the differing text. The lengths are those of the
  /// prefix shared with the path before, and of the differing text.
  std::string text_;
  /// Offset of each group of paths in `text_`.
  std::vector<std::uint64_t> groups_;
  std::string last_;
  std::uint64_t size_ = 0;
};

}  // namespace millrace
