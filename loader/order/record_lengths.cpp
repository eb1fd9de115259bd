// SPDX-License-Identifier: Apache-2.0
#include <millrace/record_lengths.h>

#include <algorithm>
#include <numeric>

#include "dataset/joined_dataset.h"

namespace millrace {
namespace {

/// Number of records that are announced to the dataset at once (`Dataset::prefetch`), while the
/// records before them are read.
constexpr std::uint64_t told_at_once = 64;

std::uint32_t length_of(DatasetReader& reader, std::uint64_t index, std::string_view field) {
  try {
    return static_cast<std::uint32_t>(
        std::min<std::size_t>(reader.read(index)[field].size(), UINT32_MAX));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_record) throw;
    return 0;
  }
}

}  // namespace

std::vector<std::uint32_t> record_lengths(const Dataset& dataset, std::string_view field) {
  const std::uint64_t records = dataset.size();
  const auto tell_of = [&](std::uint64_t first) {
    std::vector<std::uint64_t> soon(std::min(told_at_once, records - std::min(first, records)));
    std::iota(soon.begin(), soon.end(), first);
    try {
      if (!soon.empty()) dataset.prefetch(soon);
    } catch (...) {
      // A prefetch is only a hint: the records are read without it.
    }
  };
  const std::unique_ptr<DatasetReader> reader = checked_reader(dataset);
  std::vector<std::uint32_t> lengths;
  lengths.reserve(records);
  tell_of(0);
  for (std::uint64_t index = 0; index < records; ++index) {
    if (index % told_at_once == 0) tell_of(index + told_at_once);
    lengths.push_back(length_of(*reader, index, field));
  }
  return lengths;
}

}  // namespace millrace
