// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/transform.h>

#include <cstring>
#include <memory>
#include <vector>

namespace millrace::testing {

/// Samples of one field [2, 3] for each dtype, with the dtype's name. For integers, element i is
/// the record's index plus i; for a bool, whether that sum is odd. For a floating-point number, it
/// has that number's bytes.
class EveryDtype final : public Transform {
 public:
  static constexpr std::size_t elements = 6;

  const SampleSpec& spec() const override { return spec_; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<Worker>();
  }

 private:
  template <typename T>
  static void fill(Sample& sample, std::uint64_t first) {
    const auto values = sample[to_string(DTypeOf<T>::value)].template as<T>();
    for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<T>(first + i);
  }
  template <typename T>
  static void fill_bits(Sample& sample, std::uint64_t first) {
    const auto values = sample[to_string(DTypeOf<T>::value)].template as<T>();
    for (std::size_t i = 0; i < elements; ++i) {
      // The numbers from 256 on. Both types represent the first few of them.
      values[i].bits = static_cast<std::uint16_t>(DTypeOf<T>::value == DType::float16
                                                      ? 0x5C00U + (first + i) * 4
                                                      : 0x4380U + (first + i) / 2);
    }
  }

  class Worker final : public TransformWorker {
    Status make(const Record& record, Random&, Sample& sample) override {
      const std::uint64_t first = record.index();
      fill<std::uint8_t>(sample, first);
      fill<std::int8_t>(sample, first);
      fill<std::uint16_t>(sample, first);
      fill<std::int16_t>(sample, first);
      fill<std::uint32_t>(sample, first);
      fill<std::int32_t>(sample, first);
      fill<std::uint64_t>(sample, first);
      fill<std::int64_t>(sample, first);
      fill<float>(sample, first);
      fill<double>(sample, first);
      fill_bits<Float16>(sample, first);
      fill_bits<Bfloat16>(sample, first);
      const auto bools = sample["bool"].as<bool>();
      for (std::size_t i = 0; i < elements; ++i) bools[i] = (first + i) % 2 == 1;
      return Status::ok();
    }
  };

  static std::vector<FieldSpec> fields() {
    std::vector<FieldSpec> all;
    for (int dtype = 0; dtype <= static_cast<int>(DType::boolean); ++dtype)
      all.push_back({.name = to_string(static_cast<DType>(dtype)),
                     .dtype = static_cast<DType>(dtype),
                     .shape = {2, 3}});
    return all;
  }
  SampleSpec spec_{fields()};
};

}  // namespace millrace::testing
