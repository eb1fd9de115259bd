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
/// searches for them afterwards. Reports a run of 8 or more such bytes at once: it matches by
/// chance once in 2^64 samples and bytes. Reports a shorter run when it matches in 8 samples in a
/// row. Fields with device stages are not searched: their input may be shorter. For one thread.
class SlotPoison {
 public:
  explicit SlotPoison(const SampleSpec& spec);

  /// Fills the fields of a sample with bytes that depend on `key`. Each call has other bytes, also
  /// for the same key: a sample may be made several times in a row, as padding is.
  void fill(std::span<const Tensor> fields, std::uint64_t key);
  /// Returns a clause that names a field and its unwritten bytes, if the last filled sample has
  /// any. In a variable field, only the bytes within its length count.
  std::optional<std::string> unwritten(std::span<const Tensor> fields);

 private:
  std::optional<std::string> unwritten_in(std::size_t field, const Tensor& tensor,
                                          std::size_t used);

  const SampleSpec& spec_;
  std::uint64_t key_ = 0;
  std::uint64_t fills_ = 0;
  /// Scratch: the random bytes of one field.
  std::vector<std::byte> random_;
  /// Per field and byte: in how many samples in a row the byte matched.
  std::vector<std::vector<std::uint8_t>> matched_;
};

}  // namespace millrace
