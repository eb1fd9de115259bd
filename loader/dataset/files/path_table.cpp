// SPDX-License-Identifier: Apache-2.0
#include "dataset/files/path_table.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace millrace {

void PathTable::add(std::string_view path) {
  const bool is_whole = size_ % group_paths == 0;
  if (is_whole) groups_.push_back(text_.size());
  const auto differs = std::ranges::mismatch(path, last_).in1 - path.begin();
  const auto shared = is_whole ? std::uint16_t{0} : static_cast<std::uint16_t>(differs);
  const std::array<std::uint16_t, 2> lengths = {shared,
                                                static_cast<std::uint16_t>(path.size() - shared)};
  text_.append(reinterpret_cast<const char*>(lengths.data()), sizeof lengths);
  text_.append(path.substr(shared));
  last_ = path;
  ++size_;
}

void PathTable::shrink() {
  text_.shrink_to_fit();
  groups_.shrink_to_fit();
}

std::string PathTable::operator[](std::uint64_t number) const {
  std::string path;
  const char* at = text_.data() + groups_[static_cast<std::size_t>(number / group_paths)];
  for (std::uint64_t n = number / group_paths * group_paths; n <= number; ++n) {
    std::array<std::uint16_t, 2> lengths{};
    std::memcpy(lengths.data(), at, sizeof lengths);
    at += sizeof lengths;
    path.resize(lengths[0]);
    path.append(at, lengths[1]);
    at += lengths[1];
  }
  return path;
}

}  // namespace millrace
