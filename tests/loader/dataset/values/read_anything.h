// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <variant>
#include <vector>

#include "dataset/values/caffe2_tensors.h"
#include "dataset/values/caffe_datum.h"
#include "dataset/values/msgpack.h"
#include "dataset/values/pickle.h"
#include "dataset/values/protobuf.h"

namespace millrace::testing {

// Reads any bytes. They must be accepted within the limits that the parser's header states, or
// refused with a short message. Otherwise these functions throw.

using Input = std::span<const std::byte>;

inline void expect(bool holds) {
  if (!holds) throw std::logic_error("a reader of values has broken its word");
}

inline bool is_taken(const Status& status) {
  expect(status.reason().size() <= 1000);
  return status.is_ok();
}

/// Touches each byte. Returns the number of values that a walk meets.
inline std::uint64_t walk(const Values& values, const Value& value, std::size_t levels) {
  std::uint64_t met = 1;
  if (const auto* bytes = std::get_if<Input>(&value))
    for (const std::byte byte : *bytes) met += byte > std::byte{255};
  if (const auto* text = std::get_if<std::string_view>(&value)) expect(is_utf8(*text));
  if (!std::holds_alternative<Items>(value)) return met;
  expect(levels < Values::max_levels);
  const bool has_pairs = std::get<Items>(value).kind == Collection::dictionary;
  for (std::size_t n = 0; n < values.size(value); ++n) {
    if (has_pairs) {
      const auto [key, item] = values.entry(value, n);
      met += walk(values, key, levels + 1) + walk(values, item, levels + 1);
    } else {
      met += walk(values, values.item(value, n), levels + 1);
    }
  }
  return met;
}

inline void expect_limits(const Values& values) {
  expect(walk(values, values.root(), 0) <= 1U << 20);
  (void)values.find(values.root(), "image");
  expect(!described(values.root()).empty());
}

inline void read_protobuf(Input input) {
  ProtobufReader fields(input);
  std::vector<float> floats;
  std::vector<std::int64_t> integers;
  for (ProtobufField field; fields.next(field);) {
    expect(field.offset < input.size() && field.bytes.size() < input.size());
    (void)append_floats(field, "floats", floats);
    (void)append_int32s(field, "int32s", integers);
    (void)append_int64s(field, "int64s", integers);
  }
  expect(floats.size() <= input.size() && integers.size() <= 2 * input.size());
  expect(fields.problem().size() <= 1000);
}

/// Keeps its readers, to detect that one input affects the next.
class AnyReader {
 public:
  static constexpr std::uint8_t kinds = 5;

  void read(std::uint8_t kind, Input input) {
    switch (kind) {
      case 0:
        if (is_taken(pickle_.read(input, values_))) expect_limits(values_);
        break;
      case 1:
        if (is_taken(read_msgpack(input, values_))) expect_limits(values_);
        break;
      case 2:
        read_protobuf(input);
        break;
      case 3:
        read_datum(input);
        break;
      default:
        read_tensors(input);
    }
  }

 private:
  void read_datum(Input input) {
    if (!is_taken(datum_.read(input)) || datum_.encoded) return;
    expect(datum_.channels > 0 && datum_.height > 0 && datum_.width > 0);
    expect(static_cast<std::uint64_t>(datum_.channels) * static_cast<std::uint64_t>(datum_.height) *
               static_cast<std::uint64_t>(datum_.width) ==
           datum_.data.size() + datum_.floats.size());
  }

  void read_tensors(Input input) {
    if (!is_taken(tensors_.read(input))) return;
    for (const Caffe2Tensor& tensor : tensors_.tensors()) {
      std::uint64_t count = 1;
      for (const std::int64_t size : tensor.shape) count *= static_cast<std::uint64_t>(size);
      expect(count == tensor.floats.size() + tensor.integers.size() + tensor.bytes.size() +
                          tensor.strings.size());
    }
  }

  PickleReader pickle_;
  Values values_;
  CaffeDatum datum_;
  Caffe2Tensors tensors_;
};

}  // namespace millrace::testing
