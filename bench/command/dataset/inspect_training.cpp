// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/inspect_training.h"

#include <fmt/format.h>
#include <millrace/error.h>
#include <millrace/image_decoder.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <span>

#include "command/dataset/inspect_survey.h"
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

bool is_text(std::span<const std::byte> bytes) {
  return std::ranges::none_of(
      bytes, [](std::byte byte) { return std::iscntrl(std::to_integer<int>(byte)) != 0; });
}

/// The first `count` values of a field, as text.
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

/// Describes a field by name and length, where nothing else gives its type.
std::string field_text(const Record& record, const RecordField& field, bool is_typed) {
  constexpr std::size_t most_shown = 40;
  if (std::string text = is_typed ? "" : annotation_text(record, field); !text.empty()) return text;
  if (field.bytes.empty()) return "nothing";
  if (field.name == "image") return image_text(field.bytes);
  if (field.name == "shape" && field.bytes.size() % sizeof(std::int64_t) == 0) return "integers";
  const std::string_view text(reinterpret_cast<const char*>(field.bytes.data()),
                              field.bytes.size());
  if (std::int64_t number = 0; field.name != "path" && field.bytes.size() == sizeof number) {
    std::memcpy(&number, field.bytes.data(), sizeof number);
    return fmt::format("an integer, {}", number);
  }
  if (is_text(field.bytes))
    return fmt::format("text, \"{}{}\"", printable(text.substr(0, most_shown)),
                       text.size() > most_shown ? "..." : "");
  return "bytes";
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
  if (!record.has("label"))
    miss("no field label");
  else if (!label_of(record))
    miss(fmt::format(
        "the label is {}, and an image transform takes an integer of 8 bytes",
        is_text(record["label"]) ? "text" : count_text(record["label"].size(), "byte")));
}

}  // namespace

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

SampleRecord look_at_record(const Dataset& dataset) {
  constexpr std::uint64_t tried = 16;
  const auto reader = dataset.make_reader();
  const std::vector<FieldSpec> specs = dataset.field_specs();
  for (std::uint64_t index = 0; index < std::min(tried, dataset.size()); ++index) {
    try {
      SampleRecord sample{.index = index, .key = dataset.key(index)};
      const Record record = reader->read(index);
      for (const RecordField& field : record.fields()) {
        const bool is_typed = std::ranges::find(specs, field.name, &FieldSpec::name) != specs.end();
        sample.fields.push_back(
            {std::string(field.name), field.bytes.size(), field_text(record, field, is_typed)});
      }
      // Datasets of arrays are meant for transforms of values.
      if (record.has("image") || specs.empty()) find_missing(record, sample);
      if (reader->intact().is_ok()) return sample;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_record) throw;
    }
  }
  return {};
}

}  // namespace millrace::cli
