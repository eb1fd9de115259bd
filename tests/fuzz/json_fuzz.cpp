// SPDX-License-Identifier: Apache-2.0
//
// Any text through all functions that read JSON from memory: states, recipes and options. A
// rejected text causes an `Error` with a message of at most 2,000 bytes. Accepted states and
// recipes are written and read again without a change.
#include <millrace/error.h>
#include <millrace/options_file.h>
#include <millrace/recipe.h>
#include <millrace/state.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "fuzz/fuzz_seeds.h"

namespace {

template <typename Read>
void refuse_shortly(const Read& read) {
  try {
    read();
  } catch (const millrace::Error& error) {
    if (std::string_view(error.what()).size() > 2000) std::abort();
  }
}

template <typename Value>
void read(std::string_view text) {
  refuse_shortly([&] {
    const std::string written = Value::from_json(text).to_json();
    if (Value::from_json(written).to_json() != written) std::abort();
  });
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  millrace::testing::write_seeds_if_asked(*argc, *argv, [](const std::filesystem::path& folder) {
    std::ofstream(folder / "state") << millrace::State{}.to_json();
    std::ofstream(folder / "train") << millrace::Recipe::train(224).to_json();
    std::ofstream(folder / "eval") << millrace::Recipe::eval(224).to_json();
    std::ofstream(folder / "policies") << R"({"ops": [{"op": "random_resized_crop"},
               {"op": "random_apply", "p": 0.8, "ops": [{"op": "color_jitter", "hue": [-0.1, 0.1]},
                 {"op": "random_choice", "ops": [{"op": "gaussian_blur", "kernel_size": 9}]}]},
               {"op": "rand_augment", "interpolation": "bilinear", "fill": [124, 116, 104]},
               {"op": "aug_mix", "all_ops": false}]})";
    std::ofstream(folder / "options")
        << R"({"format": 1, "options": {"workers": 2, "batch_size": 64}, "why": "...",
               "run": {"seed": 7, "epochs": 90, "order": "blocks", "block_records": 1024,
                       "bad_records": "mark", "index_bytes": 0, "cache_bytes": 0,
                       "rank": 0, "world": 2, "conversion": {"dtype": "float16",
                       "mean": [0.485, 0.456, 0.406]}},
               "tuned_for": {"dataset": "a.lmdb", "records": 500, "step_ms": 30},
               "machine": {"cpu": "...", "cores": 2}})";
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read<millrace::State>(text);
  read<millrace::Recipe>(text);
  refuse_shortly([&] { (void)millrace::options_from_json(text); });
  return 0;
}
