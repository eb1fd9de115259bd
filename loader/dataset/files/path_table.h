// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Many paths by number, in little memory: each is kept as what it does not share with the one
/// before it, but for every 16th, which is whole. For paths in the order of a folder that is some
/// 10 to 20 bytes each.
class PathTable {
 public:
  /// A path of at most 65,535 bytes.
  void add(std::string_view path);
  /// Gives back memory that was taken for more.
  void shrink();

  std::uint64_t size() const { return size_; }
  std::string operator[](std::uint64_t number) const;
  /// What it takes.
  std::size_t bytes() const { return text_.capacity() + groups_.capacity() * sizeof groups_[0]; }

 private:
  static constexpr std::uint64_t group_paths = 16;

  /// For each path two lengths of 2 bytes, of what it shares with the one before and of the rest,
  /// and the rest.
  std::string text_;
  /// Where each group of paths begins in it.
  std::vector<std::uint64_t> groups_;
  std::string last_;
  std::uint64_t size_ = 0;
};

}  // namespace millrace
