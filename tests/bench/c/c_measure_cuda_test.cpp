// SPDX-License-Identifier: Apache-2.0
//
// Measurements of the C library on a stand-in for a GPU.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <millrace/c_measure.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/c/numbers.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using testing::NumbersRun;
using testing::OwnedTensor;
using ::testing::SizeIs;
using testing::taken;
using Json = nlohmann::json;

/// A trainer whose step keeps the last label tensor, and notes streams and devices.
struct TrainerOnCuda {
  TrainerOnCuda() {
    run.setup.device = "cuda:0";
    run.setup.options = R"({"format": 1, "options": {"workers": 1, "batch_size": 4}})";
    workload.struct_bytes = sizeof workload;
    workload.setup = &run.setup;
    workload.user = this;
    workload.step = [](void* user, millrace_batch* batch, std::uintptr_t stream,
                       millrace_error* error) {
      auto* const self = static_cast<TrainerOnCuda*>(user);
      ++self->steps;
      self->streams.insert(stream);
      DLManagedTensor* label = nullptr;
      millrace_status status = millrace_batch_field(batch, "label", &label, error);
      if (status == MILLRACE_OK) {
        self->devices.insert(label->dl_tensor.device.device_type);
        self->last = OwnedTensor(label);
        // The stream is already known to the batch.
        status = millrace_batch_record_stream(batch, stream, error);
      }
      millrace_batch_free(batch);
      return status;
    };
  }
  TrainerOnCuda(const TrainerOnCuda&) = delete;
  TrainerOnCuda& operator=(const TrainerOnCuda&) = delete;
  ~TrainerOnCuda() = default;

  NumbersRun run;
  millrace_workload workload{};
  int steps = 0;
  std::set<std::uintptr_t> streams;
  std::set<int> devices;
  OwnedTensor last;
};

constexpr millrace_bench_options few_batches{sizeof(millrace_bench_options), 1, 6, 1};

TEST(CMeasureOnCuda, MakesAStreamForTheStep) {
  TrainerOnCuda trainer;
  char* json = nullptr;
  ASSERT_EQ(millrace_bench(&trainer.workload, &few_batches, &json, &trainer.run.error), MILLRACE_OK)
      << trainer.run.error.message;
  const Json result = Json::parse(taken(json));
  EXPECT_EQ(result.at("batches"), 6);
  EXPECT_FALSE(result.at("device_step_ms").is_null());
  EXPECT_THAT(trainer.steps, Ge(7));
  EXPECT_THAT(trainer.streams, SizeIs(1));
  EXPECT_NE(*trainer.streams.begin(), 0U);
  EXPECT_THAT(trainer.devices, ElementsAre(kDLCUDA));
  trainer.last.reset();  // the tensor has kept the stream
}

TEST(CMeasureOnCuda, RunsTheStepOnTheCallersStream) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    TrainerOnCuda trainer;
    trainer.workload.stream = reinterpret_cast<std::uintptr_t>(stream);
    char* json = nullptr;
    ASSERT_EQ(millrace_bench(&trainer.workload, &few_batches, &json, &trainer.run.error),
              MILLRACE_OK)
        << trainer.run.error.message;
    EXPECT_EQ(Json::parse(taken(json)).at("batches"), 6);
    const millrace_diagnose_options diagnose{sizeof diagnose, 2, 0, 3, 1, nullptr};
    ASSERT_EQ(millrace_diagnose(&trainer.workload, &diagnose, &json, &trainer.run.error),
              MILLRACE_OK)
        << trainer.run.error.message;
    EXPECT_TRUE(Json::parse(taken(json)).at("parts").contains("copy"));
    EXPECT_THAT(trainer.streams, ElementsAre(trainer.workload.stream));
  }
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace millrace
