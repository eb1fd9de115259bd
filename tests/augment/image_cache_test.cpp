// SPDX-License-Identifier: Apache-2.0
//
// Batches have the same bits whether their images are decoded or come from the cache.
#include <gmock/gmock.h>
#include <millrace/concat_dataset.h>
#include <millrace/detail/resample.h>
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

/// Everything that a run hands out, and its report.
struct CachedRun {
  std::vector<std::byte> bytes{};
  Report report{};
};

/// Pictures of several sizes, some of them smaller than the output, and one record that is not an
/// image.
class ImageCache : public ::testing::Test {
 protected:
  static constexpr std::size_t records = 41;

  ImageCache() {
    std::vector<Bytes> images = testing::pictures(records - 1, 20, 45, 3);
    images.insert(images.begin() + 7, Bytes(100, std::byte{1}));
    testing::write_pictures(folder_ / "pictures.lmdb", images);
    dataset_ = open_dataset((folder_ / "pictures.lmdb").string());
    options_.batch_size = 8;
    options_.seed = 3;
    options_.epochs = 3;
    options_.bad_records = BadRecords::replace;
  }

  CachedRun run(const Recipe& recipe, unsigned workers = 2) {
    return run(image_transform(recipe), make_runtime({.workers = workers}));
  }
  CachedRun run(const std::shared_ptr<const Transform>& transform,
                const std::shared_ptr<Runtime>& runtime) {
    options_.runtime = runtime;
    Pipeline pipeline(dataset_, transform, std::make_shared<HostDevice>(), options_);
    CachedRun made;
    while (const Batch batch = pipeline.next())
      for (const FieldSpec& field : transform->spec().fields()) {
        const Tensor tensor = batch[field.name];
        const auto* data = static_cast<const std::byte*>(tensor.data);
        made.bytes.insert(made.bytes.end(), data, data + tensor.bytes());
      }
    made.report = pipeline.report();
    return made;
  }

  const testing::TemporaryFolder folder_;
  std::shared_ptr<const Dataset> dataset_;
  PipelineOptions options_;
};

/// Recipes whose geometry is the same for each sample.
std::vector<Recipe> fixed_recipes() {
  const auto with = [](Recipe recipe, const Operation& op) {
    recipe.ops.push_back(op);
    return recipe;
  };
  const Recipe eval{{37, 30}, {Resize{33}, CenterCrop{}}};
  Recipe reduced =
      with({{12, 10}, {ExifTranspose{}, Resize{10}, CenterCrop{}}}, RandomHorizontalFlip{});
  reduced.resolution = Resolution::reduced;
  return {eval,
          with(eval, RandomHorizontalFlip{}),
          with(with(eval, RandomVerticalFlip{}), RandomHorizontalFlip{.p = 0.3}),
          with({{17, 9}, {ResizedCrop{{3, 4, 15, 30}, Interpolation::lanczos}}},
               RandomHorizontalFlip{.p = 1}),
          with({{19, 21}, {FiveCrop{}}}, RandomVerticalFlip{}),
          reduced};
}

TEST_F(ImageCache, ChangesNoBit) {
  for (const Recipe& recipe : fixed_recipes()) {
    SCOPED_TRACE(recipe.to_json());
    options_.cache_bytes = 0;
    const CachedRun plain = run(recipe);
    EXPECT_EQ(plain.report.cache.hits, 0U);
    EXPECT_EQ(plain.report.memory.cache_bytes, 0U);
    for (const std::size_t cache_bytes : {20'000U, 1'000'000U})
      for (const unsigned workers : {1U, 2U, 4U}) {
        options_.cache_bytes = cache_bytes;
        const CachedRun cached = run(recipe, workers);
        EXPECT_EQ(cached.bytes, plain.bytes) << cache_bytes << ", " << workers;
        EXPECT_GT(cached.report.cache.hits, 0U);
        EXPECT_EQ(cached.report.cache.hits + cached.report.cache.misses, 3 * records);
        EXPECT_LE(cached.report.memory.cache_bytes, cache_bytes);
        if (cache_bytes > 100'000 && workers == 1) {
          EXPECT_EQ(cached.report.cache.misses, records - 1);
        }
      }
  }
}

TEST_F(ImageCache, ChangesNoBitOfFlipsOnTheDevice) {
  Recipe recipe{{37, 30}, {Resize{33}, CenterCrop{}}};
  recipe.ops.push_back(RandomHorizontalFlip{.p = 0.5, .on = FlipOn::device});
  options_.conversion = Conversion{.dtype = DType::float16};
  const CachedRun plain = run(recipe);
  options_.cache_bytes = 1'000'000;
  const CachedRun cached = run(recipe);
  EXPECT_EQ(cached.bytes, plain.bytes);
  EXPECT_GT(cached.report.cache.hits, records);
}

TEST_F(ImageCache, IsOneForRecipesOfTheSameGeometry) {
  const auto runtime = make_runtime({.workers = 1});
  dataset_ = concat_datasets({dataset_, dataset_});
  options_.cache_bytes = 1'000'000;
  options_.epochs = 1;
  const std::vector<Recipe> recipes = fixed_recipes();
  EXPECT_LE(run(image_transform(recipes[0]), runtime).report.cache.hits, 2U) << "replacements";
  const CachedRun flipped = run(image_transform(recipes[1]), runtime);
  EXPECT_EQ(flipped.report.cache.hits, 2 * records);
  EXPECT_EQ(flipped.report.cache.misses, 0U);
  EXPECT_LE(run(image_transform(recipes[4]), runtime).report.cache.hits, 2U) << "another";
  // An image that is bad under one limit must not be found in the cache.
  const DecodeLimits strict{.max_pixels_per_byte = 1};
  options_.bad_records = BadRecords::mark;
  EXPECT_EQ(run(image_transform(recipes[0], strict), runtime).report.cache.hits, 0U);
}

TEST(MirrorRows, IsThePlainMirror) {
  for (const int width : {1, 5, 15, 16, 17, 32, 37, 224}) {
    const Size size{width, 3};
    std::vector<std::uint8_t> from(static_cast<std::size_t>(9 * width));
    for (std::size_t n = 0; n < from.size(); ++n) from[n] = static_cast<std::uint8_t>(n * 37 + 11);
    std::vector<std::uint8_t> to(from.size(), 0);
    mirror_rows(from.data(), size, to.data());
    const auto at = [&](int x, int y, int colour) {
      return static_cast<std::size_t>((y * width + x) * 3 + colour);
    };
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < width; ++x)
        for (int colour = 0; colour < 3; ++colour)
          ASSERT_EQ(to[at(width - 1 - x, y, colour)], from[at(x, y, colour)]) << width;
  }
}

}  // namespace
}  // namespace millrace
