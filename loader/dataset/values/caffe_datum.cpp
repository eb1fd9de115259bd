// SPDX-License-Identifier: Apache-2.0
#include "dataset/values/caffe_datum.h"

#include <string>

#include "dataset/values/protobuf.h"

namespace millrace {
namespace {

Status bad(const std::string& what) { return Status::bad("the Datum's " + what); }

/// Returns the low 32 bits of a varint, as protobuf does for an int32.
std::string read_int32(const ProtobufField& field, const char* name, std::int32_t& number) {
  std::string problem = type_problem(field, name, WireType::varint);
  if (problem.empty())
    number = static_cast<std::int32_t>(static_cast<std::uint32_t>(field.integer));
  return problem;
}

/// Checks the sizes of values that are not encoded. Returns the problem, or an empty text.
std::string sizes_problem(const CaffeDatum& datum) {
  struct Size {
    const char* name;
    std::int32_t size;
  };
  const std::uint64_t has = datum.floats.empty() ? datum.data.size() : datum.floats.size();
  std::uint64_t needs = 1;
  bool is_too_large = false;
  std::string product;
  for (const Size& size : {Size{"channels", datum.channels}, Size{"height", datum.height},
                           Size{"width", datum.width}}) {
    if (size.size == 0) return std::string(size.name) + " is missing or 0, and it is not encoded";
    if (size.size < 0) return std::string(size.name) + " is " + std::to_string(size.size);
    is_too_large |= __builtin_mul_overflow(needs, static_cast<std::uint64_t>(size.size), &needs);
    product += (product.empty() ? "" : " x ") + std::to_string(size.size);
  }
  if (!is_too_large && has == needs) return {};
  return std::string(datum.floats.empty() ? "data" : "float_data") + " has " + std::to_string(has) +
         " values, and channels x height x width is " + product;
}

}  // namespace

Status CaffeDatum::read(std::span<const std::byte> input) {
  encoded = false;
  channels = height = width = 0;
  data = {};
  floats.clear();
  label.reset();
  ProtobufReader fields(input);
  ProtobufField field;
  while (fields.next(field)) {
    const std::string problem = take(field);
    if (!problem.empty()) return bad(problem);
  }
  if (!fields.problem().empty()) return bad(fields.problem());
  if (!data.empty() && !floats.empty()) return bad("data and float_data are both there");
  if (data.empty() && floats.empty()) return bad("data and float_data are both missing");
  if (encoded) return floats.empty() ? Status::ok() : bad("float_data is there, but it is encoded");
  const std::string problem = sizes_problem(*this);
  return problem.empty() ? Status::ok() : bad(problem);
}

std::string CaffeDatum::take(const ProtobufField& field) {
  switch (field.number) {
    case 1:
      return read_int32(field, "channels", channels);
    case 2:
      return read_int32(field, "height", height);
    case 3:
      return read_int32(field, "width", width);
    case 4:
      data = field.bytes;
      return type_problem(field, "data", WireType::bytes);
    case 5:
      return read_int32(field, "label", label.emplace());
    case 6:
      return append_floats(field, "float_data", floats);
    case 7:
      encoded = field.integer != 0;
      return type_problem(field, "encoded", WireType::varint);
    default:
      return {};
  }
}

}  // namespace millrace
