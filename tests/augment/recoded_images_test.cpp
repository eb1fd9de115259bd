// SPDX-License-Identifier: Apache-2.0
//
// Batches have the same bits whether their JPEGs are decoded or their coefficients are cached.
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <memory>
#include <string>
#include <vector>

#include "support/pictures.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::Encoding;

/// Everything that a run hands out, and its report.
struct RecodedRun {
  std::vector<std::byte> bytes{};
  std::vector<std::uint64_t> indices{};
  Report report{};
  /// After two batches.
  State state{};
};

Bytes pnm(int width, int height) {
  const std::string header =
      "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n";
  const auto* const begin = reinterpret_cast<const std::byte*>(header.data());
  Bytes bytes(begin, begin + header.size());
  for (const std::uint8_t pixel : testing::noise(width, height, 77).pixels)
    bytes.push_back(static_cast<std::byte>(pixel));
  return bytes;
}

/// Baseline and progressive JPEGs, and one each that is damaged below its first rows, of another
/// kind, arithmetic, of four components, and no image.
class RecodedImages : public ::testing::Test {
 protected:
  static constexpr std::size_t jpegs = 36;
  static constexpr std::size_t records = jpegs + 5;

  RecodedImages() {
    std::vector<Bytes> images;
    for (std::size_t n = 0; n < jpegs; ++n)
      images.push_back(
          encode(testing::noise(40 + 3 * static_cast<int>(n), 90, static_cast<unsigned>(n)),
                 {.scans = n % 2 == 0 ? Encoding::Scans::one : Encoding::Scans::progressive}));
    Bytes damaged = images[4];
    damaged[damaged.size() - 100] = std::byte{0xFF};
    damaged[damaged.size() - 99] = std::byte{0xD9};
    images.push_back(damaged);
    images.push_back(pnm(50, 40));
    images.push_back(encode(testing::noise(60, 50, 5), {.arithmetic = true}));
    images.push_back(encode(testing::noise(60, 50, 6, 4), {}));
    images.insert(images.begin() + 7, Bytes(100, std::byte{1}));
    testing::write_pictures(folder_ / "pictures.lmdb", images);
    dataset_ = open_dataset((folder_ / "pictures.lmdb").string());
    options_.batch_size = 8;
    options_.seed = 3;
    options_.epochs = 3;
    options_.bad_records = BadRecords::replace;
  }

  RecodedRun run(const Recipe& recipe, unsigned workers = 2) {
    return run(image_transform(recipe), make_runtime({.workers = workers}));
  }
  RecodedRun run(const std::shared_ptr<const Transform>& transform,
                 const std::shared_ptr<Runtime>& runtime) {
    options_.runtime = runtime;
    Pipeline pipeline(dataset_, transform, std::make_shared<HostDevice>(), options_);
    RecodedRun made;
    const std::size_t limit = pipeline.memory().limit_bytes();
    for (int number = 1; const Batch batch = pipeline.next(); ++number) {
      const Tensor tensor = batch["image"];
      const auto* data = static_cast<const std::byte*>(tensor.data);
      made.bytes.insert(made.bytes.end(), data, data + tensor.bytes());
      made.indices.insert(made.indices.end(), batch.indices().begin(), batch.indices().end());
      if (number == 2) made.state = pipeline.state();
    }
    made.report = pipeline.report();
    EXPECT_EQ(made.report.memory.limit_bytes(), limit) << "known before the run";
    EXPECT_LE(made.report.memory.cache_bytes, options_.cache_bytes);
    return made;
  }

  const testing::TemporaryFolder folder_;
  std::shared_ptr<const Dataset> dataset_;
  PipelineOptions options_;
};

