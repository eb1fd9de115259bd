// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlpack/dlpack.h>
#include <gtest/gtest.h>
#include <millrace/millrace.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

// A dataset and a transform of C callbacks. Record N holds the number N. Its sample has N as
// "label" (int64), and N % 3 times in "list" (uint32, up to 3).
namespace millrace::testing {

struct FreeTensor {
  void operator()(DLManagedTensor* tensor) const { tensor->deleter(tensor); }
};
using OwnedTensor = std::unique_ptr<DLManagedTensor, FreeTensor>;

template <typename Element>
std::vector<Element> elements(const DLManagedTensor& tensor) {
  std::size_t count = 1;
  for (int axis = 0; axis < tensor.dl_tensor.ndim; ++axis)
    count *= static_cast<std::size_t>(tensor.dl_tensor.shape[axis]);
  EXPECT_EQ(tensor.dl_tensor.dtype.bits, 8 * sizeof(Element));
  const auto* const first = static_cast<const Element*>(tensor.dl_tensor.data);
  return {first, first + count};
}

/// State of the callbacks below, with the failures that they simulate.
struct Numbers {
  /// Results of `read` and `make`; of the record `bad_record` they are MILLRACE_BAD_RECORD.
  millrace_status read_status = MILLRACE_OK;
  millrace_status make_status = MILLRACE_OK;
  std::uint64_t bad_record = UINT64_MAX;
  const char* message = "";
  std::size_t length_beyond = 0;
  // Mere counters.
  std::atomic<int> readers{0};
  std::atomic<int> workers{0};
  std::atomic<int> freed{0};
};

struct NumbersReader {
  Numbers* numbers;
  std::int64_t value;
  millrace_field field;
};

inline millrace_status fail(millrace_status status, const char* message, millrace_error* error) {
  std::strcpy(error->message, message);
  return status;
}

inline millrace_dataset_callbacks numbers_dataset(Numbers& numbers, std::uint64_t size = 64) {
  millrace_dataset_callbacks callbacks{};
  callbacks.struct_bytes = sizeof callbacks;
  callbacks.user = &numbers;
  callbacks.name = "numbers";
  callbacks.size = size;
  callbacks.make_reader = [](void* user, void** reader,
                             millrace_error* /*error*/) -> millrace_status {
    auto* const all = static_cast<Numbers*>(user);
    ++all->readers;
    *reader = new NumbersReader{all, 0, {}};
    return MILLRACE_OK;
  };
  callbacks.free_reader = [](void* reader) {
    auto* const one = static_cast<NumbersReader*>(reader);
    --one->numbers->readers;
    delete one;
  };
  callbacks.read = [](void* reader, std::uint64_t index, millrace_record* record,
                      millrace_error* error) -> millrace_status {
    auto* const one = static_cast<NumbersReader*>(reader);
    const Numbers& all = *one->numbers;
    if (all.read_status != MILLRACE_OK && (all.bad_record == UINT64_MAX || all.bad_record == index))
      return fail(all.read_status, all.message, error);
    one->value = static_cast<std::int64_t>(index);
    one->field = {"number", &one->value, sizeof one->value};
    record->fields = &one->field;
    record->n_fields = 1;
    return MILLRACE_OK;
  };
  callbacks.free_user = [](void* user) { ++static_cast<Numbers*>(user)->freed; };
  return callbacks;
}

inline constexpr std::array<millrace_field_spec, 2> number_fields{
    {{"label", "int64", 0, {}, 0}, {"list", "uint32", 1, {3}, 1}}};

inline millrace_transform_callbacks numbers_transform(Numbers& numbers) {
  millrace_transform_callbacks callbacks{};
  callbacks.struct_bytes = sizeof callbacks;
  callbacks.user = &numbers;
  callbacks.fields = number_fields.data();
  callbacks.n_fields = number_fields.size();
  callbacks.description = "numbers as they are";
  callbacks.fingerprint = 17;
  callbacks.make_worker = [](void* user, void** worker,
                             millrace_error* /*error*/) -> millrace_status {
    ++static_cast<Numbers*>(user)->workers;
    *worker = user;
    return MILLRACE_OK;
  };
  callbacks.free_worker = [](void* worker) { --static_cast<Numbers*>(worker)->workers; };
  callbacks.make = [](void* worker, const millrace_record* record, millrace_sample* sample,
                      millrace_error* error) -> millrace_status {
    const Numbers& all = *static_cast<const Numbers*>(worker);
    if (all.make_status != MILLRACE_OK &&
        (all.bad_record == UINT64_MAX || all.bad_record == record->index))
      return fail(all.make_status, all.message, error);
    if (record->n_fields != 1 || std::strcmp(record->fields[0].name, "number") != 0)
      return fail(MILLRACE_INTERNAL, "no field \"number\"", error);
    std::memcpy(sample->fields[0], record->fields[0].data, record->fields[0].bytes);
    const std::size_t length = record->index % 3;
    std::fill_n(static_cast<std::uint32_t*>(sample->fields[1]), length,
                static_cast<std::uint32_t>(record->index));
    sample->lengths[1] = length + all.length_beyond;
    return MILLRACE_OK;
  };
  callbacks.free_user = [](void* user) { ++static_cast<Numbers*>(user)->freed; };
  return callbacks;
}

/// The handles of one run over numbers; the destructor frees those that are left.
struct NumbersRun {
  NumbersRun() {
    const auto records = numbers_dataset(numbers);
    EXPECT_EQ(millrace_dataset_create(&records, &dataset, &error), MILLRACE_OK) << error.message;
    const auto samples = numbers_transform(numbers);
    EXPECT_EQ(millrace_transform_create(&samples, &transform, &error), MILLRACE_OK)
        << error.message;
    setup.struct_bytes = sizeof setup;
    setup.dataset = dataset;
    setup.transform = transform;
  }
  NumbersRun(const NumbersRun&) = delete;
  NumbersRun& operator=(const NumbersRun&) = delete;
  ~NumbersRun() { free_all(); }

