// SPDX-License-Identifier: Apache-2.0
//
// Compares our decoder of progressive JPEGs with libjpeg-turbo. Accepted images have the same
// pixels, in the whole and in any region, with a seek index and without. Damaged images have the
// same reason. (A region may be intact if the image is damaged behind it.)
#include <millrace/random.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "decode/jpeg/libjpeg_alone.h"
#include "decode/jpeg/scan_scripts.h"
#include "fuzz/fuzz_seeds.h"
#include "support/jpeg_samples.h"

namespace millrace {
namespace {

void expect_none(const std::string& difference) {
  if (difference.empty()) return;
  std::fprintf(stderr, "%s\n", difference.c_str());
  std::abort();
}

/// Decodes with a changed index, and with one that the image's last bytes make. Any result is
/// allowed, but no read outside of the image's memory.
void decode_with_any_index(JpegDecoder& decoder, std::span<const std::byte> encoded,
                           const Region& region, std::vector<std::byte> index) {
  constexpr std::size_t header_bytes = 14;
  if (index.size() <= header_bytes + 4) return;
  const std::size_t body = index.size() - 4;
  Random random(encoded.size(), std::to_integer<std::uint64_t>(encoded.back()));
  for (const bool is_of_image : {false, true}) {
    const std::size_t count = std::min(body - header_bytes, encoded.size());
    if (is_of_image)
      std::ranges::copy(encoded.last(count), index.begin() + header_bytes);
    else
      for (int n = 0; n < 3; ++n) index[random() % body] ^= static_cast<std::byte>(random());
    const std::uint64_t checksum = XXH3_64bits(index.data(), body);
    std::memcpy(index.data() + body, &checksum, 4);
    if (!decoder.open(encoded).is_ok()) return;
    decoder.use_index(index);
    PixelView view;
    (void)decoder.decode(region, view).is_ok();
  }
}

void compare(std::span<const std::byte> encoded) {
  static JpegDecoder decoder;
  if (!decoder.open(encoded).is_ok()) return;
  if (std::string(decoder.header().decoder) != "millrace (progressive)") return;
  const Size size = decoder.header().size();
  // Larger images only take longer.
  if (std::int64_t{size.width} * size.height > 100'000) return;
  const testing::LibjpegAlone alone = testing::decode_by_libjpeg_alone(encoded);
  const Region whole{0, 0, size.width, size.height};
  expect_none(testing::difference_from_libjpeg(decoder, encoded, alone, whole));
  expect_none(testing::difference_of_check(decoder, encoded, alone));
  // The regions differ between inputs, and are the same each time.
  Random random(encoded.size(), std::to_integer<std::uint64_t>(encoded.back()));
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  const auto any_region = [&] {
    Region region{0, 0, 1 + below(size.width), 1 + below(size.height)};
    region.x = below(size.width - region.width + 1);
    region.y = below(size.height - region.height + 1);
    return region;
  };
  std::vector<std::byte> index;
  for (int n = 0; n < 3; ++n) {
    const Region region = any_region();
    expect_none(testing::difference_from_libjpeg(decoder, encoded, alone, region));
    expect_none(testing::difference_from_libjpeg(decoder, encoded, alone, region, &index));
  }
  expect_none(testing::difference_from_libjpeg(decoder, encoded, alone, whole, &index));
  decode_with_any_index(decoder, encoded, any_region(), index);
  // A lower resolution has no reference to compare with.
  PixelView view;
  const Region reduced{0, 0, (size.width + 3) / 4, (size.height + 3) / 4};
  if (decoder.open(encoded).is_ok()) (void)decoder.decode_reduced(reduced, 4, view).is_ok();
}

void write_seeds(const std::filesystem::path& folder) {
  int number = 0;
  Random random(1, 0);
  for (testing::Encoding encoding : testing::encodings())
    for (int kind = 0; kind < testing::script_kinds; ++kind) {
      if (encoding.scans != testing::Encoding::Scans::one || encoding.arithmetic ||
          encoding.stored_as_rgb)
        continue;
      const int channels = number % 7 == 0 ? 1 : 3;
      encoding.quality = 20 + 13 * kind;
      const testing::Bytes encoded =
          progressive(encode(testing::noise(number % 3 == 0 ? 99 : 35, 41, 1, channels), encoding),
                      testing::script_of_kind(kind, channels, random), number % 4 == 0 ? 3 : 0);
      std::ofstream(folder / std::to_string(number++), std::ios::binary)
          .write(reinterpret_cast<const char*>(encoded.data()),
                 static_cast<std::streamsize>(encoded.size()));
    }
}

}  // namespace
}  // namespace millrace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  millrace::testing::write_seeds_if_asked(*argc, *argv, millrace::write_seeds);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  millrace::compare(std::as_bytes(std::span(data, size)));
  return 0;
}