TEST_F(RecodedImages, ChangeNoBit) {
  Recipe reduced = Recipe::train(8);
  reduced.resolution = Resolution::reduced;
  for (const Recipe& recipe : {Recipe::train(24), reduced, Recipe::eval(24)})
    for (const BadRecords policy : {BadRecords::replace, BadRecords::mark}) {
      SCOPED_TRACE(recipe.to_json());
      options_.bad_records = policy;
      options_.cache_bytes = 0;
      const RecodedRun plain = run(recipe);
      for (const std::size_t cache_bytes : {50'000U, 2'000'000U})
        for (const unsigned workers : {1U, 4U}) {
          options_.cache_bytes = cache_bytes;
          const RecodedRun cached = run(recipe, workers);
          EXPECT_EQ(cached.bytes, plain.bytes) << cache_bytes << ", " << workers;
          EXPECT_EQ(cached.indices, plain.indices);
          EXPECT_EQ(cached.report.bad_records, plain.report.bad_records);
          EXPECT_GT(cached.report.cache.hits, 0U);
        }
    }
}

TEST_F(RecodedImages, AreRecodedOnceAndReported) {
  options_.bad_records = BadRecords::mark;
  options_.order = Order::sequential();
  options_.cache_bytes = 2'000'000;
  options_.index_bytes = 1'000'000;
  const Report report = run(Recipe::train(24), 1).report;
  EXPECT_EQ(report.cache.recoded.samples, jpegs);
  EXPECT_EQ(report.cache.hits, 2 * jpegs);
  EXPECT_GT(report.cache.hit_seconds, 0);
  EXPECT_EQ(report.cache.misses, report.cache.recoded.samples + report.cache.hinted.samples +
                                     report.cache.plain.samples);
  EXPECT_EQ(report.decoders.at("millrace (coefficients)"), 3 * jpegs);
  EXPECT_GT(report.memory.cache_bytes, 50'000U);
  EXPECT_EQ(report.memory.cache_limit_bytes, 2'000'000U);
  EXPECT_LT(report.memory.index_bytes, 1000U) << "cached records need no hints";
  for (const std::string& warning : report.warnings)
    EXPECT_THAT(warning, ::testing::Not(::testing::HasSubstr("cache_bytes")));
}

TEST_F(RecodedImages, FailWhereTheirRecordsDo) {
  options_.bad_records = BadRecords::fail;
  const auto reason = [&](std::size_t cache_bytes) {
    options_.cache_bytes = cache_bytes;
    try {
      run(Recipe::train(24));
    } catch (const Error& error) {
      return error.reason();
    }
    return std::string("none");
  };
  EXPECT_EQ(reason(2'000'000), reason(0));
  EXPECT_NE(reason(0), "none");
}

TEST_F(RecodedImages, AreSharedByPipelinesOfTheSameLimits) {
  const auto runtime = make_runtime({.workers = 2});
  options_.cache_bytes = 2'000'000;
  options_.bad_records = BadRecords::mark;
  options_.epochs = 1;
  run(image_transform(Recipe::train(24)), runtime);
  const Report again = run(image_transform(Recipe::train(32)), runtime).report;
  EXPECT_EQ(again.cache.hits, jpegs);
  EXPECT_EQ(again.cache.recoded.samples, 0U);
  // An image that is bad under one limit must not be found in the cache.
  const DecodeLimits strict{.max_pixels_per_byte = 1};
  options_.cache_bytes = 0;
  const RecodedRun plain = run(image_transform(Recipe::train(24), strict), runtime);
  options_.cache_bytes = 2'000'000;
  const RecodedRun cached = run(image_transform(Recipe::train(24), strict), runtime);
  EXPECT_EQ(cached.report.bad_records, plain.report.bad_records);
  EXPECT_EQ(cached.bytes, plain.bytes);
}

TEST_F(RecodedImages, GoOnFromAnyState) {
  options_.cache_bytes = 0;
  const RecodedRun plain = run(Recipe::train(24));
  options_.cache_bytes = 2'000'000;
  const RecodedRun cached = run(Recipe::train(24));
  EXPECT_EQ(cached.state, plain.state);
  options_.resume.from = cached.state;
  const RecodedRun rest = run(Recipe::train(24));
  ASSERT_LT(rest.bytes.size(), plain.bytes.size());
  EXPECT_EQ(rest.bytes, std::vector<std::byte>(
                            plain.bytes.end() - static_cast<std::ptrdiff_t>(rest.bytes.size()),
                            plain.bytes.end()));
}

}  // namespace
}  // namespace millrace
