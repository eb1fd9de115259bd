// SPDX-License-Identifier: Apache-2.0
//
// Damaged JPEGs and seek indices. Whatever the bytes are, the kernels read and write only the
// sample's own memory, and mark the sample or make the image that the CPU makes. The sample's
// packed crop and scratch are allocations of their exact size, so that the address sanitizer checks
// every access. `MILLRACE_DAMAGED_CROPS` and `MILLRACE_DAMAGED_SEED` set their number and seed.
#include <gmock/gmock.h>
#include <xxhash.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "gpu/pixel/crop_kernel_run.h"
#include "support/sanitizers.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::index_of;
using testing::PackedCrops;

/// A JPEG, its index, and the checksum that binds them.
struct IndexedJpeg {
  Bytes jpeg;
  Bytes index;
  std::uint64_t checksum = 0;
  std::size_t scan_at = 0;
  Size size;

  IndexedJpeg(int width, int height, const testing::Encoding& encoding, IndexPoints points,
              int channels = 3)
      : jpeg(testing::encode(testing::noise(width, height, 3, channels), encoding)),
        index(index_of(jpeg, points)),
        checksum(XXH3_64bits(jpeg.data(), jpeg.size())),
        scan_at(testing::first_scan(jpeg)),
        size{width, height} {}

  /// Leaves an index that reaches as far as a decode of the upper part.
  void keep_upper_part() {
    const auto decoder = make_image_decoder();
    PixelView view;
    EXPECT_TRUE(decoder->open(jpeg).is_ok());
    decoder->use_index({}, checksum);
    EXPECT_TRUE(decoder->decode({0, 0, size.width * 3 / 4, size.height * 2 / 3}, view).is_ok());
    const auto known = decoder->extended_index();
    index.assign(known.begin(), known.end());
  }
};

std::vector<IndexedJpeg> indexed_jpegs() {
  using enum IndexPoints;
  std::vector<IndexedJpeg> all;
  all.emplace_back(181, 77, testing::Encoding{}, tiles);
  all.emplace_back(150, 60, testing::Encoding{.quality = 40, .optimised = true}, tiles);
  all.emplace_back(140, 50, testing::Encoding{}, rows);
  all.emplace_back(150, 40, testing::Encoding{.h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}}, tiles);
  all.emplace_back(170, 40, testing::Encoding{.v = {1, 1, 1, 1}, .restart_mcus = 5}, tiles);
  all.emplace_back(150, 60, testing::Encoding{.h = {1, 1, 1, 1}, .restart_rows = 1}, tiles);
  all.emplace_back(181, 77, testing::Encoding{}, tiles);
  all.back().keep_upper_part();
  all.emplace_back(160, 60, testing::Encoding{.restart_mcus = 15}, tiles);
  all.back().keep_upper_part();
  all.emplace_back(200, 60, testing::Encoding{.h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}}, tiles, 1);
  return all;
}

