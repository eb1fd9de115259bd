// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/transform.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace millrace {

/// Records of one byte that cost nothing to read.
class OneByteDataset final : public Dataset {
 public:
  std::uint64_t size() const override { return 1'000'000; }
  std::unique_ptr<DatasetReader> make_reader() const override { return std::make_unique<Reader>(); }
  std::string name() const override { return "one byte"; }

 private:
  class Reader final : public DatasetReader {
   public:
    Record read(std::uint64_t index) override { return Record(index, {&field_, 1}); }

   private:
    std::byte byte_{1};
    RecordField field_{"byte", {&byte_, 1}};
  };
};

/// Samples that cost nothing to make.
class EmptyTransform final : public Transform {
 public:
  const SampleSpec& spec() const override { return spec_; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<Worker>();
  }

 private:
  struct Worker final : TransformWorker {
    Status make(const Record&, Random&, Sample&) override { return Status::ok(); }
  };
  SampleSpec spec_{{{"byte", DType::uint8, {1}, false}}};
};

}  // namespace millrace
