// SPDX-License-Identifier: Apache-2.0
//
//   mpirun -np 2 train_mpi DATASET [--epochs N] [--global-batch N] [--batches N] [--checkpoint
//   FILE] [--log FOLDER]
//
// Trains a small perceptron on thumbnails of a packed dataset, data-parallel: each rank takes its
// share of every global batch, and the gradients are summed over the ranks. --batches stops after
// so many batches. With --checkpoint the run is then saved, and continues from the file if it
// exists, on any number of ranks. --log writes the records of each rank, one line per batch.

#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>
#include <mpi.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#include "arguments.h"
#include "perceptron.h"

namespace {

constexpr int thumbnail = 32;
constexpr std::uint64_t seed = 7;

struct Options {
  std::string dataset{};
  std::uint64_t epochs = 3;
  std::size_t global_batch = 60;
  std::uint64_t batches = UINT64_MAX;
  std::string checkpoint{};
  std::string log{};
};

Options parse(int argc, char** argv) {
  Arguments arguments(argc, argv);
  Options options{.dataset = arguments.dataset()};
  arguments.take("--epochs", options.epochs);
  arguments.take("--global-batch", options.global_batch);
  arguments.take("--batches", options.batches);
  arguments.take("--checkpoint", options.checkpoint);
  arguments.take("--log", options.log);
  arguments.finish();
  return options;
}

// A checkpoint contains the pipeline's state, a line of JSON, followed by the model's numbers.
void save(const std::string& path, const millrace::State& state, Perceptron& model) {
  std::ofstream file(path, std::ios::binary);
  file << state.to_json() << '\n';
  for (const auto numbers : {model.weights(), model.momentum()})
    file.write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size_bytes()));
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

millrace::State load(const std::string& path, Perceptron& model) {
  std::ifstream file(path, std::ios::binary);
  std::string state;
  std::getline(file, state);
  for (const auto numbers : {model.weights(), model.momentum()})
    file.read(reinterpret_cast<char*>(numbers.data()),
              static_cast<std::streamsize>(numbers.size_bytes()));
  if (!file) throw std::runtime_error(path + ": is cut short");
  return millrace::State::from_json(state, path);
}

/// Whether all ranks have the same bits.
bool agree(std::span<const float> weights) {
  std::vector<float> least(weights.size()), most(weights.size());
  const int count = static_cast<int>(weights.size());
  MPI_Allreduce(weights.data(), least.data(), count, MPI_FLOAT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(weights.data(), most.data(), count, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
  return least == most;
}

int train(const Options& options) {
  const auto ranks = millrace::Ranks::from_environment();
  int world = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (static_cast<std::uint32_t>(world) != ranks.world)
    throw std::runtime_error("MPI has " + std::to_string(world) +
                             " ranks, the environment tells of " + std::to_string(ranks.world));
  const bool speaks = ranks.rank == 0;
  if (speaks)
    std::cout << ranks.world << " ranks, " << (ranks.source.empty() ? "no launcher" : ranks.source)
              << '\n';

  const auto dataset = millrace::open_dataset(options.dataset);
  Perceptron model(thumbnail * thumbnail * 3, 32,
                   std::max<std::size_t>(dataset->classes().size(), 1), seed);
  millrace::PipelineOptions pipeline_options{
      .seed = seed,
      .epochs = options.epochs,
      .conversion = millrace::Conversion{.layout = millrace::ImageLayout::nhwc,
                                         .mean = {0.5F, 0.5F, 0.5F, 0},
                                         .std = {0.5F, 0.5F, 0.5F, 1}},
      .ranks = {.this_process = ranks, .global_batch_size = options.global_batch}};
  if (!options.checkpoint.empty() && std::filesystem::exists(options.checkpoint))
    pipeline_options.resume.from = load(options.checkpoint, model);
  millrace::Pipeline pipeline(dataset,
                              millrace::image_transform(millrace::Recipe::train(thumbnail)),
                              std::make_shared<millrace::HostDevice>(), pipeline_options);
  std::ofstream log;
  if (!options.log.empty())
    log.open(options.log + "/rank" + std::to_string(ranks.rank) + ".txt", std::ios::app);

  double sums[3] = {};  // loss, correct samples, samples of the epoch, over all ranks
  std::uint64_t done = 0;
  while (auto batch = done < options.batches ? pipeline.next() : millrace::Batch()) {
    // A rank without a sample in an epoch's last batch must still take part in the sums.
    const Perceptron::Sums local = model.add_gradients(
        batch.images().as<float>(), batch.labels().as<std::int64_t>(), batch.valid());
    double all[3] = {local.loss, local.right, local.samples};
    MPI_Allreduce(MPI_IN_PLACE, model.gradients().data(),
                  static_cast<int>(model.gradients().size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, all, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    model.step(all[2], 0.02F);

    ++done;
    for (int i = 0; i < 3; ++i) sums[i] += all[i];
    if (log.is_open()) {
      log << batch.number() << ' ' << batch.epoch() << ' ' << batch.global_size();
      for (const std::uint64_t record : batch.indices()) log << ' ' << record;
      log << '\n';
    }
    if (!batch.last_in_epoch()) continue;
    if (speaks)
      std::cout << "epoch " << batch.epoch() << ": loss " << sums[0] / sums[2]
                << ", training accuracy " << 100 * sums[1] / sums[2] << "%\n";
    for (double& sum : sums) sum = 0;
  }

  if (speaks && !options.checkpoint.empty()) save(options.checkpoint, pipeline.state(), model);
  const bool same = agree(model.weights());
  if (speaks)
    std::cout << done << " batches; the weights " << (same ? "agree" : "do not agree")
              << " on all ranks\n";
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code = 1;
  try {
    code = train(parse(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "train_mpi: " << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);  // the others would wait for this rank
  }
  MPI_Finalize();
  return code;
}
