// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/pixel_arithmetic.h>
#include <millrace/error.h>
#include <millrace/raw_transform.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace millrace {
namespace {

[[noreturn]] void refuse_raw_field(const FieldSpec& field, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, "the field \"" + field.name + "\" " + why);
}

template <typename Value>
std::vector<std::byte> bytes_of_value(const Value& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

/// Returns the bytes of the number as an `Integer`; empty if the type cannot hold it.
template <typename Integer>
std::vector<std::byte> integer_bytes(double number) {
  // Powers of two, which a double holds exactly.
  const double end = std::ldexp(1.0, std::numeric_limits<Integer>::digits);
  const double begin = std::numeric_limits<Integer>::is_signed ? -end : 0.0;
  if (!(number >= begin && number < end) || number != std::trunc(number)) return {};
  return bytes_of_value(static_cast<Integer>(number));
}

/// Returns the bytes of the number as a value of that dtype; empty if the dtype cannot hold it.
std::vector<std::byte> bytes_of_number(DType dtype, double number) {
  switch (dtype) {
    case DType::boolean:
      return number == 0 || number == 1 ? bytes_of_value(static_cast<std::uint8_t>(number))
                                        : std::vector<std::byte>();
    case DType::uint8:
      return integer_bytes<std::uint8_t>(number);
    case DType::int8:
      return integer_bytes<std::int8_t>(number);
    case DType::uint16:
      return integer_bytes<std::uint16_t>(number);
    case DType::int16:
      return integer_bytes<std::int16_t>(number);
    case DType::uint32:
      return integer_bytes<std::uint32_t>(number);
    case DType::int32:
      return integer_bytes<std::int32_t>(number);
    case DType::uint64:
      return integer_bytes<std::uint64_t>(number);
    case DType::int64:
      return integer_bytes<std::int64_t>(number);
    case DType::float16:
      return bytes_of_value(to_float16(static_cast<float>(number)));
    case DType::bfloat16:
      return bytes_of_value(to_bfloat16(static_cast<float>(number)));
    case DType::float32:
      return bytes_of_value(static_cast<float>(number));
    case DType::float64:
      return bytes_of_value(number);
  }
  return {};
}

/// A field as workers copy it.
struct CopiedField {
  FieldSpec spec{};
  /// Size of the field in bytes; for a variable field, the largest size.
  std::size_t bytes = 0;
  /// Bytes per entry of a variable field's first axis.
  std::size_t value_bytes = 0;
  /// Bytes of the number that fills the rest of a variable field; empty for zeros.
  std::vector<std::byte> fill{};
  /// Field that receives the length, if the transform's spec has one.
  std::optional<std::size_t> length_field{};
};

std::string raw_in_words(const FieldSpec& field) {
  return std::string(to_string(field.dtype)) + " " + field.shape.to_string();
}

/// Returns the number as text: with six decimals if these are exact, else with as many as it needs.
/// The text does not depend on the locale.
std::string text_of(double number) {
  std::array<char, 400> text;
  auto end = std::to_chars(text.begin(), text.end(), number, std::chars_format::fixed, 6).ptr;
  double read = 0;
  std::from_chars(text.data(), end, read);
  if (read != number) end = std::to_chars(text.begin(), text.end(), number).ptr;
  return {text.data(), end};
}

class RawWorker final : public TransformWorker {
 public:
  explicit RawWorker(const std::vector<CopiedField>& fields) : fields_(fields) {}

  Status make(const Record& record, Random&, Sample& sample) override {
    for (std::size_t place = 0; place < fields_.size(); ++place) {
      const CopiedField& field = fields_[place];
      if (!record.has(field.spec.name))
        return Status::bad("it has no field \"" + field.spec.name + "\"");
      const std::span<const std::byte> bytes = record[field.spec.name];
      auto* const to = static_cast<std::byte*>(sample[place].data);
      if (field.spec.variable) {
        if (Status copied = copy_varying(field, place, bytes, to, sample); !copied.is_ok())
          return copied;
      } else if (bytes.size() != field.bytes) {
        return Status::bad("its field \"" + field.spec.name + "\" has " +
                           std::to_string(bytes.size()) + " bytes; " + raw_in_words(field.spec) +
                           " has " + std::to_string(field.bytes));
      } else {
        std::memcpy(to, bytes.data(), bytes.size());
      }
    }
    return Status::ok();
  }

 private:
  static Status copy_varying(const CopiedField& field, std::size_t place,
                             std::span<const std::byte> bytes, std::byte* to, Sample& sample) {
    if (bytes.size() % field.value_bytes != 0)
      return Status::bad("its field \"" + field.spec.name + "\" has " +
                         std::to_string(bytes.size()) + " bytes; its values have " +
                         std::to_string(field.value_bytes) + " each");
    const std::size_t copied = std::min(bytes.size(), field.bytes);
    if (copied > 0) std::memcpy(to, bytes.data(), copied);
    const std::size_t length = copied / field.value_bytes;
    if (!field.length_field) {
      sample.set_length(place, length);
      return Status::ok();
    }
    for (std::size_t at = copied; at < field.bytes; at += field.fill.size())
      std::memcpy(to + at, field.fill.data(), field.fill.size());
    const auto value = static_cast<std::uint32_t>(length);
    std::memcpy(sample[*field.length_field].data, &value, sizeof value);
    return Status::ok();
  }

  const std::vector<CopiedField>& fields_;
};

class RawTransform final : public Transform {
 public:
  explicit RawTransform(const std::vector<RawField>& fields) {
    std::vector<FieldSpec> made;
    std::vector<FieldSpec> lengths;
    for (const RawField& field : fields) {
      const FieldSpec& spec = field.spec;
      if (spec.variable && spec.shape.rank() == 0)
        refuse_raw_field(spec, "is a scalar, which cannot vary in length; give it a shape[0]");
      if (spec.variable && spec.shape[0] == 0)
        refuse_raw_field(spec,
                         "varies in length without a maximum; give it a shape[0] (for arrays, "
                         "\"max_length\" in their description)");
      description_ +=
          (description_.empty() ? "raw: " : ", ") + spec.name + " " + raw_in_words(spec);
      CopiedField copied{.spec = spec};
      FieldSpec in_sample = spec;
      if (spec.variable) {
        std::vector<std::byte> fill = bytes_of_number(spec.dtype, field.fill);
        if (fill.empty())
          refuse_raw_field(spec, "is " + std::string(to_string(spec.dtype)) +
                                     ", which cannot hold " + std::to_string(field.fill) +
                                     ", its fill value");
        description_ += " filled with " + text_of(field.fill);
        if (field.fill != 0) {
          in_sample.variable = false;
          copied.fill = std::move(fill);
          copied.length_field = fields.size() + lengths.size();
          lengths.push_back({spec.name + ".length", DType::uint32, Shape{}});
        }
      }
      made.push_back(std::move(in_sample));
      fields_.push_back(std::move(copied));
    }
    made.insert(made.end(), lengths.begin(), lengths.end());
    spec_ = SampleSpec(std::move(made));
    for (CopiedField& field : fields_) {
      field.bytes = field.spec.shape.elements() * size_of(field.spec.dtype);
      if (field.spec.variable) field.value_bytes = field.bytes / field.spec.shape[0];
    }
  }

  const SampleSpec& spec() const override { return spec_; }
  std::string description() const override { return description_; }
  std::optional<std::uint64_t> fingerprint() const override {
    return XXH3_64bits(description_.data(), description_.size());
  }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<RawWorker>(fields_);
  }

 private:
  SampleSpec spec_;
  std::vector<CopiedField> fields_;
  std::string description_;
};

}  // namespace

std::vector<RawField> raw_fields(const Dataset& dataset) {
  std::vector<RawField> fields;
  for (FieldSpec& spec : dataset.field_specs()) fields.push_back({.spec = std::move(spec)});
  if (fields.empty())
    throw Error(ErrorCode::invalid_argument,
                dataset.name() +
                    " does not say what dtype and shape its fields have; pass them to "
                    "raw_transform");
  return fields;
}

std::shared_ptr<const Transform> raw_transform(const std::vector<RawField>& fields) {
  return std::make_shared<RawTransform>(fields);
}

std::shared_ptr<const Transform> raw_transform(const Dataset& dataset) {
  return raw_transform(raw_fields(dataset));
}

}  // namespace millrace
