// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes records of coefficients: their decoder, the restoration of their files, and the expansion
// of tiles, compared with plain code. JPEGs are stored and must be restored byte for byte.
#include <millrace/detail/jpeg_recoder.h>
#include <xxhash.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "decode/coefficients/tile_groups.h"
#include "fuzz/codec_fuzz.h"
#include "fuzz/fuzz_seeds.h"
#include "support/jpeg_samples.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::Encoding;

JpegRecoder& recoder() {
  static JpegRecoder one(std::make_shared<DecodeBudget>(DecodeLimits{.max_pixels_per_byte = 50}));
  return one;
}

/// Aborts if the bytes, as a tile, are expanded otherwise than by plain code.
void expect_plain_tile(std::span<const std::byte> bytes) {
  std::vector<std::uint8_t> tile(coefficients::readable_tile_bytes);
  std::memcpy(tile.data(), bytes.data(), std::min(bytes.size(), tile.size()));
  if (!testing::expands_as_plainly(tile.data())) std::abort();
}

void expect_restored(std::span<const std::byte> jpeg) {
  Bytes record;
  Bytes file;
  if (!recoder().store(jpeg, record).is_ok()) return;
  if (!recoder().restore(record, file).is_ok()) std::abort();
  if (!std::equal(file.begin(), file.end(), jpeg.begin(), jpeg.end())) std::abort();
  testing::expect_sound_codec(record);
}

}  // namespace
}  // namespace millrace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  millrace::testing::write_seeds_if_asked(*argc, *argv, [](const std::filesystem::path& folder) {
    using namespace millrace;
    const auto write = [&](const std::string& name, const Bytes& bytes) {
      std::ofstream(folder / name, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    };
    for (const Encoding& encoding : testing::encodings())
      for (const int channels : {1, 3}) {
        if (channels == 1 && encoding.stored_as_rgb) continue;
        const Bytes jpeg = encode(testing::noise(37, 23, 1, channels), encoding);
        const std::string name = encoding.name + (channels == 1 ? ", grey" : "");
        write(name + ".jpg", jpeg);
        Bytes record;
        if (recoder().store(jpeg, record).is_ok()) write(name, record);
      }
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  expect_plain_tile(bytes);
  if (image_kind(bytes) == ImageKind::jpeg) expect_restored(bytes);
  if (image_kind(bytes) != ImageKind::coefficients || size < 8) return 0;
  Bytes file;
  (void)recoder().restore(bytes, file).is_ok();
  testing::expect_sound_codec(bytes);
  // With a right checksum more of the content is read.
  Bytes sealed(bytes.begin(), bytes.end());
  const std::uint64_t checksum = XXH3_64bits(sealed.data(), size - 8);
  std::memcpy(sealed.data() + size - 8, &checksum, 8);
  testing::expect_sound_codec(sealed);
  (void)recoder().restore(sealed, file).is_ok();
  return 0;
}
