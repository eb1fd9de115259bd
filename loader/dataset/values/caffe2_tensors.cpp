// SPDX-License-Identifier: Apache-2.0
#include "dataset/values/caffe2_tensors.h"

#include <algorithm>
#include <array>
#include <limits>

#include "dataset/values/protobuf.h"

namespace millrace {
namespace {

struct TypeOfData {
  const char* name;
  const char* field;
  /// Range of valid values; only for integer types.
  std::int64_t least = 0, most = 0;
};

/// Indexed by the value of DataType.
constexpr std::array<TypeOfData, 11> data_types = {{
    {"UNDEFINED", nullptr},
    {"FLOAT", "float_data"},
    {"INT32", "int32_data", -0x80000000LL, 0x7fffffff},
    {"BYTE", "byte_data"},
    {"STRING", "string_data"},
    {"BOOL", "int32_data", 0, 1},
    {"UINT8", "int32_data", 0, 0xff},
    {"INT8", "int32_data", -0x80, 0x7f},
    {"UINT16", "int32_data", 0, 0xffff},
    {"INT16", "int32_data", -0x8000, 0x7fff},
    {"INT64", "int64_data", std::numeric_limits<std::int64_t>::min(),
     std::numeric_limits<std::int64_t>::max()},
}};

std::string type_name(std::uint64_t type) {
  if (type < data_types.size()) return data_types[type].name;
  return type == 12 ? "FLOAT16" : type == 13 ? "DOUBLE" : std::to_string(type);
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text;
  for (const std::int64_t size : shape.first(std::min<std::size_t>(shape.size(), 8)))
    text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text + (shape.size() > 8 ? " x ..." : "");
}

/// Checks a tensor's shape and values. Returns the problem, or an empty text.
std::string tensor_problem(const Caffe2Tensor& tensor) {
  const TypeOfData& type = data_types[static_cast<std::size_t>(tensor.type)];
  const std::uint64_t has =
      tensor.floats.size() + tensor.integers.size() + tensor.bytes.size() + tensor.strings.size();
  std::uint64_t needs = 1;
  bool is_too_large = false;
  for (const std::int64_t size : tensor.shape) {
    if (size < 0) return "dims has " + std::to_string(size);
    is_too_large |= __builtin_mul_overflow(needs, static_cast<std::uint64_t>(size), &needs);
  }
  if (is_too_large || has != needs)
    return std::string(type.field) + " has " + std::to_string(has) + " values, and dims " +
           (tensor.shape.empty() ? "is empty, which means one value"
                                 : "is " + shape_text(tensor.shape));
  for (const std::int64_t value : tensor.integers)
    if (value < type.least || value > type.most)
      return std::string(type.field) + " has " + std::to_string(value) + ", which is not a valid " +
             type.name;
  return {};
}

}  // namespace

Status Caffe2Tensors::read(std::span<const std::byte> input) {
  tensors_.clear();
  begins_.clear();
  for (auto* integers : {&shapes_, &int32s_, &int64s_}) integers->clear();
  floats_.clear();
  strings_.clear();
  ProtobufReader fields(input);
  ProtobufField field;
  while (fields.next(field)) {
    if (field.number != 1) continue;
    const std::size_t number = tensors_.size();
    std::string problem = type_problem(field, "protos", WireType::bytes);
    if (problem.empty()) problem = read_tensor(field.bytes);
    if (!problem.empty()) return Status::bad("tensor " + std::to_string(number) + "'s " + problem);
  }
  if (!fields.problem().empty()) return Status::bad("the TensorProtos' " + fields.problem());
  // The vectors are complete now, so views of them stay valid.
  for (std::size_t n = 0; n < tensors_.size(); ++n)
    refer(tensors_[n], begins_[n], n + 1 < begins_.size() ? begins_[n + 1] : end());
  return Status::ok();
}

std::string Caffe2Tensors::read_tensor(std::span<const std::byte> message) {
  const Begin begin = end();
  Caffe2Tensor tensor;
  std::uint64_t type = static_cast<std::uint64_t>(Caffe2Type::float32);
  ProtobufReader fields(message);
  ProtobufField field;
  while (fields.next(field)) {
    std::string problem;
    switch (field.number) {
      case 1:
        problem = append_int64s(field, "dims", shapes_);
        break;
      case 2:
        problem = type_problem(field, "data_type", WireType::varint);
        type = field.integer;
        break;
      case 3:
        problem = append_floats(field, "float_data", floats_);
        break;
      case 4:
        problem = append_int32s(field, "int32_data", int32s_);
        break;
      case 5:
        problem = type_problem(field, "byte_data", WireType::bytes);
        tensor.bytes = field.bytes;
        break;
      case 6:
        problem = type_problem(field, "string_data", WireType::bytes);
        strings_.push_back(field.bytes);
        break;
      case 10:
        problem = append_int64s(field, "int64_data", int64s_);
        break;
      default:
        break;
    }
    if (!problem.empty()) return problem;
  }
  if (!fields.problem().empty()) return fields.problem();
  if (type == 0 || type >= data_types.size())
    return "data_type is " + type_name(type) + ", which is not read";
  tensor.type = static_cast<Caffe2Type>(type);
  refer(tensor, begin, end());
  tensors_.push_back(tensor);
  begins_.push_back(begin);
  return tensor_problem(tensor);
}

Caffe2Tensors::Begin Caffe2Tensors::end() const {
  return {.shape = shapes_.size(),
          .floats = floats_.size(),
          .int32s = int32s_.size(),
          .int64s = int64s_.size(),
          .strings = strings_.size()};
}

/// Sets a tensor's views of its shape and of the values of its type.
void Caffe2Tensors::refer(Caffe2Tensor& tensor, const Begin& begin, const Begin& end) const {
  const auto part = [](const auto& all, std::size_t first, std::size_t last) {
    return std::span(all).subspan(first, last - first);
  };
  tensor.shape = part(shapes_, begin.shape, end.shape);
  if (tensor.type != Caffe2Type::byte) tensor.bytes = {};
  switch (tensor.type) {
    case Caffe2Type::float32:
      tensor.floats = part(floats_, begin.floats, end.floats);
      break;
    case Caffe2Type::byte:
      break;
    case Caffe2Type::string:
      tensor.strings = part(strings_, begin.strings, end.strings);
      break;
    case Caffe2Type::int64:
      tensor.integers = part(int64s_, begin.int64s, end.int64s);
      break;
    default:
      tensor.integers = part(int32s_, begin.int32s, end.int32s);
  }
}

}  // namespace millrace
