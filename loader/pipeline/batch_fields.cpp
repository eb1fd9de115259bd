// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch_fields.h"

#include <millrace/device_stage.h>
#include <millrace/error.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace millrace {
namespace {

[[noreturn]] void refuse_conversion(const std::string& option, const std::string& value,
                                    const std::string& why) {
  throw Error(ErrorCode::invalid_argument, "conversion." + option + " is " + value + "; " + why);
}

std::string in_quotes(std::string_view name) { return '"' + std::string(name) + '"'; }

std::optional<std::size_t> find_field(const SampleSpec& spec, std::string_view name) {
  const auto& fields = spec.fields();
  const auto found = std::ranges::find(fields, name, &FieldSpec::name);
  return found == fields.end() ? std::nullopt
                               : std::optional(static_cast<std::size_t>(found - fields.begin()));
}

const FieldSpec& checked_image(const SampleSpec& made, const Conversion& conversion) {
  const std::optional<std::size_t> field = find_field(made, conversion.field);
  if (!field) {
    std::string names;
    for (const FieldSpec& one : made.fields())
      names += (names.empty() ? "" : ", ") + in_quotes(one.name);
    refuse_conversion("field", in_quotes(conversion.field),
                      "samples do not have this field; they have " + names);
  }
  const FieldSpec& image = made.fields()[*field];
  if (image.variable)
    refuse_conversion("field", in_quotes(image.name),
                      "that field varies in length and cannot be converted");
  const std::size_t rank = image.shape.rank();
  if (image.dtype != DType::uint8 || (rank != 3 && rank != 4) ||
      image.shape[rank - 1] > Conversion::max_channels)
    refuse_conversion(
        "field", in_quotes(image.name),
        "that field is " + std::string(to_string(image.dtype)) + " " + image.shape.to_string() +
            "; conversion needs uint8 [height, width, channels] or [images, height, " +
            "width, channels] with 1 to " + std::to_string(Conversion::max_channels) + " channels");
  return image;
}

/// Throws unless `option` has one value per channel. `values` is the number of its values; 0 if it
/// is not known.
void check_count(const char* option, std::size_t values, const std::string& field,
                 std::size_t channels) {
  if (values == 0 || values == channels) return;
  const auto counted = [](std::size_t count, const char* noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
  };
  throw Error(ErrorCode::invalid_argument,
              std::string("conversion.") + option + " has " + counted(values, "value") + ", but " +
                  in_quotes(field) + " has " + counted(channels, "channel") +
                  "; give one value for each channel");
}

void check_values(const Conversion& conversion, std::size_t channels) {
  const bool to_bytes = conversion.dtype == DType::uint8;
  if (!to_bytes && conversion.dtype != DType::float16 && conversion.dtype != DType::bfloat16 &&
      conversion.dtype != DType::float32)
    refuse_conversion("dtype", to_string(conversion.dtype),
                      "it must be uint8, float16, bfloat16 or float32");
  if (conversion.layout != ImageLayout::nhwc && conversion.layout != ImageLayout::nchw)
    refuse_conversion("layout", std::to_string(static_cast<int>(conversion.layout)),
                      "it must be nhwc or nchw");
  check_count("mean", conversion.mean_values, conversion.field, channels);
  check_count("std", conversion.std_values, conversion.field, channels);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const float mean = conversion.mean[channel];
    const float std = conversion.std[channel];
    const std::string place = std::string("[").append(std::to_string(channel)).append("]");
    if (!std::isfinite(mean))
      refuse_conversion("mean" + place, std::to_string(mean), "it must be finite");
    if (!std::isfinite(std) || std == 0)
      refuse_conversion("std" + place, std::to_string(std), "it must be finite and not 0");
    if (to_bytes && mean != 0)
      refuse_conversion("mean" + place, std::to_string(mean),
                        "it must be 0 where conversion.dtype is uint8");
    if (to_bytes && std != 1)
      refuse_conversion("std" + place, std::to_string(std),
                        "it must be 1 where conversion.dtype is uint8");
  }
}

/// Returns the shape of one converted sample.
Shape converted_shape(const Shape& image, ImageLayout layout) {
  if (layout == ImageLayout::nhwc) return image;
  const std::size_t channels = image.rank() - 1;
  const Shape planes{image[channels], image[channels - 2], image[channels - 1]};
  return image.rank() == 4 ? planes.with_outer(image[0]) : planes;
}

}  // namespace

BatchFields::BatchFields(const SampleSpec& made, const std::optional<Conversion>& conversion,
                         const std::vector<FieldSpec>& added) {
  if (conversion) {
    const Shape& image = checked_image(made, *conversion).shape;
    check_values(*conversion, image[image.rank() - 1]);
  }
  std::vector<FieldSpec> fields = made.fields();
  // The length of a variable field is already a separate field.
  for (FieldSpec& field : fields) field.variable = false;
  fields.insert(fields.end(), added.begin(), added.end());
  fields = SampleSpec(std::move(fields)).fields();
  for (std::size_t place = 0; place < fields.size(); ++place) {
    FieldSpec& field = fields[place];
    field.variable = false;
    const auto take = [&](const std::string& image, const char* what,
                          std::optional<std::size_t>& numbers) {
      if (image.empty()) return;
      if (!conversion || conversion->field != image)
        throw Error(ErrorCode::invalid_argument,
                    std::string("the transform leaves the ") + what + " of " + in_quotes(image) +
                        " to the device (field " + in_quotes(field.name) + "), but conversion " +
                        (conversion ? "applies to " + in_quotes(conversion->field) : "is not set") +
                        "; convert that field, or let a worker do it");
      const Shape& shape = made.fields()[*find_field(made, image)].shape;
      if (shape.rank() != 3)
        throw Error(ErrorCode::invalid_argument,
                    std::string("the transform leaves the ") + what + " of " + in_quotes(image) +
                        " to the device (field " + in_quotes(field.name) +
                        "), which takes one image of a sample, and that field is " +
                        shape.to_string());
      numbers = place;
    };
    if (!field.device_stages.empty() && (!conversion || conversion->field != field.name))
      throw Error(ErrorCode::invalid_argument,
                  "the transform leaves a stage (" +
                      std::string(field.device_stages.front()->name()) + ") of " +
                      in_quotes(field.name) + " to the device, but conversion " +
                      (conversion ? "applies to " + in_quotes(conversion->field) : "is not set") +
                      "; convert that field, or let a worker do it");
    take(field.flipped_image, "flips", flip_field_);
    take(field.erased_image, "erasing", erase_field_);
    take(field.mixed_image, "mixing", mix_field_);
  }
  if (!find_field(made, "index")) {
    index_ = fields.size();
    fields.push_back({"index", DType::uint64, {}});
  }
  if (!find_field(made, "valid")) {
    valid_ = fields.size();
    fields.push_back({"valid", DType::uint8, {}});
  }
  made_ = SampleSpec(fields);
  if (conversion) {
    image_ = find_field(made, conversion->field);
    fields[*image_].device_stages.clear();
    fields[*image_].dtype = conversion->dtype;
    fields[*image_].shape = converted_shape(fields[*image_].shape, conversion->layout);
  }
  converted_ = SampleSpec(std::move(fields));
}

}  // namespace millrace
