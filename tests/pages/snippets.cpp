// SPDX-License-Identifier: Apache-2.0
// The C++ of the pages, compiled but not run.
#include <millrace/image_decoder.h>
#include <millrace/options_file.h>
#include <millrace/pipeline.h>
#include <millrace/recipe.h>

#include <cstddef>
#include <span>
#include <string>

namespace millrace::pages {

// loader/README.md
PipelineOptions for_rank(bool resuming, const std::string& text) {
  auto ranks = millrace::Ranks::from_environment();  // torchrun, Open MPI, MPICH, SLURM
  auto runtime =
      millrace::make_runtime({.local_rank = ranks.local_rank, .local_world = ranks.local_world});
  millrace::PipelineOptions options{
      .seed = 7, .runtime = runtime, .ranks = {.this_process = ranks, .global_batch_size = 1024}};
  if (resuming) options.resume.from = millrace::State::from_json(text);
  return options;
}

// decode/README.md
bool decodes(std::span<const std::byte> bytes, int x, int y, int width, int height) {
  auto decoder = millrace::make_image_decoder();   // one per thread, for all of its images
  millrace::Status opened = decoder->open(bytes);  // bad: "a GIF image; only ..."
  decoder->header();                               // kind, width, height, components
  millrace::PixelView view;
  millrace::Status decoded = decoder->decode({x, y, width, height}, view);  // or check()
  return opened.is_ok() && decoded.is_ok();
}

// augment/README.md
Recipe eval() {
  millrace::Recipe recipe{{224, 224}, {millrace::Resize{256}, millrace::CenterCrop{}}};
  return recipe;
}

// bench/measure/README.md
PipelineOptions tuned() {
  auto loaded = millrace::load_options("train.json");  // loaded.machine_differences: another one?
  loaded.pipeline.runtime = millrace::make_runtime({.workers = loaded.workers});
  return loaded.pipeline;
}

}  // namespace millrace::pages
