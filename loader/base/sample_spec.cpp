// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/sample_spec.h>

#include <algorithm>

namespace millrace {
namespace {

constexpr std::size_t no_length = static_cast<std::size_t>(-1);
/// Maximal bytes of a field in one sample. It keeps the size of a batch from overflowing.
constexpr std::size_t max_bytes = std::size_t{1} << 40U;

[[noreturn]] void refuse_spec(const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, problem);
}

std::string in_words(const FieldSpec& field) { return "the field \"" + field.name + "\""; }

void check(const FieldSpec& field) {
  if (field.name.empty()) refuse_spec("a sample field has no name");
  if (field.variable && field.shape.rank() == 0)
    refuse_spec("the variable field \"" + field.name +
                "\" is a scalar; it needs an extent that varies");
  const std::string has_shape = in_words(field) + " has shape " + field.shape.to_string();
  if (field.shape.rank() == Shape::max_rank)
    refuse_spec(has_shape + "; at most " + std::to_string(Shape::max_rank - 1) +
                " extents leave room for the batch");
  if (std::ranges::count(field.shape.extents(), 0U) > 0) refuse_spec(has_shape + " with a 0");
  std::size_t room = max_bytes / size_of(field.dtype);
  for (const std::size_t extent : field.shape.extents()) room /= extent;
  if (room == 0) refuse_spec(has_shape + ", more than " + std::to_string(max_bytes) + " bytes");
}

/// A kind of field whose numbers tell the device what to do with the images of another field.
struct ImageNumbers {
  std::string FieldSpec::*image;
  const char* purpose;
  DType dtype;
  Shape shape;
  const char* form;
};
const ImageNumbers image_numbers[] = {
    {&FieldSpec::flipped_image, "flips", DType::uint8, {}, "a uint8 scalar"},
    {&FieldSpec::erased_image, "erased boxes", DType::int32, {8}, "int32 [8]"},
    {&FieldSpec::mixed_image, "mixing", DType::int32, {5}, "int32 [5]"},
};

void check_numbers(const ImageNumbers& numbers, const FieldSpec& field,
                   const std::vector<FieldSpec>& fields) {
  const std::string& image = field.*numbers.image;
  if (image.empty()) return;
  const std::string says =
      in_words(field) + " has the " + numbers.purpose + " of \"" + image + "\"";
  if (field.dtype != numbers.dtype || field.shape != numbers.shape)
    refuse_spec(says + " and must be " + numbers.form + "; it is " + to_string(field.dtype) + " " +
                field.shape.to_string());
  bool found = false;
  for (const FieldSpec& other : fields) {
    if (&other == &field) continue;
    if (other.*numbers.image == image) refuse_spec(says + ", and so has \"" + other.name + "\"");
    found = found || other.name == image;
  }
  if (!found) refuse_spec(says + ", and there is no other field of that name");
}

}  // namespace

SampleSpec::SampleSpec(std::vector<FieldSpec> fields) : fields_(std::move(fields)) {
  if (fields_.empty()) refuse_spec("a sample needs at least one field");
  const std::size_t given = fields_.size();
  length_fields_.assign(given, no_length);
  for (std::size_t field = 0; field < given; ++field) {
    check(fields_[field]);
    if (!fields_[field].variable) continue;
    length_fields_[field] = fields_.size();
    fields_.push_back({fields_[field].name + ".length", DType::uint32, Shape{}, false});
  }
  length_fields_.resize(fields_.size(), no_length);
  for (std::size_t a = 0; a < fields_.size(); ++a)
    for (std::size_t b = a + 1; b < fields_.size(); ++b)
      if (fields_[a].name == fields_[b].name)
        refuse_spec("the sample field \"" + fields_[a].name + "\" comes twice");
  for (const FieldSpec& field : fields_)
    for (const ImageNumbers& numbers : image_numbers) check_numbers(numbers, field, fields_);
}

std::size_t SampleSpec::index_of(std::string_view name) const {
  for (std::size_t field = 0; field < fields_.size(); ++field)
    if (fields_[field].name == name) return field;
  std::string names;
  for (const FieldSpec& field : fields_)
    names += (names.empty() ? "\"" : ", \"") + field.name + "\"";
  throw Error(ErrorCode::not_found,
              "there is no sample field \"" + std::string(name) + "\"; there are " + names);
}

std::size_t SampleSpec::length_field_of(std::size_t field) const {
  if (length_fields_.at(field) == no_length)
    refuse_spec(in_words(fields_[field]) + " has a fixed length");
  return length_fields_[field];
}

std::size_t SampleSpec::bytes_per_sample() const {
  std::size_t bytes = 0;
  for (const FieldSpec& field : fields_) bytes += field.shape.elements() * size_of(field.dtype);
  return bytes;
}

}  // namespace millrace
