// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/transform.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

namespace millrace::testing {

/// A transform from a sample spec and a function.
class FunctionTransform : public Transform {
 public:
  using Function = std::function<Status(const Record&, Random&, Sample&)>;

  FunctionTransform(SampleSpec spec, Function function)
      : spec_(std::move(spec)), function_(std::move(function)) {}

  /// Called by `make_worker`; may throw.
  std::function<void()> on_make_worker;

  const SampleSpec& spec() const override { return spec_; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    if (on_make_worker) on_make_worker();
    ++workers_made_;
    return std::make_unique<Worker>(function_);
  }
  unsigned workers_made() const { return workers_made_; }

 private:
  class Worker final : public TransformWorker {
   public:
    explicit Worker(const Function& function) : function_(function) {}
    Status make(const Record& record, Random& random, Sample& sample) override {
      return function_(record, random, sample);
    }

   private:
    const Function& function_;
  };

  SampleSpec spec_;
  Function function_;
  mutable std::atomic<unsigned> workers_made_{0};
};

/// Fills samples with predictable values: "image" has bytes that follow from (record, random draw),
/// "draw" is the draw, "label" the record's label. Hooks must be set before the transform is used;
/// they may throw and block.
class StampTransform final : public Transform {
 public:
  explicit StampTransform(std::size_t image_bytes = 96)
      : spec_({{"image", DType::uint8, {image_bytes}, false},
               {"label", DType::int64, {}, false},
               {"draw", DType::uint64, {}, false}}),
        image_bytes_(image_bytes) {}

  std::function<void()> on_make_worker;
  std::size_t scratch_per_worker = 0;
  /// Workers take up to two samples at once, and make the later one first.
  bool in_turn = false;
  /// Called before the sample is written.
  std::function<void(const Record&)> on_begin;
  /// Called after it was written, in the second stage.
  std::function<Status(const Record&)> on_end;

  static std::byte pixel(std::uint64_t record, std::uint64_t draw, std::size_t place) {
    std::uint64_t hash = (record + 1) * 0x9E3779B97F4A7C15 ^ draw ^ place * 0xC2B2AE3D27D4EB4F;
    hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9;
    return static_cast<std::byte>(hash >> 56);
  }

  const SampleSpec& spec() const override { return spec_; }
  std::vector<std::string> stages() const override { return {"stamp", "finish"}; }
  std::string description() const override { return "stamps"; }
  std::size_t scratch_limit(unsigned workers) const override {
    return workers * scratch_per_worker;
  }
  std::size_t samples_at_once() const override { return in_turn ? 2 : 1; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    if (on_make_worker) on_make_worker();
    return std::make_unique<Worker>(*this);
  }
  std::size_t image_bytes() const { return image_bytes_; }
  /// Number of samples begun.
  std::uint64_t begun() const { return begun_; }
  /// Number of samples finished.
  std::uint64_t made() const { return made_; }
  /// Number of times that a worker had two samples at once.
  std::uint64_t pairs() const { return pairs_; }

 private:
  class Worker final : public TransformWorker {
   public:
    explicit Worker(const StampTransform& transform) : transform_(transform) {}

    Status make(const Record& record, Random& random, Sample& sample) override {
      ++transform_.begun_;
      if (transform_.on_begin) transform_.on_begin(record);
      const std::uint64_t draw = random.bits64();
      const auto image = sample["image"].as<std::uint8_t>();
      for (std::size_t place = 0; place < image.size(); ++place)
        image[place] = static_cast<std::uint8_t>(pixel(record.index(), draw, place));
      sample["label"].as<std::int64_t>()[0] = record.integer("label");
      sample["draw"].as<std::uint64_t>()[0] = draw;
      sample.set_decoder_name(record.index() % 2 == 0 ? "even" : "odd");
      sample.enter_stage(1);
      Status status = transform_.on_end ? transform_.on_end(record) : Status::ok();
      ++transform_.made_;
      return status;
    }

    void make_interleaved(SampleSource& source) override {
      if (!transform_.in_turn) return TransformWorker::make_interleaved(source);
      for (;;) {
        SampleTask* const first = source.next();
        if (first == nullptr) return;
        first->sample.pause();
        if (SampleTask* const second = source.next()) {
          ++transform_.pairs_;
          finish(*second, source);
        }
        first->sample.go_on();
        finish(*first, source);
      }
    }

   private:
    void finish(SampleTask& task, SampleSource& source) {
      source.make_and_return(task, [&] { return make(task.record, task.random, task.sample); });
    }

    const StampTransform& transform_;
  };

  SampleSpec spec_;
  std::size_t image_bytes_;
  mutable std::atomic<std::uint64_t> begun_{0};
  mutable std::atomic<std::uint64_t> made_{0};
  mutable std::atomic<std::uint64_t> pairs_{0};
};

}  // namespace millrace::testing
