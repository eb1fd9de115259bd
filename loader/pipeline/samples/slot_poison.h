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

/// Finds bytes of samples that a transform does not write: fills a sample's place with random bytes
/// and looks for them afterwards. A run of 8 bytes matches by chance once in 2^64 samples and
/// bytes. Fewer bytes are found when they match in 8 samples in a row. For one thread.
class SlotPoison {
 public:
  explicit SlotPoison(const SampleSpec& spec);

  /// Fills the fields of the sample that `key` stands for.
  void fill(std::span<const Tensor> fields, std::uint64_t key);
  /// Returns a clause that names a field and its bytes, if the sample that was filled last has
  /// unwritten ones; of a variable field, below its length.
  std::optional<std::string> unwritten(std::span<const Tensor> fields);

 private:
  std::optional<std::string> unwritten_in(std::size_t field, const Tensor& tensor,
                                          std::size_t used);

  const SampleSpec& spec_;
  std::uint64_t key_ = 0;
  /// Random bytes of the field at hand.
  std::vector<std::byte> random_;
  /// Per field and byte: the number of samples in a row in which it matched.
  std::vector<std::vector<std::uint8_t>> matched_;
};

}  // namespace millrace
