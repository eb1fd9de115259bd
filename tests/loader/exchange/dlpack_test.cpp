// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/detail/dlpack_versioned.h>
#include <millrace/dlpack.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exchange/every_dtype.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::EveryDtype;
using testing::SmallRun;

struct Deleter {
  template <typename Managed>
  void operator()(Managed* managed) const {
    managed->deleter(managed);
  }
};
using Exported = std::unique_ptr<DLManagedTensor, Deleter>;

Pipeline run_of_every_dtype(PipelineOptions options = {.batch_size = 8, .seed = 1, .epochs = 1}) {
  return {std::make_shared<testing::MemoryDataset>(24), std::make_shared<EveryDtype>(),
          std::make_shared<HostDevice>(), std::move(options)};
}

std::vector<std::int64_t> extents(const std::int64_t* values, int rank) {
  return {values, values + rank};
}

TEST(Dlpack, TellsOfEachDtypeWhatItIs) {
  struct Type {
    std::uint8_t code, bits;
  };
  const std::map<std::string, Type> types = {{"bool", {6, 8}},
                                             {"uint8", {kDLUInt, 8}},
                                             {"int8", {kDLInt, 8}},
                                             {"int16", {0, 16}},
                                             {"uint16", {1, 16}},
                                             {"int32", {0, 32}},
                                             {"uint32", {1, 32}},
                                             {"int64", {0, 64}},
                                             {"uint64", {1, 64}},
                                             {"float16", {2, 16}},
                                             {"bfloat16", {kDLBfloat, 16}},
                                             {"float32", {kDLFloat, 32}},
                                             {"float64", {2, 64}}};
  Pipeline pipeline = run_of_every_dtype();
  const Batch batch = pipeline.next();
  for (const auto& [name, type] : types) {
    SCOPED_TRACE(name);
    const Tensor tensor = batch[name];
    const Exported exported(to_dlpack(batch[name]));
    const DLTensor& told = exported->dl_tensor;
    EXPECT_EQ(told.data, tensor.data);
    EXPECT_EQ(told.byte_offset, 0U);
    EXPECT_EQ(told.device.device_type, kDLCPU);
    EXPECT_EQ(told.device.device_id, 0);
    EXPECT_EQ(told.dtype.code, type.code);
    EXPECT_EQ(told.dtype.bits, type.bits);
    EXPECT_EQ(told.dtype.lanes, 1);
    EXPECT_THAT(extents(told.shape, told.ndim), ElementsAre(8, 2, 3));
    EXPECT_THAT(extents(told.strides, told.ndim), ElementsAre(6, 3, 1));
  }
}

