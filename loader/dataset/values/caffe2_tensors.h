// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataset/values/capacity_bytes.h"

namespace millrace {

/// The supported values of TensorProto.DataType.
enum class Caffe2Type : std::uint8_t {
  float32 = 1,
  int32 = 2,
  byte = 3,
  string = 4,
  boolean = 5,
  uint8 = 6,
  int8 = 7,
  uint16 = 8,
  int16 = 9,
  int64 = 10,
};

/// One tensor: views of its `Caffe2Tensors` and of the input. The shape gives the number of values
/// (1 if it is empty). The type determines which of the four members has the values.
struct Caffe2Tensor {
  Caffe2Type type = Caffe2Type::float32;
  std::span<const std::int64_t> shape;
  std::span<const float> floats;                        ///< float32
  std::span<const std::int64_t> integers;               ///< int32, boolean, uint8 ... int64
  std::span<const std::byte> bytes;                     ///< byte
  std::span<const std::span<const std::byte>> strings;  ///< string
};

/// A record of Caffe2: the message TensorProtos of
/// https://github.com/pytorch/pytorch/blob/v1.13.1/caffe2/proto/caffe2.proto. Image databases store
/// two tensors: an image (string: encoded; byte: height, width, channels; float32) and a label.
class Caffe2Tensors {
 public:
  /// Parses a record into the memory of the previous one. If a field that is not repeated occurs
  /// several times, the last one counts. Unknown fields are skipped. Returns bad for fields of
  /// another wire type, unsupported data types (FLOAT16, DOUBLE), negative sizes, and a number of
  /// values that differs from the shape's.
  Status read(std::span<const std::byte> input);

  /// Valid until the next read and as long as the input.
  std::span<const Caffe2Tensor> tensors() const { return tensors_; }
  /// Bytes of memory that it keeps for the next read.
  std::size_t held_bytes() const {
    return capacity_bytes(tensors_, begins_, shapes_, int32s_, int64s_, floats_, strings_);
  }

 private:
  /// Number of values before those of a tensor.
  struct Begin {
    std::size_t shape = 0, floats = 0, int32s = 0, int64s = 0, strings = 0;
  };

  std::string read_tensor(std::span<const std::byte> message);
  /// Positions after the values that were read so far.
  Begin end() const;
  void refer(Caffe2Tensor& tensor, const Begin& begin, const Begin& end) const;

  std::vector<Caffe2Tensor> tensors_;
  std::vector<Begin> begins_;
  // Values of all tensors, consecutive.
  std::vector<std::int64_t> shapes_, int32s_, int64s_;
  std::vector<float> floats_;
  std::vector<std::span<const std::byte>> strings_;
};

}  // namespace millrace
