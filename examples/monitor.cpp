// SPDX-License-Identifier: Apache-2.0
//
//   monitor DATASET [--prometheus FILE] [--tensorboard FOLDER] [--every N] [--epochs N]
//                   [--batch-size N] [--size N]
//
// Reports of a training run for monitoring: after every N batches the counts of the run go to FILE
// in Prometheus' text format, and scalars to an event file for TensorBoard in FOLDER. The training
// step is left out.

#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/measure.h>
#include <millrace/pipeline.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "arguments.h"
#include "prometheus_file.h"
#include "tensorboard_file.h"

int main(int argc, char** argv) try {
  Arguments arguments(argc, argv);
  std::string prometheus_file;
  std::string tensorboard_folder;
  std::uint64_t every = 100;
  std::uint64_t epochs = 1;
  std::uint64_t batch_size = 64;
  std::uint64_t size = 224;
  arguments.take("--prometheus", prometheus_file);
  arguments.take("--tensorboard", tensorboard_folder);
  arguments.take("--every", every);
  arguments.take("--epochs", epochs);
  arguments.take("--batch-size", batch_size);
  arguments.take("--size", size);
  arguments.finish();
  if (size < 1 || size > 65535) throw std::invalid_argument("--size must be from 1 to 65535");

  millrace::Pipeline train(
      millrace::open_dataset(arguments.dataset()),
      millrace::image_transform(millrace::Recipe::train(static_cast<int>(size))),
      std::make_shared<millrace::HostDevice>(),
      {.batch_size = static_cast<std::size_t>(batch_size), .seed = 7, .epochs = epochs});

  std::optional<PrometheusFile> prometheus;
  std::optional<TensorBoardFile> tensorboard;
  if (!prometheus_file.empty()) prometheus.emplace(prometheus_file);
  if (!tensorboard_folder.empty()) tensorboard.emplace(tensorboard_folder);
  millrace::measure::ReportFeed feed(train, every, [&](const millrace::Report& delta) {
    if (prometheus) (*prometheus)(delta);
    if (tensorboard) (*tensorboard)(delta);
    std::cout << delta.batches << " batches: " << delta.verdict.text << '\n';
  });
  while (const millrace::Batch batch = train.next()) feed.count();  // in place of a training step
  feed.flush();
} catch (const std::exception& error) {
  std::cerr << "monitor: " << error.what() << '\n';
  return 1;
}
