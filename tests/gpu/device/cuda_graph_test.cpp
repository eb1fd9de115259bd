// SPDX-License-Identifier: Apache-2.0
//
// One CUDA graph per slot, captured when the slot is used first and replayed from then on, because
// batches' addresses are fixed per slot. On a GPU, and over the stand-in.
#include <gtest/gtest.h>
#include <millrace/cuda_device.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "device/cuda_call.h"
#include "gpu/device/gpu_run.h"
#include "gpu/device/gpu_test.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using testing::GpuRun;
using testing::patience;

struct DestroyGraph {
  void operator()(cudaGraphExec_t execution) const { cudaGraphExecDestroy(execution); }
};
using GraphHandle = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph>;

/// A trainer whose step is a graph: it copies a batch's images to a fixed address.
class GraphTrainer {
 public:
  GraphTrainer(CudaDevice& device, std::size_t image_bytes, cudaStreamCaptureMode mode)
      : mode_(mode), result_(device.allocate_device(image_bytes)) {}
  ~GraphTrainer() { stream_.synchronize(); }

  /// Runs the step and returns its result.
  std::vector<std::uint8_t> step(const Batch& batch) {
    const Tensor images = batch.images();
    GraphHandle& graph = graphs_[batch.slot()];
    if (!graph) {
      addresses_[batch.slot()] = images.data;
      graph = capture(images);
    }
    EXPECT_EQ(addresses_[batch.slot()], images.data)
        << "the address of slot " << batch.slot() << " changed";
    check(cudaGraphLaunch(graph.get(), stream_.handle()), "cudaGraphLaunch");
    return testing::DeviceBytes::bytes_at(result_.data(), images.bytes(), stream_);
  }
  CudaStream& stream() { return stream_; }
  std::size_t graphs() const { return graphs_.size(); }

 private:
  GraphHandle capture(const Tensor& images) {
    check(cudaStreamBeginCapture(stream_.handle(), mode_), "cudaStreamBeginCapture");
    stream_.copy_on_device(result_.data(), images.data, images.bytes());
    // Meanwhile the other threads of the pipelines continue, and query events.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_.handle(), &graph), "cudaStreamEndCapture");
    cudaGraphExec_t execution = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&execution, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "cudaGraphInstantiate");
    return GraphHandle(execution);
  }

  cudaStreamCaptureMode mode_;
  Memory result_;
  CudaStream stream_{0};
  std::map<std::size_t, GraphHandle> graphs_;
  std::map<std::size_t, void*> addresses_;
};

class CudaGraph : public testing::GpuTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Conversion, CudaGraph, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "converted" : "plain"; });

TEST_P(CudaGraph, OnePerSlotServesTheWholeRunBesideAnotherPipeline) {
  GpuRun run;
  run.options.epochs = 8;
  run.options.slots.device_slots = 3;
  run.options.last_batch = LastBatch::drop;
  if (GetParam()) run.options.conversion = GpuRun::conversion();
  const auto expected = run.expected();
  ASSERT_GT(expected.size(), 30U);
  const auto device = std::make_shared<CudaDevice>();

  std::atomic<std::size_t> other_batches{0};
  std::jthread other([&](const std::stop_token& stop) {
    GpuRun endless = run;
    endless.options.epochs = 0;
    CudaStream stream(0);
    {
      Pipeline pipeline = endless.on(device);
      for (; !stop.stop_requested(); ++other_batches) {
        if (!pipeline.next(stream, patience)) break;
      }
    }
    stream.synchronize();
  });
  {
    GraphTrainer trainer(*device, expected.front().size(), cudaStreamCaptureModeGlobal);
    Pipeline pipeline = run.on(device);
    while (const Batch batch = pipeline.next(trainer.stream(), patience))
      ASSERT_EQ(trainer.step(batch), expected.at(batch.number())) << "batch " << batch.number();
    EXPECT_EQ(trainer.graphs(), 3U);
  }
  EXPECT_TRUE(testing::eventually([&] { return other_batches > 0; }));
}

class CudaCapture : public testing::GpuTest {};

TEST_F(CudaCapture, NextIsRefusedWhileItsStreamIsCaptured) {
  GpuRun run;
  const auto device = std::make_shared<CudaDevice>();
  CudaStream stream(0);
  Pipeline pipeline = run.on(device);
  {
    const Batch before = pipeline.next(stream, patience);
    ASSERT_TRUE(before);
  }
  ASSERT_EQ(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_THROW((void)pipeline.next(stream, patience), Error);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream.handle(), &graph), cudaSuccess)
      << "the refusal lost the capture";
  cudaGraphDestroy(graph);
  const Batch after = pipeline.next(stream, patience);
  ASSERT_TRUE(after) << "the refusal took a batch or ended the run";
  EXPECT_EQ(after.number(), 1U);
  stream.synchronize();
}

// A trainer that checks the last error after its own launches must not find one of ours.
TEST_F(CudaCapture, AskingLeavesNoErrorBehind) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault), cudaSuccess);
  CudaDevice device;
  const CudaStream legacy(0, nullptr);
  const auto never_recorded = device.make_timed_event();
  EXPECT_FALSE(legacy.capturing());
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_TRUE(legacy.capturing());
  EXPECT_FALSE(never_recorded->passed_at());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  // The trainer's own last error must stay, too.
  EXPECT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);
  CudaStream stream(0);
  stream.record(*never_recorded);
  EXPECT_FALSE(stream.capturing());
  EXPECT_TRUE(never_recorded->wait(patience));
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

}  // namespace
}  // namespace millrace
