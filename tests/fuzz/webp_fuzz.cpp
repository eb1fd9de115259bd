// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the decoding of WebP images: still, with alpha, and the first frame of an animation.
#include <webp/encode.h>

#include <fstream>
#include <string>
#include <vector>

#include "fuzz/codec_fuzz.h"
#include "fuzz/fuzz_seeds.h"

namespace millrace {
namespace {

std::string little_endian(std::size_t number, std::size_t length) {
  std::string text;
  for (; length > 0; --length, number >>= 8) text += static_cast<char>(number & 255);
  return text;
}

std::string chunk(const std::string& name, const std::string& data) {
  return name + little_endian(data.size(), 4) + data + std::string(data.size() % 2, '\0');
}

constexpr int width = 37, height = 23;

std::string webp_of(bool alpha, bool lossless) {
  std::vector<std::uint8_t> rgba;
  for (int n = 0; n < width * height * 4; ++n) rgba.push_back(static_cast<std::uint8_t>(n * n / 7));
  if (!alpha)
    for (std::size_t n = 3; n < rgba.size(); n += 4) rgba[n] = 255;
  std::uint8_t* written = nullptr;
  const std::size_t size =
      lossless ? WebPEncodeLosslessRGBA(rgba.data(), width, height, 4 * width, &written)
               : WebPEncodeRGBA(rgba.data(), width, height, 4 * width, 60, &written);
  std::string encoded(reinterpret_cast<const char*>(written), size);
  WebPFree(written);
  return encoded;
}

/// Makes an animation of one frame, which does not begin at its canvas' corner.
std::string animated(const std::string& still) {
  const std::string chunks = still.substr(still.compare(12, 4, "VP8X") == 0 ? 30 : 12);
  const std::string frame = little_endian(1, 3) + little_endian(2, 3) +
                            little_endian(width - 1, 3) + little_endian(height - 1, 3) +
                            std::string(4, '\0') + chunks;
  const std::string header = little_endian(2, 4) + little_endian(49, 3) + little_endian(29, 3);
  return chunk("RIFF", "WEBP" + chunk("VP8X", header) + chunk("ANIM", std::string(6, '\0')) +
                           chunk("ANMF", frame));
}

}  // namespace
}  // namespace millrace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  millrace::testing::write_seeds_if_asked(*argc, *argv, [](const std::filesystem::path& folder) {
    for (const bool alpha : {false, true})
      for (const bool lossless : {false, true}) {
        const std::string name =
            std::string(alpha ? "alpha" : "opaque") + (lossless ? "_lossless" : "_lossy");
        const std::string still = millrace::webp_of(alpha, lossless);
        std::ofstream(folder / name, std::ios::binary) << still;
        std::ofstream(folder / (name + "_animated"), std::ios::binary) << millrace::animated(still);
      }
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  millrace::testing::expect_sound_codec(std::as_bytes(std::span(data, size)));
  return 0;
}
