// SPDX-License-Identifier: Apache-2.0
#include <millrace/c_order.h>
#include <millrace/concat_dataset.h>
#include <millrace/dataset.h>
#include <millrace/detail/json_text.h>
#include <millrace/one_pass_dataset.h>

#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "c/callback_owner.h"
#include "c/calls.h"
#include "c/handles.h"

namespace millrace::c {
namespace {

using Json = nlohmann::ordered_json;

struct DatasetCallbacks : CallbackOwner<millrace_dataset_callbacks> {
  std::string name;
};

/// A reader that the caller's callbacks implement.
class CallbackReader final : public DatasetReader {
 public:
  explicit CallbackReader(std::shared_ptr<const DatasetCallbacks> callbacks)
      : callbacks_(std::move(callbacks)),
        state_(callbacks_->calls.make_reader, callbacks_->calls.free_reader, callbacks_->calls.user,
               callbacks_->name + ": ") {}

  Record read(std::uint64_t index) override {
    millrace_record record{index, nullptr, 0};
    millrace_error error{};
    const std::string where = callbacks_->name + ": record " + std::to_string(index) + ": ";
    const millrace_status status = callbacks_->calls.read(state_.get(), index, &record, &error);
    if (status != MILLRACE_OK) throw callback_error(where, status, error);
    if (record.n_fields > 0 && record.fields == nullptr)
      throw Error(ErrorCode::invalid_argument,
                  where + "the callback read gave n_fields, but no fields");
    fields_.clear();
    for (std::size_t k = 0; k < record.n_fields; ++k) {
      const millrace_field& field = record.fields[k];
      if (field.name == nullptr || (field.data == nullptr && field.bytes > 0))
        throw Error(ErrorCode::invalid_argument, where + "the callback read gave field " +
                                                     std::to_string(k) + " without a name or data");
      fields_.push_back({field.name, {static_cast<const std::byte*>(field.data), field.bytes}});
    }
    return {index, fields_};
  }

 private:
  const std::shared_ptr<const DatasetCallbacks> callbacks_;
  const CallbackState state_;
  std::vector<RecordField> fields_;
};

class CallbackDataset final : public Dataset {
 public:
  explicit CallbackDataset(std::shared_ptr<const DatasetCallbacks> callbacks)
      : callbacks_(std::move(callbacks)) {}

  std::uint64_t size() const override { return callbacks_->calls.size; }
  std::string name() const override { return callbacks_->name; }
  std::unique_ptr<DatasetReader> make_reader() const override {
    return std::make_unique<CallbackReader>(callbacks_);
  }
  void prefetch(std::span<const std::uint64_t> indices) const override {
    if (callbacks_->calls.prefetch != nullptr)
      callbacks_->calls.prefetch(callbacks_->calls.user, indices.data(), indices.size());
  }

 private:
  const std::shared_ptr<const DatasetCallbacks> callbacks_;
};

std::string hexadecimal(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, number);
  return digits;
}

OpenOptions open_options_of(const millrace_open_options* options) {
  OpenOptions to;
  if (options == nullptr) return to;
  const millrace_open_options from = copied(options, "options");
  const auto set = [](std::string& text, const char* value) {
    if (value != nullptr) text = value;
  };
  set(to.format, from.format);
  set(to.images, from.images);
  set(to.labels, from.labels);
  to.map = from.no_map == 0;
  to.verify_checksums = from.no_checksums == 0;
  to.hints = from.no_hints == 0;
  return to;
}

/// Returns the number of records; null for a stream, whose length is not known.
Json records_of(const Dataset& dataset) {
  if (is_one_pass(dataset)) return nullptr;
  return dataset.size();
}

std::string description_of(const Dataset& dataset) {
  const DatasetFacts facts = dataset.facts();
  const auto escaped = [](std::vector<std::string> names) {
    for (std::string& name : names) name = escape_non_utf8(name);
    return names;
  };
  Json json = {{"name", escape_non_utf8(dataset.name())}, {"records", records_of(dataset)}};
  json["can_restart"] = can_restart(dataset);
  json["classes"] = escaped(dataset.classes());
  json["fields"] = escaped(facts.fields);
  json["files"] = escaped(facts.files);
  json["fingerprint"] = nullptr;
  if (facts.fingerprint) json["fingerprint"] = hexadecimal(*facts.fingerprint);
  json["warnings"] = facts.warnings;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace
}  // namespace millrace::c

using namespace millrace::c;

millrace_status millrace_dataset_open(const char* path, millrace_dataset** dataset,
                                      millrace_error* error) {
  return millrace_dataset_open_with(path, nullptr, dataset, error);
}

millrace_status millrace_dataset_open_with(const char* path, const millrace_open_options* options,
                                           millrace_dataset** dataset, millrace_error* error) {
  return guarded(error, [&] {
    millrace_dataset*& handle = result_at(dataset, "dataset");
    required(path, "path");
    handle = put<millrace_dataset>(millrace::open_dataset(path, open_options_of(options)));
  });
}

millrace_status millrace_dataset_create(const millrace_dataset_callbacks* callbacks,
                                        millrace_dataset** dataset, millrace_error* error) {
  return guarded(error, [&] {
    millrace_dataset*& handle = result_at(dataset, "dataset");
    const auto owner = std::make_shared<DatasetCallbacks>();
    owner->calls = copied(callbacks, "callbacks");
    owner->name = required(owner->calls.name, "callbacks->name");
    required(owner->calls.read, "callbacks->read");
    handle = put<millrace_dataset>(std::make_shared<CallbackDataset>(owner));
    owner->take();
  });
}

millrace_status millrace_dataset_concat(const millrace_dataset* const* parts, size_t n_parts,
                                        millrace_dataset** dataset, millrace_error* error) {
  return guarded(error, [&] {
    millrace_dataset*& handle = result_at(dataset, "dataset");
    if (n_parts > 0) required(parts, "parts");
    std::vector<std::shared_ptr<const millrace::Dataset>> datasets;
    for (std::size_t k = 0; k < n_parts; ++k) datasets.push_back(get(parts[k]));
    handle = put<millrace_dataset>(millrace::concat_datasets(std::move(datasets)));
  });
}

millrace_status millrace_dataset_size(const millrace_dataset* dataset, uint64_t* size,
                                      millrace_error* error) {
  return guarded(error, [&] {
    std::uint64_t& into = result_at(size, "size");
    into = get(dataset)->size();
  });
}

millrace_status millrace_dataset_describe(const millrace_dataset* dataset, char** json,
                                          millrace_error* error) {
  return guarded(error, [&] {
    char*& text = result_at(json, "json");
    text = text_of(description_of(*get(dataset)));
  });
}

void millrace_dataset_free(millrace_dataset* dataset) { drop(dataset); }
