// SPDX-License-Identifier: Apache-2.0
//
// Tests of datasets, transforms and devices of users that return null, return too early or throw.
// The run ends with an error that names the call, or goes on with a warning.
#include <gmock/gmock.h>
#include <millrace/concat_dataset.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_device.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using ::testing::Contains;
using testing::DeviceCall;
using testing::error_of;
using ::testing::HasSubstr;
using testing::HookDevice;
using testing::MemoryDataset;
using testing::patience;
using testing::SmallRun;

/// A dataset whose optional calls fail.
class FaultyDataset final : public Dataset {
 public:
  bool null_reader = false;
  bool key_throws = false;
  bool hints_throw = false;

  std::uint64_t size() const override { return inner_->size(); }
  std::string name() const override { return "faulty"; }
  std::unique_ptr<DatasetReader> make_reader() const override {
    return null_reader ? nullptr : inner_->make_reader();
  }
  std::string key(std::uint64_t index) const override {
    if (key_throws) throw std::runtime_error("the key is torn");
    return inner_->key(index);
  }
  bool has_stored_hints() const override { return hints_throw; }
  void stored_hint(std::uint64_t, std::vector<std::byte>&) const override {
    throw std::runtime_error("the note is torn");
  }

 private:
  std::shared_ptr<MemoryDataset> inner_ = std::make_shared<MemoryDataset>(80);
};

/// A transform whose workers come from a function and make samples of MemoryDataset.
class WorkerOf final : public Transform {
 public:
  using MakeWorker = std::function<std::unique_ptr<TransformWorker>()>;
  explicit WorkerOf(MakeWorker made) : made_(std::move(made)) {}
  const SampleSpec& spec() const override { return spec_; }
  std::unique_ptr<TransformWorker> make_worker() const override { return made_(); }

 private:
  SampleSpec spec_{{{"label", DType::int64, {}, false}}};
  MakeWorker made_;
};

/// A worker that overrides `make_interleaved`.
class InTurn final : public TransformWorker {
 public:
  explicit InTurn(std::function<void(SampleSource&)> in_turn) : in_turn_(std::move(in_turn)) {}
  Status make(const Record&, Random&, Sample&) override { return Status::bad("not called"); }
  void make_interleaved(SampleSource& source) override { in_turn_(source); }

 private:
  std::function<void(SampleSource&)> in_turn_;
};

Error error_with(std::shared_ptr<const Dataset> dataset,
                 std::shared_ptr<const Transform> transform) {
  const SmallRun run(80);
  return error_of([&] {
    Pipeline pipeline(std::move(dataset), std::move(transform), run.device, run.options);
    while (pipeline.next({.timeout = patience})) continue;
  });
}

Error error_in_turn(const std::function<void(SampleSource&)>& in_turn) {
  return error_with(std::make_shared<MemoryDataset>(80),
                    std::make_shared<WorkerOf>([=] { return std::make_unique<InTurn>(in_turn); }));
}

TEST(PipelineUserCode, AWorkerThatIsNull) {
  const Error error = error_with(std::make_shared<MemoryDataset>(80),
                                 std::make_shared<WorkerOf>([] { return nullptr; }));
  EXPECT_EQ(error.code(), ErrorCode::transform);
  EXPECT_THAT(error.what(), HasSubstr("make_worker() returned null"));
}

TEST(PipelineUserCode, AReaderThatIsNull) {
  const auto dataset = std::make_shared<FaultyDataset>();
  dataset->null_reader = true;
  const auto transform = std::make_shared<testing::StampTransform>();
  for (const std::shared_ptr<const Dataset>& one :
       {std::shared_ptr<const Dataset>(dataset), concat_datasets({dataset, dataset})}) {
    const Error error = error_with(one, transform);
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_THAT(error.what(), HasSubstr("faulty: make_reader() returned null"));
  }
}

TEST(PipelineUserCode, AWorkerThatReturnsBeforeItsSamplesAreMade) {
  const Error early = error_in_turn([](SampleSource&) {});
  EXPECT_EQ(early.code(), ErrorCode::transform);
  EXPECT_THAT(early.what(), HasSubstr("make_interleaved() returned"));
  EXPECT_THAT(error_in_turn([](SampleSource& source) { (void)source.next(); }).what(),
              HasSubstr("make_interleaved() returned"));
}

TEST(PipelineUserCode, AWorkerThatThrowsBetweenSamples) {
  const Error error =
      error_in_turn([](SampleSource&) { throw std::runtime_error("the planted error"); });
  EXPECT_EQ(error.code(), ErrorCode::transform);
  EXPECT_THAT(error.what(), HasSubstr("make_interleaved() threw: the planted error"));
}

/// A device that returns null for one of its calls.
class NullDevice final : public Device {
 public:
  explicit NullDevice(DeviceCall null) : null_(null) {}
  std::string name() const override { return "hollow"; }
  bool copies() const override { return true; }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override {
    return null_ == DeviceCall::allocate_host ? Memory() : host_.allocate_host(bytes, node);
  }
  Memory allocate_device(std::size_t bytes) override {
    return null_ == DeviceCall::allocate_device ? Memory() : host_.allocate_device(bytes);
  }
  std::unique_ptr<Stream> make_stream() override {
    return null_ == DeviceCall::make_stream ? nullptr : host_.make_stream();
  }
  std::unique_ptr<Event> make_event() override {
    return null_ == DeviceCall::make_event ? nullptr : host_.make_event();
  }

