// SPDX-License-Identifier: Apache-2.0

#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <iostream>

int main(int argc, char** argv) try {
  auto device = std::make_shared<millrace::HostDevice>(millrace::HostDeviceOptions{.copies = true});
  auto runtime = millrace::make_runtime();  // the workers, shared by all pipelines of the process
  auto train = millrace::Pipeline(millrace::open_dataset(argc > 1 ? argv[1] : "photos.lmdb"),
                                  millrace::image_transform(millrace::Recipe::train(224)), device,
                                  {.batch_size = 64, .seed = 7, .epochs = 1, .runtime = runtime});
  millrace::HostStream stream;
  double pixels = 0, sum = 0;
  while (auto batch = train.next(stream)) {  // the stream waits for the data, this thread does not
    stream.launch([images = batch.images(), &pixels, &sum] {  // stands for a training step
      for (auto value : images.as<std::uint8_t>()) sum += value;
      pixels += static_cast<double>(images.shape.elements());
    });
  }  // the batch's memory is used again when the stream is done with it
  stream.synchronize();
  auto report = train.report();
  std::cout << report.batches << " batches, " << report.samples << " samples, mean " << sum / pixels
            << '\n'
            << report.verdict.text << '\n';
} catch (const millrace::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
