// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/transform.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace millrace::testing {

/// Memory for a sample of any fields.
class TargetSample {
 public:
  explicit TargetSample(const SampleSpec& spec) : spec_(spec) {
    for (const FieldSpec& field : spec.fields())
      memory_.emplace_back(field.shape.elements() * size_of(field.dtype), std::byte{0xA5});
    for (std::size_t n = 0; n < memory_.size(); ++n)
      places_.push_back({memory_[n].data(), spec.fields()[n].dtype, spec.fields()[n].shape});
  }

  /// Returns a sample to fill once.
  Sample sample() const { return {spec_, places_}; }

  /// Returns a field's memory; for a field of varying length, up to its largest length.
  template <typename T>
  std::span<const T> all(std::string_view field) const {
    return places_[spec_.index_of(field)].template as<T>();
  }
  std::size_t length(std::string_view field) const {
    return places_[spec_.length_field_of(spec_.index_of(field))].template as<std::uint32_t>()[0];
  }
  /// Returns the values of a field of varying length.
  template <typename T>
  std::span<const T> values(std::string_view field) const {
    const Shape& shape = spec_.fields()[spec_.index_of(field)].shape;
    return all<T>(field).first(length(field) * (shape.elements() / shape[0]));
  }

 private:
  SampleSpec spec_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<Tensor> places_;
};

/// Returns the bytes of values in the form of a record.
template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace millrace::testing
