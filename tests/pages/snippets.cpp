// SPDX-License-Identifier: Apache-2.0
// The C++ of the pages, which is compiled and not run.
#include <millrace/options_file.h>
#include <millrace/pipeline.h>

#include <string>

namespace millrace::pages {

// loader/README.md
PipelineOptions for_rank(bool resuming, const std::string& text) {
  auto ranks = millrace::Ranks::from_environment();  // torchrun, Open MPI, MPICH, SLURM
  auto runtime =
      millrace::make_runtime({.local_rank = ranks.local_rank, .local_world = ranks.local_world});
  millrace::PipelineOptions options{
      .seed = 7, .runtime = runtime, .ranks = {.mine = ranks, .global_batch_size = 1024}};
  if (resuming) options.resume.from = millrace::State::from_json(text);
  return options;
}

// bench/README.md
PipelineOptions tuned() {
  auto loaded = millrace::load_options("train.json");  // loaded.machine_differences: another one?
  loaded.pipeline.runtime = millrace::make_runtime({.workers = loaded.workers});
  return loaded.pipeline;
}

}  // namespace millrace::pages
