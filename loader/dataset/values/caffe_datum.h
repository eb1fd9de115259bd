// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace {

struct ProtobufField;

/// A record of Caffe: the message Datum of
/// https://github.com/BVLC/caffe/blob/master/src/caffe/proto/caffe.proto.
struct CaffeDatum {
  /// Whether `data` is an encoded image. If not, `data` or `floats` has channels x height x width
  /// values, channel by channel. Caffe's channel order is blue, green, red.
  bool encoded = false;
  /// At least 1 unless `encoded`. For an encoded image they are meaningless and may be 0.
  std::int32_t channels = 0, height = 0, width = 0;
  std::span<const std::byte> data;  ///< a view of the input
  std::vector<float> floats;        ///< empty if there is `data`
  /// Nullopt if the message has no label. A proto3 writer leaves out the label 0.
  std::optional<std::int32_t> label;

  /// Parses a record into the memory of the previous one. If a field occurs several times, the last
  /// one counts, as in protobuf. Unknown fields are skipped. Returns bad for fields of another wire
  /// type, for sizes that are missing or below 1, and for a number of values that differs from the
  /// sizes. Returns bad unless exactly one of `data` and float_data is present.
  Status read(std::span<const std::byte> input);

 private:
  std::string take(const ProtobufField& field);
};

}  // namespace millrace