 private:
  DeviceCall null_;
  HostDevice host_{{.copies = true}};
};

TEST(PipelineUserCode, ADeviceThatReturnsNull) {
  for (const DeviceCall call : {DeviceCall::allocate_host, DeviceCall::allocate_device,
                                DeviceCall::make_stream, DeviceCall::make_event}) {
    SmallRun run(80);
    run.device = std::make_shared<NullDevice>(call);
    const Error error = error_of([&] {
      Pipeline pipeline = run.pipeline();
      while (pipeline.next({.timeout = patience})) continue;
    });
    EXPECT_EQ(error.code(), ErrorCode::device) << to_string(call);
    EXPECT_THAT(error.what(), HasSubstr("device hollow: "));
  }
}

TEST(PipelineUserCode, ADeviceThatThrowsIsNamed) {
  SmallRun run(80);
  run.device = std::make_shared<HookDevice>(true, [](DeviceCall call) {
    if (call == DeviceCall::copy) throw std::runtime_error("the planted error");
  });
  const Error error = error_of([&] {
    Pipeline pipeline = run.pipeline();
    while (pipeline.next({.timeout = patience})) continue;
  });
  EXPECT_EQ(error.code(), ErrorCode::device);
  EXPECT_THAT(error.what(), HasSubstr("upload failed: device hook threw: the planted error"));
}

TEST(PipelineUserCode, AKeyThatThrowsIsAWarning) {
  for (const BadRecords policy : {BadRecords::mark, BadRecords::replace, BadRecords::fail}) {
    const auto dataset = std::make_shared<FaultyDataset>();
    dataset->key_throws = true;
    SmallRun run(80);
    run.options.bad_records = policy;
    run.transform->on_end = [](const Record& record) {
      return record.index() == 7 ? Status::bad("torn") : Status::ok();
    };
    Pipeline pipeline(dataset, run.transform, run.device, run.options);
    if (policy == BadRecords::fail) {
      const Error error = error_of([&] {
        while (pipeline.next({.timeout = patience})) continue;
      });
      EXPECT_EQ(error.code(), ErrorCode::bad_record);
      EXPECT_THAT(error.what(), HasSubstr("record 7 of faulty is bad: torn"));
    } else {
      while (pipeline.next({.timeout = patience})) continue;
    }
    const Report report = pipeline.report();
    ASSERT_EQ(report.bad_record_list.size(), 1U);
    EXPECT_EQ(report.bad_record_list.front().key, "record 7");
    EXPECT_THAT(report.warnings,
                Contains(HasSubstr("faulty: key() threw for record 7: the key is torn")));
  }
}

TEST(PipelineUserCode, AStoredHintThatThrowsIsAWarning) {
  const auto dataset = std::make_shared<FaultyDataset>();
  dataset->hints_throw = true;
  const auto transform = std::make_shared<testing::FunctionTransform>(
      SampleSpec({{"size", DType::int64, {}, false}}), [](const Record&, Random&, Sample& sample) {
        sample["size"].as<std::int64_t>()[0] = static_cast<std::int64_t>(sample.hint().size());
        return Status::ok();
      });
  const SmallRun run(80);
  Pipeline pipeline(dataset, transform, run.device, run.options);
  while (pipeline.next({.timeout = patience})) continue;
  EXPECT_THAT(pipeline.report().warnings,
              Contains(HasSubstr("faulty: stored_hint() threw: the note is torn")));
}

TEST(PipelineUserCode, AFieldThatARecordHasNotIsABadRecord) {
  for (const bool wrong_size : {false, true}) {
    SmallRun run(80);
    run.transform->on_begin = [wrong_size](const Record& record) {
      if (record.index() == 7) (void)record.integer(wrong_size ? "payload" : "nope");
    };
    const std::string why = wrong_size ? "has 100 bytes" : "has no field \"nope\"";
    for (const BadRecords policy : {BadRecords::mark, BadRecords::replace}) {
      run.options.bad_records = policy;
      Pipeline pipeline = run.pipeline();
      while (pipeline.next({.timeout = patience})) continue;
      const Report report = pipeline.report();
      ASSERT_EQ(report.bad_record_list.size(), 1U);
      EXPECT_THAT(report.bad_record_list.front().reason, HasSubstr(why));
    }
    run.options.bad_records = BadRecords::fail;
    const Error error = error_of([&] {
      Pipeline pipeline = run.pipeline();
      while (pipeline.next({.timeout = patience})) continue;
    });
    EXPECT_EQ(error.code(), wrong_size ? ErrorCode::corrupt : ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr(why));
  }
}

TEST(PipelineUserCode, ContradictingLaunchersAreInTheReport) {
  SmallRun run(80);
  run.options.ranks.this_process.warnings = {"two launchers"};
  Pipeline pipeline = run.pipeline();
  EXPECT_THAT(pipeline.report().warnings, Contains("two launchers"));
}

}  // namespace
}  // namespace millrace
