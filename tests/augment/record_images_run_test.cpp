// SPDX-License-Identifier: Apache-2.0
//
// Runs over records of two images: workers, caches, resuming, bad records.
#include <gmock/gmock.h>
#include <millrace/colour_operations.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/pictures.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::error_of;
using ::testing::HasSubstr;

Recipe recipe_of_pairs(Draws draws) {
  Recipe recipe{{64, 48}, {RandomResizedCrop{}, RandomHorizontalFlip{}, ColorJitter{}}};
  recipe.images = {{"second", draws}};
  return recipe;
}

/// 30 records of two images. The second one of record 11 is damaged, and record 17 has none.
class PairDataset final : public Dataset {
 public:
  explicit PairDataset(bool damaged) : damaged_(damaged) {}

  std::uint64_t size() const override { return 30; }
  std::unique_ptr<DatasetReader> make_reader() const override {
    return std::make_unique<Reader>(*this);
  }
  std::string name() const override { return "pairs"; }

 private:
  class Reader final : public DatasetReader {
   public:
    explicit Reader(const PairDataset& dataset) : dataset_(dataset) {}
    Record read(std::uint64_t index) override {
      label_ = static_cast<std::int64_t>(index);
      const auto& images = *dataset_.images_;
      std::span<const std::byte> second = images[(index + 1) % images.size()];
      if (dataset_.damaged_ && index == 11) second = second.first(100);
      fields_ = {{"image", images[index % images.size()]},
                 {"label", std::as_bytes(std::span(&label_, 1))}};
      if (!dataset_.damaged_ || index != 17) fields_.push_back({"second", second});
      return Record(index, fields_);
    }

   private:
    const PairDataset& dataset_;
    std::int64_t label_ = 0;
    std::vector<RecordField> fields_;
  };

  const bool damaged_;
  const std::shared_ptr<const std::vector<Bytes>> images_ =
      std::make_shared<const std::vector<Bytes>>(testing::pictures(4, 90, 60, 17));
};

struct PairBatch {
  std::vector<std::uint64_t> indices;
  std::vector<std::uint8_t> valid;
  std::vector<std::uint8_t> pixels;
  State after;
  friend bool operator==(const PairBatch&, const PairBatch&) = default;
};

Pipeline pair_run(const Recipe& recipe, unsigned workers, bool damaged,
                  const std::function<void(PipelineOptions&)>& change = {}) {
  PipelineOptions options{
      .batch_size = 6, .seed = 9, .epochs = 3, .runtime = make_runtime({.workers = workers})};
  options.debug.poison_slots = true;
  if (change) change(options);
  return Pipeline(std::make_shared<PairDataset>(damaged), image_transform(recipe),
                  std::make_shared<HostDevice>(), std::move(options));
}

std::vector<PairBatch> pair_batches(Pipeline pipeline) {
  std::vector<PairBatch> batches;
  while (const Batch batch = pipeline.next()) {
    PairBatch& made = batches.emplace_back();
    made.indices.assign(batch.indices().begin(), batch.indices().end());
    made.valid.assign(batch.valid().begin(), batch.valid().end());
    for (const char* field : {"image", "second"}) {
      EXPECT_EQ(batch[field].shape, (Shape{6, 48, 64, 3}));
      const auto pixels = batch[field].as<std::uint8_t>();
      made.pixels.insert(made.pixels.end(), pixels.begin(), pixels.end());
    }
    made.after = batch.state_after();
  }
  return batches;
}

TEST(RecordImagesRun, AreTheSameForAnyWorkersCachesAndResumes) {
  for (const Draws draws : {Draws::same, Draws::own}) {
    const Recipe recipe = recipe_of_pairs(draws);
    const std::vector<PairBatch> reference = pair_batches(pair_run(recipe, 1, false));
    ASSERT_EQ(reference.size(), 15U);
    EXPECT_EQ(pair_batches(pair_run(recipe, 4, false)), reference);
    const auto cached = [](PipelineOptions& options) {
      options.cache_bytes = 64 << 20;
      options.index_bytes = 1 << 20;
    };
    EXPECT_EQ(pair_batches(pair_run(recipe, 2, false, cached)), reference);
    const auto resumed = [&](PipelineOptions& options) {
      options.resume.from = reference[6].after;
    };
    EXPECT_EQ(pair_batches(pair_run(recipe, 3, false, resumed)),
              std::vector<PairBatch>(reference.begin() + 7, reference.end()));
  }
}

// A recipe without random geometry is cached, except with further images.
TEST(RecordImagesRun, OfACentreCropAreMadeFromTheRecordEachTime) {
  Recipe recipe{{64, 48}, {Resize{64}, CenterCrop{}, RandomHorizontalFlip{}}};
  recipe.images = {{"second"}};
  EXPECT_EQ(image_transform(recipe)->cacheable_prefix().why_none,
            "the recipe's \"images\" decode further images of each record");
  const auto cached = [](PipelineOptions& options) { options.cache_bytes = 64 << 20; };
  EXPECT_EQ(pair_batches(pair_run(recipe, 2, false, cached)),
            pair_batches(pair_run(recipe, 2, false)));
}

TEST(RecordImagesRun, ABadOneMakesABadRecord) {
  const Recipe recipe = recipe_of_pairs(Draws::same);
  const auto with = [](BadRecords policy) {
    return [policy](PipelineOptions& options) {
      options.bad_records = policy;
      options.order = Order::sequential();
    };
  };
  // With one worker: one of two could reach record 17 before the other has made record 11.
  Pipeline fails = pair_run(recipe, 1, true, with(BadRecords::fail));
  const Error error = error_of([&] { (void)pair_batches(std::move(fails)); });
  EXPECT_EQ(error.code(), ErrorCode::bad_record);
  EXPECT_EQ(error.record(), 11U);
  EXPECT_THAT(error.what(), HasSubstr("its field \"second\""));

  const auto all = pair_batches(pair_run(recipe, 2, false, with(BadRecords::fail)));
  const auto marked = pair_batches(pair_run(recipe, 2, true, with(BadRecords::mark)));
  const auto replaced = pair_batches(pair_run(recipe, 3, true, with(BadRecords::replace)));
  ASSERT_EQ(marked.size(), all.size());
  ASSERT_EQ(replaced.size(), all.size());
  const std::size_t bytes = 64 * 48 * 3;
  for (std::size_t number = 0; number < all.size(); ++number)
    for (std::size_t sample = 0; sample < 6; ++sample) {
      const std::uint64_t record = all[number].indices[sample];
      const bool bad = record == 11 || record == 17;
      EXPECT_EQ(marked[number].valid[sample], bad ? 0 : 1) << record;
      EXPECT_EQ(replaced[number].indices[sample] == record, !bad) << record;
      for (const std::size_t begin : {sample * bytes, (6 + sample) * bytes}) {
        const auto part = [&](const std::vector<PairBatch>& batches) {
          return std::vector<std::uint8_t>(
              batches[number].pixels.begin() + static_cast<std::ptrdiff_t>(begin),
              batches[number].pixels.begin() + static_cast<std::ptrdiff_t>(begin + bytes));
        };
        EXPECT_EQ(part(marked), bad ? std::vector<std::uint8_t>(bytes) : part(all)) << record;
      }
    }
}

}  // namespace
}  // namespace millrace
