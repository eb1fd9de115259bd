// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "support/batch_contents.h"
#include "support/fake_dataset.h"
#include "support/fake_transform.h"
#include "support/waiting.h"

namespace millrace::testing {

/// Arguments of a pipeline over made-up records. A test changes those that it is about and calls
/// `pipeline()`.
struct SmallRun {
  explicit SmallRun(std::uint64_t records, bool copies = false)
      : dataset(std::make_shared<MemoryDataset>(records)),
        device(std::make_shared<HostDevice>(HostDeviceOptions{copies})) {
    options.batch_size = 8;
    options.seed = 42;
    options.epochs = 1;
  }

  std::shared_ptr<MemoryDataset> dataset;
  std::shared_ptr<StampTransform> transform = std::make_shared<StampTransform>();
  std::shared_ptr<Device> device;
  PipelineOptions options;

  void workers(unsigned count) { options.runtime = make_runtime({.workers = count}); }
  Pipeline pipeline() const { return Pipeline(dataset, transform, device, options); }
  Sampler sampler() const { return Sampler(options.order, dataset->size(), options.seed); }
};

/// A run whose samples take uneven time, so that workers overtake each other.
inline SmallRun uneven_run(std::uint64_t records, bool copies = false) {
  SmallRun run(records, copies);
  run.transform->on_begin = [](const Record& record) {
    std::this_thread::sleep_for(std::chrono::microseconds(record.index() * 7919 % 4 * 100));
  };
  return run;
}

/// Returns the `Error` that a function throws; any other result is a failure of the test.
template <typename Function>
Error error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& other) {
    ADD_FAILURE() << "threw an exception that is no Error: " << other.what();
    return Error(ErrorCode::internal, "not an Error");
  } catch (...) {
    ADD_FAILURE() << "threw something that is no Error";
    return Error(ErrorCode::internal, "not an Error");
  }
  ADD_FAILURE() << "threw nothing";
  return Error(ErrorCode::internal, "no error");
}

}  // namespace millrace::testing
