// SPDX-License-Identifier: Apache-2.0
#include <millrace/image_transform.h>
#include <millrace/raw_transform.h>
#include <millrace/transform.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "c/callback_owner.h"
#include "c/calls.h"
#include "c/field_spec.h"
#include "c/handles.h"

namespace millrace::c {
namespace {

struct TransformCallbacks : CallbackOwner<millrace_transform_callbacks> {
  SampleSpec spec;
  std::string description;
};

/// A worker that the caller's callbacks implement.
class CallbackWorker final : public TransformWorker {
 public:
  explicit CallbackWorker(std::shared_ptr<const TransformCallbacks> callbacks)
      : callbacks_(std::move(callbacks)),
        state_(callbacks_->calls.make_worker, callbacks_->calls.free_worker, callbacks_->calls.user,
               "the transform: ") {}

  Status make(const Record& record, Random& random, Sample& sample) override {
    const std::size_t n_fields = callbacks_->calls.n_fields;
    lengths_.assign(n_fields, 0);
    fields_.resize(n_fields);
    for (std::size_t k = 0; k < n_fields; ++k) fields_[k] = sample[k].data;
    millrace_sample into{fields_.data(), lengths_.data(),
                         reinterpret_cast<millrace_random*>(&random)};
    const millrace_record from = c_record(record);
    millrace_error error{};
    const millrace_status status = callbacks_->calls.make(state_.get(), &from, &into, &error);
    if (status != MILLRACE_OK) {
      const Error failed = callback_error({}, status, error);
      if (status == MILLRACE_BAD_RECORD) return Status::bad(failed.what());
      throw failed;
    }
    for (std::size_t k = 0; k < n_fields; ++k)
      if (callbacks_->spec.fields()[k].variable) sample.set_length(k, lengths_[k]);
    return Status::ok();
  }

 private:
  /// Returns the record as a C struct, with names that end in 0.
  millrace_record c_record(const Record& record) {
    const std::span<const RecordField> fields = record.fields();
    names_.resize(fields.size());
    record_fields_.resize(fields.size());
    for (std::size_t k = 0; k < fields.size(); ++k) {
      if (names_[k] != fields[k].name) names_[k] = fields[k].name;
      record_fields_[k] = {names_[k].c_str(), fields[k].bytes.data(), fields[k].bytes.size()};
    }
    return {record.index(), record_fields_.data(), record_fields_.size()};
  }

  const std::shared_ptr<const TransformCallbacks> callbacks_;
  const CallbackState state_;
  std::vector<void*> fields_;
  std::vector<std::size_t> lengths_;
  std::vector<std::string> names_;
  std::vector<millrace_field> record_fields_;
};

class CallbackTransform final : public Transform {
 public:
  explicit CallbackTransform(std::shared_ptr<const TransformCallbacks> callbacks)
      : callbacks_(std::move(callbacks)) {}

  const SampleSpec& spec() const override { return callbacks_->spec; }
  std::optional<std::uint64_t> fingerprint() const override {
    if (callbacks_->calls.fingerprint == 0) return std::nullopt;
    return callbacks_->calls.fingerprint;
  }
  std::string description() const override { return callbacks_->description; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<CallbackWorker>(callbacks_);
  }

 private:
  const std::shared_ptr<const TransformCallbacks> callbacks_;
};

/// Parses a recipe. A text that does not begin as JSON is the name of a preset, for images of
/// `size` x `size`; 0 = the preset's own size.
Recipe recipe_of(const std::string& text, std::uint32_t size) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || text[begin] == '{' || text[begin] == '[') {
    if (size != 0)
      throw_argument("the size is " + std::to_string(size) +
                     ", but the recipe is not a preset: set its \"output\" instead");
    return Recipe::from_json(text, "recipe");
  }
  if (size == 0) return Recipe::preset(text);
  constexpr std::uint32_t most = std::numeric_limits<int>::max();
  return Recipe::preset(text, static_cast<int>(std::min(size, most)));
}

std::vector<RawField> raw_fields_of(const millrace_raw_field* given, std::size_t n_fields) {
  required(given, "fields");
  std::vector<RawField> fields;
  for (std::size_t k = 0; k < n_fields; ++k)
    fields.push_back(
        {field_of(given[k].spec, "fields[" + std::to_string(k) + "].spec."), given[k].fill});
  return fields;
}

