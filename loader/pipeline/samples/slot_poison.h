// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sample_spec.h>
#include <millrace/tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace {

/// Finds bytes of samples that a transform does not write: fills the sample with random bytes and
/// searches for them afterwards. Reports 8 or more adjacent bytes at once: the probability of a
/// match by chance is 2^-64 per byte and sample. Reports fewer adjacent bytes when they match in 8
/// samples in a row. Does not search fields with device stages, because their input may be shorter
/// than the field. For one thread at a time.
class SlotPoison {
 public:
  explicit SlotPoison(const SampleSpec& spec);

  /// Fills the fields of a sample with bytes that depend on `key` and on the number of calls. So a
  /// sample that is made several times in a row, such as padding, gets other bytes each time.
  void fill(std::span<const Tensor> fields, std::uint64_t key);
  /// Returns a clause that names a field and its unwritten bytes, if the last filled sample has
  /// any. Of a variable field, only the bytes within its length are searched.
  std::optional<std::string> unwritten(std::span<const Tensor> fields);

 private:
  std::optional<std::string> unwritten_in(std::size_t field, const Tensor& tensor,
                                          std::size_t used);

  const SampleSpec& spec_;
  std::uint64_t key_ = 0;
  std::uint64_t fills_ = 0;
  /// Scratch: the random bytes of one field.
  std::vector<std::byte> random_;
  /// For each field and byte: the number of samples in a row in which the byte matched.
  std::vector<std::vector<std::uint8_t>> matched_;
};

}  // namespace millrace
