// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace {

/// TensorProto.DataType as far as it is read.
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

/// One tensor: views of its `Caffe2Tensors` and of what was read. The shape says how many values it
/// has, 1 if it is empty, and they are in the one of the four that its type names.
struct Caffe2Tensor {
  Caffe2Type type = Caffe2Type::float32;
  std::span<const std::int64_t> shape;
  std::span<const float> floats;                        ///< float32
  std::span<const std::int64_t> integers;               ///< int32, boolean, uint8 ... int64
  std::span<const std::byte> bytes;                     ///< byte
  std::span<const std::span<const std::byte>> strings;  ///< string
};

/// A record of Caffe2's: message TensorProtos of
/// https://github.com/pytorch/pytorch/blob/v1.13.1/caffe2/proto/caffe2.proto. Image databases have
/// an image (string: encoded; byte: height, width, channels; float32) and a label.
class Caffe2Tensors {
 public:
  /// Reads it anew and keeps the memory. Of several fields of one name the last counts unless it is
  /// repeated, and fields it does not know are passed over. Bad are fields of another wire type,
  /// data types that are not above (FLOAT16, DOUBLE), negative sizes, and values that are not as
  /// many as the sizes say.
  Status read(std::span<const std::byte> input);

  /// Valid until the next read, and as long as the input is.
  std::span<const Caffe2Tensor> tensors() const { return tensors_; }

 private:
  /// How many values lie before a tensor's own.
  struct Begin {
    std::size_t shape = 0, floats = 0, int32s = 0, int64s = 0, strings = 0;
  };

  std::string read_tensor(std::span<const std::byte> message);
  /// Behind what was read so far.
  Begin end() const;
  void refer(Caffe2Tensor& tensor, const Begin& begin, const Begin& end) const;

  std::vector<Caffe2Tensor> tensors_;
  std::vector<Begin> begins_;
  // Of all tensors, one's behind the other's.
  std::vector<std::int64_t> shapes_, int32s_, int64s_;
  std::vector<float> floats_;
  std::vector<std::span<const std::byte>> strings_;
};

}  // namespace millrace
