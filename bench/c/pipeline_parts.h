// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/device.h>
#include <millrace/millrace.h>
#include <millrace/pipeline_options.h>
#include <millrace/transform.h>

#include <memory>

namespace millrace::c {

/// The objects of a caller's `millrace_pipeline_setup`.
struct PipelineParts {
  /// Null if the setup has no dataset.
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const Transform> transform;
  std::shared_ptr<Device> device;
  /// Includes runtime, order, batch transform and state.
  PipelineOptions options;
};

/// Reads a setup. Throws `Error` (`invalid_argument`) if it has no transform, and the errors of
/// options and device.
PipelineParts parts_of(const millrace_pipeline_setup* setup);

}  // namespace millrace::c
