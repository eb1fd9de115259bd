// SPDX-License-Identifier: Apache-2.0
//
// The trainer on CUDA. A small model's step is a dozen short kernels. To launch them one by one,
// the host needs longer than they run. A CUDA graph launches them at once, but contains
// their addresses. So it can be reused only for data at the same addresses. In millrace the tensors
// of a batch have a fixed address for each slot. Therefore one graph for each slot (and part of the
// batch) is enough for the whole run.
#include <cuda_runtime_api.h>
#include <millrace/cuda_device.h>

#include <array>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>

#include "cuda_check.h"
#include "cuda_perceptron.h"
#include "stream_clock.h"
#include "trainer.h"

namespace {

/// Work on a stream, recorded to be launched as a whole.
class Graph {
 public:
  Graph() = default;

  /// Records the work that `work` enqueues on `stream`. None of it is executed.
  template <typename Work>
  Graph(cudaStream_t stream, const Work& work) {
    // Thread-local: a global capture would forbid calls that millrace's own threads continue to
    // make, such as querying events.
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    cudaGraph_t captured = nullptr;
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(stream, &captured);
      if (captured != nullptr) cudaGraphDestroy(captured);
      throw;
    }
    check(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture");
    const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, Destroy> graph(captured);
    cudaGraphExec_t executable = nullptr;
    check(cudaGraphInstantiate(&executable, graph.get(), 0), "cudaGraphInstantiate");
    executable_.reset(executable);
  }

  explicit operator bool() const { return executable_ != nullptr; }

  void launch(cudaStream_t stream) const {
    check(cudaGraphLaunch(executable_.get(), stream), "cudaGraphLaunch");
  }

 private:
  struct Destroy {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy> executable_;
};

class CudaTrainer final : public Trainer {
 public:
  CudaTrainer(int ordinal, const TrainerOptions& options)
      : device_(std::make_shared<millrace::CudaDevice>(ordinal)),
        stream_((check(cudaSetDevice(ordinal), "cudaSetDevice"),
                 ordinal)),  // the following code uses the current device
        model_({.pixels = static_cast<int>(options.pixels),
                .hidden = static_cast<int>(options.hidden),
                .classes = static_cast<int>(options.classes)},
               static_cast<int>(options.batch_size),
               Perceptron(options.pixels, options.hidden, options.classes, 1).weights(),
               stream_.handle()),
        clock_(stream_.handle()) {}

  std::shared_ptr<millrace::Device> device() const override { return device_; }
  millrace::Stream& stream() override { return stream_; }

  void train(const Samples& samples) override {
    // The first part of a batch sets the gradients to zero, inside its graph.
    run(Use::train, samples,
        [&](const DeviceSamples& at) { model_.add_gradients(at, samples.part == 0); });
  }

  void step(std::size_t samples, float rate) override {
    // Not part of a graph: the learning rate and the number of valid samples change, and a graph
    // would always use the captured values.
    timed([&] { model_.step(1 / static_cast<float>(samples > 0 ? samples : 1), rate); });
  }

  void look(const Samples& samples) override {
    run(Use::look, samples, [&](const DeviceSamples& at) { model_.look(at); });
  }

  Perceptron::Sums synchronize() override {
    const std::array<double, sum_count> sums = model_.take_sums();
    if (sums[sum_bad_labels] > 0)
      throw std::out_of_range(std::to_string(static_cast<int>(sums[sum_bad_labels])) +
                              " labels are outside the classes");
    return {.loss = sums[sum_loss], .right = sums[sum_right], .samples = sums[sum_samples]};
  }

  double idle() override { return clock_.idle(); }

 private:
  /// Training and evaluation have separate pipelines and so separate slots.
  enum class Use { train, look };

  struct PartGraph {
    Graph graph;
    DeviceSamples at;  ///< the data that it was captured with
  };

  /// Enqueues `work` on the stream. Waiting for the samples and releasing the batch are outside the
  /// captured work. Inside it they would affect the captured batch instead of later ones.
  template <typename Work>
  void run(Use use, const Samples& samples, const Work& work) {
    const DeviceSamples at{.images = samples.images.as<float>().data(),
                           .labels = samples.labels.as<std::int64_t>().data(),
                           .valid = samples.valid.as<std::uint8_t>().data(),
                           .samples = static_cast<int>(samples.size())};
    if (!samples.full_batch) {  // graphs have the size of full batches
      timed([&] { work(at); });
      return;
    }
    PartGraph& own = graphs_[{use, samples.slot, samples.part}];
    if (own.graph) {
      if (own.at.images != at.images || own.at.labels != at.labels || own.at.valid != at.valid ||
          own.at.samples != at.samples)
        throw std::logic_error("slot " + std::to_string(samples.slot) +
                               " does not lie where its graph was captured");
      timed([&] { own.graph.launch(stream_.handle()); });
      return;
    }
    // The first batch of a slot runs directly, because CUDA may still load kernels then. The work
    // is recorded for the next batch.
    timed([&] { work(at); });
    own = {Graph(stream_.handle(), [&] { work(at); }), at};
  }

  template <typename Work>
  void timed(const Work& work) {
    clock_.begin();
    work();
    clock_.end();
  }

  std::shared_ptr<millrace::CudaDevice> device_;
  millrace::CudaStream stream_;
  CudaPerceptron model_;
  StreamClock clock_;
  std::map<std::tuple<Use, std::size_t, std::size_t>, PartGraph> graphs_;
};

}  // namespace

bool have_cuda() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

std::unique_ptr<Trainer> make_cuda_trainer(int ordinal, const TrainerOptions& options) {
  return std::make_unique<CudaTrainer>(ordinal, options);
}
