// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fuzz/fuzz_seeds.h"

namespace millrace::testing {

/// Reads all records, but at most `max_records`, and each byte of them. A file of a fuzzer's
/// length cannot hold as many as the default.
inline void read_all(const Dataset& dataset, std::uint64_t max_records = 10'000) {
  const auto reader = dataset.make_reader();
  std::vector<std::uint64_t> indices;
  unsigned sum = 0;
  for (std::uint64_t index = 0; index < std::min(dataset.size(), max_records); ++index) {
    indices.push_back(index);
    (void)dataset.key(index);
    (void)dataset.stored_record(index);
    try {
      const Record record = reader->read(index);
      for (const RecordField& field : record.fields())
        for (const std::byte byte : field.bytes) sum += std::to_integer<unsigned>(byte);
    } catch (const Error& error) {
      expect_damage(error);
    }
  }
  dataset.prefetch(indices);
  static volatile unsigned seen = 0;
  seen = seen + sum;  // so that the bytes are read
}

}  // namespace millrace::testing
