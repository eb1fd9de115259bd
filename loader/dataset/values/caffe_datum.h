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

/// A record of Caffe's: message Datum of
/// https://github.com/BVLC/caffe/blob/master/src/caffe/proto/caffe.proto.
struct CaffeDatum {
  /// Whether `data` is an encoded image. If not, `data` or `floats` has channels x height x width
  /// values, channel by channel; Caffe's channels are in the order blue, green, red.
  bool encoded = false;
  /// At least 1 unless `encoded`, where they say nothing and may be 0.
  std::int32_t channels = 0, height = 0, width = 0;
  std::span<const std::byte> data;  ///< a view of the input
  std::vector<float> floats;        ///< empty if there is `data`
  /// Nullopt if there is none. A writer of proto3 leaves 0 out.
  std::optional<std::int32_t> label;

  /// Reads it anew and keeps the memory. Of several fields of one name the last counts, as protobuf
  /// has it, and fields it does not know are passed over. Bad are fields of another wire type,
  /// sizes that are missing or below 1, values that are not as many as the sizes say, and both
  /// `data` and float_data, or neither.
  Status read(std::span<const std::byte> input);

 private:
  std::string take(const ProtobufField& field);
};

}  // namespace millrace