  millrace_status start(const char* options) {
    setup.options = options;
    return millrace_pipeline_create(&setup, &pipeline, &error);
  }
  millrace_status next(millrace_batch*& batch) {
    return millrace_pipeline_next(pipeline, 0, -1, &batch, &error);
  }
  OwnedTensor field(const millrace_batch* batch, const char* name) {
    DLManagedTensor* tensor = nullptr;
    EXPECT_EQ(millrace_batch_field(batch, name, &tensor, &error), MILLRACE_OK) << error.message;
    return OwnedTensor(tensor);
  }
  /// Labels of all batches that are left, with -1 between two batches.
  std::vector<std::int64_t> labels_left() {
    std::vector<std::int64_t> labels;
    for (millrace_batch* batch = nullptr; next(batch) == MILLRACE_OK; millrace_batch_free(batch)) {
      for (const std::int64_t label : elements<std::int64_t>(*field(batch, "label")))
        labels.push_back(label);
      labels.push_back(-1);
    }
    EXPECT_EQ(error.status, MILLRACE_END) << error.message;
    return labels;
  }
  void free_all() {
    millrace_pipeline_free(pipeline);
    millrace_transform_free(transform);
    millrace_dataset_free(dataset);
  }

  Numbers numbers;
  millrace_error error{};
  millrace_dataset* dataset = nullptr;
  millrace_transform* transform = nullptr;
  millrace_pipeline_setup setup{};
  millrace_pipeline* pipeline = nullptr;
};

/// Copies and frees a text that a function returned.
inline std::string taken(char* text) {
  std::string copy = text == nullptr ? "(null)" : text;
  millrace_text_free(text);
  return copy;
}

}  // namespace millrace::testing