/// Throws `Error` (`invalid_argument`) for a field that the dataset lacks or has with another
/// dtype.
void check_fields(const Dataset& dataset, const std::vector<RawField>& fields) {
  const std::vector<FieldSpec> specs = dataset.field_specs();
  // Without specifications, `facts` has only the names of one record; other records may have more.
  const std::vector<std::string> known =
      specs.empty() ? std::vector<std::string>() : dataset.facts().fields;
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "\"" : ", \"") + name + '"';
  for (std::size_t k = 0; k < fields.size(); ++k) {
    const FieldSpec& field = fields[k].spec;
    const std::string where = "fields[" + std::to_string(k) + "].spec.";
    if (!known.empty() && std::ranges::find(known, field.name) == known.end())
      throw_argument(where + "name is \"" + field.name + "\", but the fields of " + dataset.name() +
                     " are " + names);
    const auto described = std::ranges::find(specs, field.name, &FieldSpec::name);
    if (described != specs.end() && described->dtype != field.dtype)
      throw_argument(where + "dtype is \"" + to_string(field.dtype) + "\", but the field \"" +
                     field.name + "\" of " + dataset.name() + " is " + to_string(described->dtype));
  }
}

DecodeLimits limits_of(const millrace_decode_limits* limits) {
  DecodeLimits to;
  if (limits == nullptr) return to;
  const millrace_decode_limits from = copied(limits, "limits");
  const auto set = [](std::uint64_t& limit, std::uint64_t value) {
    if (value != 0) limit = value;
  };
  set(to.max_pixels, from.max_pixels);
  set(to.max_pixels_per_byte, from.max_pixels_per_byte);
  set(to.max_scan_pixels, from.max_scan_pixels);
  set(to.max_decode_bytes, from.max_decode_bytes);
  return to;
}

std::string fields_json(const Transform& transform) {
  nlohmann::ordered_json fields = nlohmann::ordered_json::array();
  for (const FieldSpec& field : transform.spec().fields())
    fields.push_back(
        {{"name", field.name},
         {"dtype", to_string(field.dtype)},
         {"shape", std::vector(field.shape.extents().begin(), field.shape.extents().end())},
         {"variable", field.variable}});
  return fields.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Random& random_of(millrace_random* random) { return *reinterpret_cast<Random*>(random); }

}  // namespace
}  // namespace millrace::c

using namespace millrace::c;

millrace_status millrace_transform_images(const char* recipe, millrace_transform** transform,
                                          millrace_error* error) {
  return millrace_transform_images_with(recipe, nullptr, transform, error);
}

millrace_status millrace_transform_images_with(const char* recipe,
                                               const millrace_decode_limits* limits,
                                               millrace_transform** transform,
                                               millrace_error* error) {
  return guarded(error, [&] {
    millrace_transform*& handle = result_at(transform, "transform");
    const millrace::Recipe images = recipe_of(required(recipe, "recipe"), 0);
    handle = put<millrace_transform>(millrace::image_transform(images, limits_of(limits)));
  });
}

millrace_status millrace_recipe_json(const char* recipe, uint32_t size, char** json,
                                     millrace_error* error) {
  return guarded(error, [&] {
    char*& text = result_at(json, "json");
    text = text_of(recipe_of(required(recipe, "recipe"), size).to_json());
  });
}

millrace_status millrace_transform_raw(const millrace_dataset* dataset,
                                       const millrace_raw_field* fields, size_t n_fields,
                                       millrace_transform** transform, millrace_error* error) {
  return guarded(error, [&] {
    millrace_transform*& handle = result_at(transform, "transform");
    const auto made =
        n_fields == 0 ? millrace::raw_fields(*get(dataset)) : raw_fields_of(fields, n_fields);
    if (n_fields > 0 && dataset != nullptr) check_fields(*get(dataset), made);
    handle = put<millrace_transform>(millrace::raw_transform(made));
  });
}

millrace_status millrace_transform_create(const millrace_transform_callbacks* callbacks,
                                          millrace_transform** transform, millrace_error* error) {
  return guarded(error, [&] {
    millrace_transform*& handle = result_at(transform, "transform");
    const auto owner = std::make_shared<TransformCallbacks>();
    owner->calls = copied(callbacks, "callbacks");
    required(owner->calls.make, "callbacks->make");
    owner->spec = millrace::SampleSpec(fields_of(owner->calls.fields, owner->calls.n_fields));
    if (owner->calls.description != nullptr) owner->description = owner->calls.description;
    handle = put<millrace_transform>(std::make_shared<CallbackTransform>(owner));
    owner->take();
  });
}

millrace_status millrace_transform_fields(const millrace_transform* transform, char** json,
                                          millrace_error* error) {
  return guarded(error, [&] {
    char*& text = result_at(json, "json");
    text = text_of(fields_json(*get(transform)));
  });
}

void millrace_transform_free(millrace_transform* transform) { drop(transform); }

uint64_t millrace_random_bits(millrace_random* random) {
  return random == nullptr ? 0 : random_of(random).bits64();
}

double millrace_random_uniform(millrace_random* random) {
  return random == nullptr ? 0 : random_of(random).uniform();
}
