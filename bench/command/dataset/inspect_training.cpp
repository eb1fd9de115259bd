// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/inspect_training.h"

#include <fmt/format.h>
#include <millrace/error.h>
#include <millrace/image_decoder.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <type_traits>

#include "measure/text/figures.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

std::string image_text(std::span<const std::byte> image) {
  ImageInfo info;
  if (const Status read = read_image_info(image, info); !read.is_ok())
    return "no image that is known";
  return fmt::format("{}, {} x {} pixels", info.scan_type, info.width, info.height);
}

template <typename Value>
std::string value_text(std::span<const std::byte> bytes) {
  Value value;
  std::memcpy(&value, bytes.data(), sizeof value);
  if constexpr (std::is_same_v<Value, Float16> || std::is_same_v<Value, Bfloat16>)
    return fmt::format("{:g}", static_cast<float>(value));
  else if constexpr (std::is_floating_point_v<Value>)
    return fmt::format("{:g}", value);
  else
    return fmt::format("{}", value);
}

std::string value_text(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::boolean:
    case DType::uint8:
      return value_text<std::uint8_t>(bytes);
    case DType::int8:
      return value_text<std::int8_t>(bytes);
    case DType::uint16:
      return value_text<std::uint16_t>(bytes);
    case DType::int16:
      return value_text<std::int16_t>(bytes);
    case DType::uint32:
      return value_text<std::uint32_t>(bytes);
    case DType::int32:
      return value_text<std::int32_t>(bytes);
    case DType::uint64:
      return value_text<std::uint64_t>(bytes);
    case DType::int64:
      return value_text<std::int64_t>(bytes);
    case DType::float16:
      return value_text<Float16>(bytes);
    case DType::bfloat16:
      return value_text<Bfloat16>(bytes);
    case DType::float32:
      return value_text<float>(bytes);
    case DType::float64:
      return value_text<double>(bytes);
  }
  return "";
}

/// Returns the first values of a field, with a space before each.
std::string values_text(DType dtype, std::span<const std::byte> bytes) {
  constexpr std::size_t most = 8;
  const std::size_t each = size_of(dtype);
  std::string text;
  for (std::size_t n = 0; n < std::min(most, bytes.size() / each); ++n)
    text += " " + value_text(dtype, bytes.subspan(n * each, each));
  return text + (bytes.size() / each > most ? " ..." : "");
}

/// Returns the first `count` values of a field as text.
template <typename Value>
std::string first_of(std::span<const std::byte> bytes, std::size_t count) {
  if (bytes.empty()) return "";
  std::string text;
  for (std::size_t n = 0; n < count; ++n) {
    Value value;
    std::memcpy(&value, bytes.data() + n * sizeof value, sizeof value);
    text += fmt::format(" {}", value);
  }
  return ", the first" + text;
}

/// Describes a field with the name and length of an annotation: "2 boxes, the first 0 1 9 12", "2
/// integers, the first 4", "2 x 17 keypoints, the first 20 31 2", or a mask's kind and size. Empty
/// for all other fields.
std::string annotation_text(const Record& record, const RecordField& field) {
  constexpr std::size_t box_numbers = 4, box_bytes = box_numbers * sizeof(float);
  constexpr std::size_t point_numbers = 3, point_bytes = point_numbers * sizeof(float);
  const std::size_t bytes = field.bytes.size();
  if (field.name == "mask" && bytes > 0) return image_text(field.bytes);
  if (field.name == "boxes" && bytes % box_bytes == 0)
    return count_text(bytes / box_bytes, "box") + first_of<float>(field.bytes, box_numbers);
  if (field.name == "labels" && bytes % sizeof(std::int64_t) == 0)
    return count_text(bytes / sizeof(std::int64_t), "integer") +
           first_of<std::int64_t>(field.bytes, 1);
  if (field.name != "keypoints" || bytes % point_bytes != 0) return "";
  const std::size_t boxes = record.has("boxes") ? record["boxes"].size() / box_bytes : 0;
  const std::size_t points = bytes / point_bytes;
  return (boxes > 0 && points % boxes == 0
              ? fmt::format("{} x {}", boxes, count_text(points / boxes, "keypoint"))
              : count_text(points, "keypoint")) +
         first_of<float>(field.bytes, point_numbers);
}

bool is_text(std::span<const std::byte> bytes) {
  return std::ranges::none_of(
      bytes, [](std::byte byte) { return std::iscntrl(std::to_integer<int>(byte)) != 0; });
}

void find_missing(const Record& record, SampleRecord& sample) {
  const auto miss = [&](std::string what) { sample.missing.push_back(std::move(what)); };
  if (!record.has("image")) {
    miss(record.has("data") ? "no field image: data has values that no image decoder takes"
                            : "no field image");
  } else if (const Status opened = make_image_decoder()->open(record["image"]); !opened.is_ok()) {
    miss("no decoder takes the image of record " + std::to_string(sample.index) + ": " +
         printable(opened.reason()));
  }
  if (!record.has("label")) miss("no field label");
}

}  // namespace

FieldText field_text(std::span<const FieldSpec> specs, const Record& record,
                     const RecordField& field) {
  constexpr std::size_t max_shown = 48;
  const std::span<const std::byte> bytes = field.bytes;
  if (field.name == "image" && !bytes.empty()) return {.type = image_text(bytes)};
  const auto spec = std::ranges::find(specs, field.name, &FieldSpec::name);
  if (spec != specs.end() && !bytes.empty())
    return {.value = to_string(spec->dtype) + values_text(spec->dtype, bytes)};
  if (std::string text = annotation_text(record, field); !text.empty()) return {.value = text};
  if (bytes.empty()) return {.type = "nothing"};
  if (field.name == "shape" && bytes.size() % sizeof(std::int64_t) == 0)
    return {.type = "integers", .value = values_text(DType::int64, bytes).substr(1)};
  if (field.name != "path" && bytes.size() == sizeof(std::int64_t))
    return {.type = "an integer", .value = value_text(DType::int64, bytes)};
  if (!is_text(bytes)) return {.type = "bytes"};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return {.type = "text",
          .value = fmt::format("\"{}{}\"", printable(text.substr(0, max_shown)),
                               text.size() > max_shown ? "..." : "")};
}

SampleRecord look_at_record(const Dataset& dataset) {
  constexpr std::uint64_t tried = 16;
  const auto reader = dataset.make_reader();
  const std::vector<FieldSpec> specs = dataset.field_specs();
  for (std::uint64_t index = 0; index < std::min(tried, dataset.size()); ++index) {
    try {
      SampleRecord sample{.index = index, .key = dataset.key(index)};
      const Record record = reader->read(index);
      for (const RecordField& field : record.fields()) {
        const auto [type, value] = field_text(specs, record, field);
        sample.fields.push_back({std::string(field.name), field.bytes.size(),
                                 type + (type.empty() || value.empty() ? "" : ", ") + value});
      }
      // Datasets of arrays are checked only if they have images: others are for transforms of
      // values.
      if (record.has("image") || specs.empty()) find_missing(record, sample);
      if (reader->intact().is_ok()) return sample;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_record) throw;
    }
  }
  return {};
}

}  // namespace millrace::cli
