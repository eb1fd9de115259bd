// SPDX-License-Identifier: Apache-2.0
//
// Batches of progressive JPEGs have the same bits in the first epoch, which stores hints of their
// rows, and in later ones, which use them.
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "support/pictures.h"

namespace millrace {
namespace {

class ProgressiveHints : public ::testing::Test {
 protected:
  static constexpr std::size_t records = 24;

  ProgressiveHints() {
    std::vector<testing::Bytes> images;
    for (std::size_t n = 0; n < records; ++n)
      images.push_back(encode(testing::noise(200 + static_cast<int>(n), 180, 40 + unsigned(n)),
                              {.scans = testing::Encoding::Scans::progressive}));
    testing::write_pictures(folder_ / "pictures.lmdb", images);
    dataset_ = open_dataset((folder_ / "pictures.lmdb").string());
    options_.batch_size = 8;
    options_.seed = 3;
    options_.epochs = 3;
  }

  /// The images of all batches. A run has a runtime of its own, and so its own hints.
  std::vector<std::byte> run(const Recipe& recipe, std::size_t index_bytes, unsigned workers = 2) {
    options_.index_bytes = index_bytes;
    options_.runtime = make_runtime({.workers = workers});
    Pipeline pipeline(dataset_, image_transform(recipe), std::make_shared<HostDevice>(), options_);
    std::vector<std::byte> bytes;
    while (const Batch batch = pipeline.next()) {
      const Tensor tensor = batch["image"];
      const auto* data = static_cast<const std::byte*>(tensor.data);
      bytes.insert(bytes.end(), data, data + tensor.bytes());
    }
    report_ = pipeline.report();
    return bytes;
  }

  const testing::TemporaryFolder folder_;
  std::shared_ptr<const Dataset> dataset_;
  PipelineOptions options_;
  Report report_;
};

TEST_F(ProgressiveHints, ChangeNoBitOfAnyEpoch) {
  const Recipe recipe = Recipe::train(24);
  const std::vector<std::byte> plain = run(recipe, 0);
  EXPECT_EQ(report_.memory.index_bytes, 0U);
  EXPECT_EQ(run(recipe, 1'000'000), plain);
  EXPECT_EQ(report_.decoders.at("millrace (progressive)"), 3 * records);

  // One worker stores the hint of an image before it decodes the image for the next epoch.
  EXPECT_EQ(run(recipe, 1'000'000, 1), plain);
  EXPECT_GT(report_.memory.index_bytes, 100 * records);
  EXPECT_GE(report_.cache.hinted.samples, 2 * records);
  EXPECT_EQ(report_.decoders.at("millrace (progressive)"), 3 * records);
}

TEST_F(ProgressiveHints, MakeTheSecondEpochEqualTheFirst) {
  options_.order = Order::sequential();
  const std::vector<std::byte> all = run(Recipe::eval(24), 1'000'000);
  EXPECT_GT(report_.memory.index_bytes, 100 * records);
  const std::size_t epoch = all.size() / 3;
  ASSERT_EQ(all.size(), epoch * 3);
  for (std::size_t n = 1; n < 3; ++n)
    EXPECT_TRUE(std::equal(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(epoch),
                           all.begin() + static_cast<std::ptrdiff_t>(n * epoch)))
        << n;
}

}  // namespace
}  // namespace millrace
