// SPDX-License-Identifier: Apache-2.0
//
// Compares our decoder of baseline JPEGs with libjpeg-turbo. Accepted images have the same pixels,
// in the whole and in any region, with and without the seek index of earlier regions. Damaged
// images have the same reason. (A region may be intact if the image is damaged behind it.) A forged
// index never makes the decoder read bytes outside the image.
#include <millrace/random.h>
#include <xxhash.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "decode/jpeg/libjpeg_alone.h"
#include "fuzz/fuzz_seeds.h"
#include "support/jpeg_samples.h"

namespace millrace {
namespace {

void expect_none(const std::string& difference) {
  if (difference.empty()) return;
  std::fprintf(stderr, "%s\n", difference.c_str());
  std::abort();
}

void compare(std::span<const std::byte> encoded) {
  static JpegDecoder decoder;
  if (!decoder.open(encoded).is_ok()) return;
  if (std::string(decoder.header().decoder) != "millrace") return;
  const Size size = decoder.header().size();
  // Larger images only take longer.
  if (std::int64_t{size.width} * size.height > 1'000'000) return;
  const testing::LibjpegAlone alone = testing::decode_by_libjpeg_alone(encoded);
  expect_none(
      testing::difference_from_libjpeg(decoder, encoded, alone, {0, 0, size.width, size.height}));
  expect_none(testing::difference_of_check(decoder, encoded, alone));
  // A lower resolution has no reference to compare with.
  for (const int reduction : {2, 4, 8}) {
    PixelView view;
    const auto reduced = [&](int side) { return (side + reduction - 1) / reduction; };
    if (decoder.open(encoded).is_ok())
      (void)decoder
          .decode_reduced({0, 0, reduced(size.width), reduced(size.height)}, reduction, view)
          .is_ok();
  }
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
  const IndexPoints points = encoded.size() % 2 == 0 ? IndexPoints::tiles : IndexPoints::rows;
  for (int n = 0; n < 3; ++n) {
    const Region region = any_region();
    expect_none(testing::difference_from_libjpeg(decoder, encoded, alone, region));
    expect_none(testing::difference_from_libjpeg(decoder, encoded, alone, region, &index, points));
  }
  for (int n = 0; n < 2; ++n)
    expect_none(testing::difference_in_turn(encoded, alone, any_region(),
                                            n > 0 ? index : std::vector<std::byte>()));
  if (index.empty() || !decoder.open(encoded).is_ok()) return;
  const std::size_t body = index.size() - 4;
  for (int n = 0; n < 3; ++n) index[random() % body] ^= static_cast<std::byte>(random());
  const std::uint64_t checksum = XXH3_64bits(index.data(), body);
  std::memcpy(index.data() + body, &checksum, 4);
  decoder.use_index(index);
  PixelView view;
  (void)decoder.decode(any_region(), view).is_ok();
}

void write_seeds(const std::filesystem::path& folder) {
  int number = 0;
  for (testing::Encoding encoding : testing::encodings())
    for (const bool optimised : {false, true})
      for (const int quality : {20, 97}) {
        encoding.optimised = optimised;
        encoding.quality = quality;
        if (encoding.scans != testing::Encoding::Scans::one || encoding.arithmetic) continue;
        const testing::Bytes encoded =
            encode(testing::noise(number % 3 == 0 ? 299 : 35, 41, 1), encoding);
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
