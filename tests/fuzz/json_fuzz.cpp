// SPDX-License-Identifier: Apache-2.0
//
// Any text through all that reads JSON from memory: states and recipes. What is refused is refused
// by `Error` with a message of at most 400 bytes; what is taken is written and read again alike.
#include <millrace/error.h>
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

template <typename Value>
void read(std::string_view text) {
  try {
    const std::string written = Value::from_json(text).to_json();
    if (Value::from_json(written).to_json() != written) std::abort();
  } catch (const millrace::Error& error) {
    if (std::string_view(error.what()).size() > 400) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  millrace::testing::write_seeds_if_asked(*argc, *argv, [](const std::filesystem::path& folder) {
    std::ofstream(folder / "state") << millrace::State{}.to_json();
    std::ofstream(folder / "train") << millrace::Recipe::train(224).to_json();
    std::ofstream(folder / "eval") << millrace::Recipe::eval(224).to_json();
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read<millrace::State>(text);
  read<millrace::Recipe>(text);
  return 0;
}
