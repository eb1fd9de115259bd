// SPDX-License-Identifier: Apache-2.0
#include "pipeline/samples/slot_poison.h"

#include <algorithm>
#include <cstring>

namespace millrace {
namespace {

/// Number of matching bytes, in one sample or at one offset in several samples, that cannot match
/// by chance.
constexpr std::size_t certain = 8;

/// Fills memory with pseudorandom numbers from the seed `key` (splitmix64).
void random_bytes(std::uint64_t key, std::span<std::byte> into) {
  std::uint64_t state = key;
  for (std::size_t begin = 0; begin < into.size(); begin += sizeof state) {
    state += 0x9E3779B97F4A7C15;
    std::uint64_t value = state;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
    value = (value ^ value >> 27) * 0x94D049BB133111EB;
    value ^= value >> 31;
    std::memcpy(into.data() + begin, &value, std::min(sizeof value, into.size() - begin));
  }
}

std::uint64_t key_of(std::uint64_t sample, std::size_t field) {
  return sample * 0xD1342543DE82EF95 + field * 0xC2B2AE3D27D4EB4F;
}

}  // namespace

SlotPoison::SlotPoison(const SampleSpec& spec) : spec_(spec), matched_(spec.fields().size()) {}

void SlotPoison::fill(std::span<const Tensor> fields, std::uint64_t key) {
  // `key_of` mixes the keys. The odd factor makes the keys of successive calls different.
  key_ = key + ++fills_ * 0x9E3779B97F4A7C15;
  for (std::size_t field = 0; field < fields.size(); ++field)
    random_bytes(key_of(key_, field),
                 {static_cast<std::byte*>(fields[field].data), fields[field].bytes()});
}

std::optional<std::string> SlotPoison::unwritten(std::span<const Tensor> fields) {
  for (std::size_t field = 0; field < fields.size(); ++field) {
    if (!spec_.fields()[field].device_stages.empty()) continue;
    const Tensor& tensor = fields[field];
    std::size_t used = tensor.bytes();
    if (spec_.fields()[field].variable) {
      std::uint32_t length = 0;
      std::memcpy(&length, fields[spec_.length_field_of(field)].data, sizeof length);
      used = used / tensor.shape[0] * length;
    }
    if (std::optional<std::string> found = unwritten_in(field, tensor, used)) return found;
  }
  return std::nullopt;
}

std::optional<std::string> SlotPoison::unwritten_in(std::size_t field, const Tensor& tensor,
                                                    std::size_t used) {
  const auto* const bytes = static_cast<const std::byte*>(tensor.data);
  std::vector<std::uint8_t>& matched = matched_[field];
  matched.resize(tensor.bytes());
  random_.resize(tensor.bytes());
  random_bytes(key_of(key_, field), random_);
  for (std::size_t begin = 0; begin < used;) {
    if (bytes[begin] != random_[begin]) {
      matched[begin++] = 0;
      continue;
    }
    std::size_t end = begin;
    for (; end < used && bytes[end] == random_[end]; ++end) ++matched[end];
    const std::uint8_t often =
        *std::max_element(matched.begin() + static_cast<std::ptrdiff_t>(begin),
                          matched.begin() + static_cast<std::ptrdiff_t>(end));
    if (end - begin < certain && often < certain) {
      begin = end;
      continue;
    }
    if (end - begin < certain) {  // leaves out adjacent bytes that match by chance
      while (matched[begin] < often) ++begin;
      while (matched[end - 1] < often) --end;
    }
    return (end - begin == 1
                ? "byte " + std::to_string(begin)
                : "bytes " + std::to_string(begin) + " to " + std::to_string(end - 1)) +
           " of its field \"" + spec_.fields()[field].name + "\" (" +
           std::to_string(tensor.bytes()) + " bytes)";
  }
  return std::nullopt;
}

}  // namespace millrace
