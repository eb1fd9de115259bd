// SPDX-License-Identifier: Apache-2.0
//
// A sample depends on its record only, not on the samples that its worker made before.
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <map>

#include "support/pictures.h"
#include "support/sample_maker.h"

namespace millrace {
namespace {

TEST(MixedJpegs, AreTheSameSamplesInAnyOrderByAnyWorkers) {
  const std::vector<testing::Bytes> jpegs = testing::mixed_jpegs();
  const Recipe recipe = testing::window_of({40, 30}, 35);

  /// Pixels by record, without the bad ones.
  std::map<std::uint64_t, std::vector<std::uint8_t>> fresh;
  for (std::size_t n = 0; n < jpegs.size(); ++n) {
    testing::Maker maker(recipe);
    Random random(1, 1);
    if (maker.make(jpegs[n], 0, random).is_ok()) fresh[n] = maker.image().pixels;
  }
  EXPECT_GE(fresh.size(), 10U);
  EXPECT_LE(fresh.size(), 30U);

  const testing::TemporaryFolder folder;
  testing::write_pictures(folder / "mixed.lmdb", jpegs);
  const auto dataset = open_dataset(folder / "mixed.lmdb");
  for (unsigned seed = 0; seed < 100; ++seed) {
    Pipeline pipeline(dataset, image_transform(recipe), std::make_shared<HostDevice>(),
                      {.batch_size = 8,
                       .seed = seed,
                       .epochs = 1,
                       .bad_records = BadRecords::mark,
                       .runtime = make_runtime({.workers = 1 + seed % 4})});
    std::map<std::uint64_t, std::vector<std::uint8_t>> made;
    while (const Batch batch = pipeline.next()) {
      const auto pixels = batch.images().as<std::uint8_t>();
      const std::size_t each = pixels.size() / batch.size();
      for (std::size_t sample = 0; sample < batch.size(); ++sample)
        if (batch.valid()[sample] != 0) {
          const auto* first = pixels.data() + sample * each;
          made[batch.indices()[sample]].assign(first, first + each);
        }
    }
    for (std::size_t n = 0; n < jpegs.size(); ++n)
      ASSERT_TRUE(made[n] == fresh[n])
          << "record " << n << " of seed " << seed << ", " << 1 + seed % 4 << " workers: it is "
          << (made[n].empty() ? "bad" : "sound") << ", alone "
          << (fresh[n].empty() ? "bad" : "sound");
  }
}

TEST(MixedJpegs, LeaveNothingInAWorkersScratch) {
  const Recipe recipes[] = {Recipe::train(40), Recipe::eval(50), testing::window_of({60, 30}, 33)};
  for (const Recipe& recipe : recipes) {
    testing::Maker used(recipe);
    Random sizes(1, 1);
    for (std::uint64_t n = 0; n < 200; ++n) {
      const int width = 1 + static_cast<int>(sizes() % 150);
      const int height = 1 + static_cast<int>(sizes() % 150);
      const testing::Bytes encoded = testing::encode(testing::noise(width, height, sizes()), {});
      testing::Maker fresh(recipe);
      Random random(2, n);
      Random same(2, n);
      ASSERT_TRUE(used.make(encoded, 0, random).is_ok());
      ASSERT_TRUE(fresh.make(encoded, 0, same).is_ok());
      ASSERT_TRUE(used.image().pixels == fresh.image().pixels)
          << recipe.to_json() << " of " << width << " x " << height;
    }
  }
}

}  // namespace
}  // namespace millrace