TEST(Dlpack, HasTheVersionedFormToo) {
  Pipeline pipeline = run_of_every_dtype();
  const Batch batch = pipeline.next();
  for (const bool read_only : {false, true}) {
    const std::unique_ptr<DLManagedTensorVersioned, Deleter> exported(
        to_dlpack_versioned(batch["int16"], {.read_only = read_only}));
    EXPECT_EQ(exported->version.major, 1U);
    EXPECT_EQ(exported->version.minor, 0U);
    EXPECT_EQ(exported->flags, read_only ? 1U : 0U);
    EXPECT_EQ(exported->dl_tensor.data, batch["int16"].data);
    EXPECT_EQ(exported->dl_tensor.ndim, 3);
  }
  // Offsets of the fields in DLPack 1.0.
  static_assert(offsetof(DLManagedTensorVersioned, version) == 0);
  static_assert(offsetof(DLManagedTensorVersioned, manager_ctx) == 8);
  static_assert(offsetof(DLManagedTensorVersioned, deleter) == 16);
  static_assert(offsetof(DLManagedTensorVersioned, flags) == 24);
  static_assert(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
}

TEST(Dlpack, ShowsAMicroBatch) {
  Pipeline pipeline =
      run_of_every_dtype({.batch_size = 8, .seed = 1, .epochs = 1, .slots = {.micro_batches = 4}});
  NextRequest request;
  request.in_micro_batches = true;
  const Batch batch = pipeline.next(request);
  for (const MicroBatch& part : batch.micro_batches()) {
    const Exported exported(to_dlpack(part["int64"]));
    EXPECT_EQ(exported->dl_tensor.data, part["int64"].data);
    EXPECT_THAT(extents(exported->dl_tensor.shape, exported->dl_tensor.ndim), ElementsAre(2, 2, 3));
  }
}

TEST(Dlpack, KeepsItsBatchUntilItIsDeleted) {
  SmallRun run(200);
  run.options.slots.prefetch = 4;
  Pipeline pipeline = run.pipeline();
  Batch first = pipeline.next();
  const std::vector<std::uint64_t> draws(first["draw"].as<std::uint64_t>().begin(),
                                         first["draw"].as<std::uint64_t>().end());
  const std::size_t slot = first.slot();
  Exported exported(to_dlpack(first["draw"]));
  first.reset();
  for (int batch = 0; batch < 3; ++batch) EXPECT_NE(pipeline.next().slot(), slot);
  EXPECT_EQ(0, std::memcmp(exported->dl_tensor.data, draws.data(), 8 * sizeof(draws[0])));
  std::thread([&] { exported.reset(); }).join();
  EXPECT_TRUE([&] {
    while (const Batch batch = pipeline.next())
      if (batch.slot() == slot) return true;
    return false;
  }());
}

TEST(Dlpack, OutlivesPipelineAndRuntime) {
  Exported exported;
  std::optional<Pipeline> pipeline(run_of_every_dtype());
  exported.reset(to_dlpack(pipeline->next()["int64"]));
  pipeline.reset();
  EXPECT_EQ(static_cast<std::int64_t*>(exported->dl_tensor.data)[1],
            static_cast<std::int64_t*>(exported->dl_tensor.data)[0] + 1);
}

TEST(Dlpack, NeedsAShareOfTheBatchAndNoObject) {
  Pipeline pipeline =
      run_of_every_dtype({.batch_size = 8, .seed = 1, .epochs = 1, .slots = {.micro_batches = 2}});
  NextRequest request;
  request.in_micro_batches = true;
  Batch batch = pipeline.next(request);
  std::vector<BatchTensor> parts;
  for (const MicroBatch& part : batch.micro_batches()) parts.push_back(part["int64"]);
  const Batch moved = std::move(batch);
  const std::int64_t* const first = moved["int64"].as<std::int64_t>().data();
  EXPECT_EQ(Exported(to_dlpack(parts.at(0)))->dl_tensor.data, first);
  EXPECT_EQ(Exported(to_dlpack(parts.at(1)))->dl_tensor.data, first + 4 * 6);
  EXPECT_EQ(error_of([&] { (void)batch.device(); }).code(), ErrorCode::invalid_argument);
}

/// The host, presented as a GPU.
class HostAsGpu final : public Device {
 public:
  std::string name() const override { return "cuda:3"; }
  DeviceId id() const override { return {DeviceId::Kind::cuda, 3}; }
  bool copies() const override { return true; }
  Memory allocate_host(std::size_t bytes, const NumaNode& node) override {
    return host_.allocate_host(bytes, node);
  }
  Memory allocate_device(std::size_t bytes) override { return host_.allocate_device(bytes); }
  std::unique_ptr<Stream> make_stream() override { return host_.make_stream(); }
  std::unique_ptr<Event> make_event() override { return host_.make_event(); }

 private:
  HostDevice host_{HostDeviceOptions{.copies = true}};
};

TEST(Dlpack, NamesTheGpu) {
  SmallRun run(16);
  run.device = std::make_shared<HostAsGpu>();
  Pipeline pipeline = run.pipeline();
  const Batch batch = pipeline.next();
  EXPECT_EQ(batch.device(), (DeviceId{DeviceId::Kind::cuda, 3}));
  const Exported exported(to_dlpack(batch["draw"]));
  EXPECT_EQ(exported->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(exported->dl_tensor.device.device_id, 3);
}

}  // namespace
}  // namespace millrace
