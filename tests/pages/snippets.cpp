// SPDX-License-Identifier: Apache-2.0
// The C++ of the pages, which is compiled and not run.
#include <millrace/options_file.h>
#include <millrace/pipeline.h>

#include <string>

namespace millrace::pages {

// bench/README.md
PipelineOptions tuned() {
  auto loaded = millrace::load_options("train.json");  // loaded.machine_differences: another one?
  loaded.pipeline.runtime = millrace::make_runtime({.workers = loaded.workers});
  return loaded.pipeline;
}

}  // namespace millrace::pages