class ScanDamage : public testing::CropKernelTest {
 protected:
  ScanDamage() {
    if (const char* const seed = std::getenv("MILLRACE_DAMAGED_SEED"))
      random_ = Random(std::strtoull(seed, nullptr, 10), 0);
  }

  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_.below(count)); }
  bool one_of(std::uint64_t count) { return random_.below(count) == 0; }

  /// Changes bytes from `begin` to before `end`: single bits, values, or FF, which may become a
  /// marker.
  void change(Bytes& bytes, std::size_t begin, std::size_t end) {
    for (std::uint64_t changes = 1 + random_.below(3); changes > 0; --changes) {
      std::byte& byte = bytes[begin + below(end - begin)];
      switch (random_.below(3)) {
        case 0:
          byte ^= std::byte{1} << below(8);
          break;
        case 1:
          byte = static_cast<std::byte>(random_.below(256));
          break;
        default:
          byte = std::byte{0xFF};
      }
    }
  }
  void damage_scan(IndexedJpeg& image) {
    change(image.jpeg, image.scan_at, image.jpeg.size());
    if (one_of(16)) image.jpeg.resize(image.scan_at + below(image.jpeg.size() - image.scan_at));
  }
  /// Forges an index: its own checksum is right.
  void damage_index(IndexedJpeg& image) {
    constexpr std::size_t header_bytes = 18;
    constexpr std::size_t checksum_bytes = 4;
    const std::size_t end = image.index.size() - checksum_bytes;
    if (end > header_bytes) change(image.index, one_of(8) ? 14 : header_bytes, end);
    const auto right = static_cast<std::uint32_t>(XXH3_64bits(image.index.data(), end));
    std::memcpy(image.index.data() + end, &right, sizeof right);
  }

  enum class Outcome { left, marked, same };

  /// Packs a random crop and runs the kernels and the reference.
  Outcome outcome_of(const IndexedJpeg& image) {
    PackedCrops crops({23, 19});
    if (!crops.add_jpeg(image.jpeg, image.index, image.checksum,
                        random_crop(image.size, crops.size())))
      return Outcome::left;
    crops.cut();
    std::vector<std::uint8_t> made(crops.image_bytes(), untouched);
    std::vector<std::uint8_t> here = made;
    std::vector<std::uint8_t> marked{0};
    std::vector<std::uint8_t> marked_here{0};
    EXPECT_EQ(run_on_device(crops, made, marked), cudaSuccess);
    run_here(crops, here, marked_here);
    EXPECT_EQ(marked, marked_here);
    EXPECT_TRUE(made == here);
    if (marked.front() != 0) return Outcome::marked;
    EXPECT_TRUE(made == crops.images) << (crops.images.empty() ? "a bad JPEG" : "other pixels");
    return Outcome::same;
  }

  static int crops_to_damage() {
    const char* const wanted = std::getenv("MILLRACE_DAMAGED_CROPS");
    return wanted != nullptr ? std::atoi(wanted) : 700 / testing::one_in;
  }
};

TEST_F(ScanDamage, MarksTheSampleOrGivesTheCpusPixels) {
  const std::vector<IndexedJpeg> images = indexed_jpegs();
  std::array<int, 3> outcomes{};
  for (int n = 0; n < crops_to_damage(); ++n) {
    IndexedJpeg image = images[static_cast<std::size_t>(n) % images.size()];
    const std::uint64_t what = random_.below(4);
    if (what != 0) damage_scan(image);
    if (what <= 1) damage_index(image);
    ++outcomes[static_cast<std::size_t>(outcome_of(image))];
    ASSERT_FALSE(HasFailure()) << "crop " << n;
  }
  EXPECT_THAT(outcomes, ::testing::Each(::testing::Gt(crops_to_damage() / 20)))
      << "left to the CPU, marked, and same as on the CPU";
  RecordProperty("left", outcomes[0]);
  RecordProperty("marked", outcomes[1]);
  RecordProperty("same", outcomes[2]);
}

// Segments whose bits are any. The tables of the packed crop stay as the packer checked them.
TEST_F(ScanDamage, AgreesWithTheHostOnAnyBits) {
  const std::vector<IndexedJpeg> images = indexed_jpegs();
  int marked_ones = 0;
  int sound_ones = 0;
  for (int n = 0; n < crops_to_damage() / 4; ++n) {
    const IndexedJpeg& image = images[static_cast<std::size_t>(n) % images.size()];
    PackedCrops crops({23, 19});
    if (!crops.add_jpeg(image.jpeg, image.index, image.checksum,
                        random_crop(image.size, crops.size())))
      continue;  // below an index of the upper part
    crops.cut();
    const CropScan& scan = crops.header(0).scan;
    auto* const words = reinterpret_cast<std::uint8_t*>(crops.input(0)) + scan.words_at;
    const std::size_t bytes = std::size_t{4} * scan.word_count;
    if (one_of(2))
      words[below(bytes)] = static_cast<std::uint8_t>(random_.below(256));
    else
      std::fill_n(words, bytes, static_cast<std::uint8_t>(one_of(2) ? 0xFF : random_.below(256)));
    std::vector<std::uint8_t> made(crops.image_bytes(), untouched);
    std::vector<std::uint8_t> here = made;
    std::vector<std::uint8_t> marked{0};
    std::vector<std::uint8_t> marked_here{0};
    ASSERT_EQ(run_on_device(crops, made, marked), cudaSuccess);
    run_here(crops, here, marked_here);
    ASSERT_EQ(marked, marked_here) << "crop " << n;
    ASSERT_TRUE(made == here) << "crop " << n;
    ++(marked.front() != 0 ? marked_ones : sound_ones);
  }
  EXPECT_GT(marked_ones, crops_to_damage() / 10);
  EXPECT_GT(sound_ones, 0);
}

}  // namespace
}  // namespace millrace
