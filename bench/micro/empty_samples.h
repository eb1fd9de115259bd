// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/transform.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace millrace {

/// Records of one byte without a cost of reading.
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

/// Makes samples without work, or with `turns` multiplications per sample.
class EmptyTransform final : public Transform {
 public:
  explicit EmptyTransform(SampleSpec spec = SampleSpec({{"byte", DType::uint8, {1}, false}}),
                          std::uint64_t turns = 0)
      : spec_(std::move(spec)), turns_(turns) {}
  const SampleSpec& spec() const override { return spec_; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<Worker>(turns_);
  }

 private:
  class Worker final : public TransformWorker {
   public:
    explicit Worker(std::uint64_t turns) : turns_(turns) {}
    Status make(const Record&, Random&, Sample&) override {
      for (std::uint64_t turn = 0; turn < turns_; ++turn) product_ = product_ * 3 + turn;
      return Status::ok();
    }

   private:
    const std::uint64_t turns_;
    volatile std::uint64_t product_ = 1;
  };
  SampleSpec spec_;
  const std::uint64_t turns_;
};

}  // namespace millrace
