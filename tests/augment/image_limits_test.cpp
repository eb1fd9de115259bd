// SPDX-License-Identifier: Apache-2.0
//
// Samples of large images: the workers share the memory limit, and make the same samples.
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <vector>

#include "support/jpeg_bombs.h"
#include "support/pictures.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::encode;
using testing::hollow_jpeg;
using testing::noise;

/// Pixels of all samples by record; empty for a bad record.
std::vector<std::vector<std::uint8_t>> samples(const std::shared_ptr<const Dataset>& dataset,
                                               const Recipe& recipe, unsigned workers,
                                               const DecodeLimits& limits) {
  Pipeline pipeline(dataset, image_transform(recipe, limits), std::make_shared<HostDevice>(),
                    {.batch_size = 6,
                     .order = Order::sequential(),
                     .epochs = 1,
                     .bad_records = BadRecords::mark,
                     .runtime = make_runtime({.workers = workers})});
  std::vector<std::vector<std::uint8_t>> made(dataset->size());
  while (const Batch batch = pipeline.next()) {
    const auto pixels = batch.images().as<std::uint8_t>();
    const std::size_t each = pixels.size() / batch.size();
    for (std::size_t sample = 0; sample < batch.size(); ++sample)
      if (batch.valid()[sample] != 0)
        made[batch.indices()[sample]].assign(pixels.data() + sample * each,
                                             pixels.data() + (sample + 1) * each);
  }
  return made;
}

// Two large images do not fit at once. The thin ones need more than the limit when they are
// enlarged.
TEST(ImageLimits, WorkersWaitForEachOtherAndMakeTheSame) {
  constexpr std::uint64_t budget = 70'000'000;
  std::vector<Bytes> jpegs;
  for (unsigned n = 0; n < 2; ++n) {
    jpegs.push_back(encode(noise(60, 50, n), {}));
    jpegs.push_back(hollow_jpeg({}));
    jpegs.push_back(hollow_jpeg({.width = 3000, .height = 2400, .padding = 10'000}));
    jpegs.push_back(hollow_jpeg({.width = 4000, .height = 2400, .padding = 10'000}));
    jpegs.push_back(hollow_jpeg({.width = 10, .height = 60'000, .padding = 1'000}));
    jpegs.push_back(encode(noise(70, 40, n), {}));
  }
  const testing::TemporaryFolder folder;
  testing::write_pictures(folder / "mixed.lmdb", jpegs);
  const auto dataset = open_dataset(folder / "mixed.lmdb");
  const Recipe recipe = testing::window_of({32, 32}, 120);
  const auto alone = samples(dataset, recipe, 1, {.max_decode_bytes = budget});
  for (std::size_t n = 0; n < alone.size(); ++n)
    EXPECT_EQ(alone[n].empty(), n % 6 == 1 || n % 6 == 3) << n;
  for (const unsigned workers : {2U, 8U})
    EXPECT_TRUE(samples(dataset, recipe, workers, {.max_decode_bytes = budget}) == alone);
  const auto more = samples(dataset, recipe, 8, {.max_decode_bytes = 2 * budget});
  for (std::size_t n = 0; n < alone.size(); ++n) {
    EXPECT_EQ(more[n].empty(), n % 6 == 1) << n;
    EXPECT_TRUE(more[n] == alone[n] || n % 6 == 3) << n;
  }
}

TEST(ImageLimits, RefusesLimitsOfNothing) {
  EXPECT_THROW(image_transform(Recipe::train(32), {.max_decode_bytes = 0}), Error);
}

}  // namespace
}  // namespace millrace
