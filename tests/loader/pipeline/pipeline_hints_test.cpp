// SPDX-License-Identifier: Apache-2.0
//
// Tests of record hints and cached samples: they come back with their records, in all pipelines
// that share them.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/runtime_services.h"
#include "support/small_run.h"

namespace millrace {
namespace {

using testing::FunctionTransform;
using testing::MemoryDataset;

/// Counts the hints that its transform finds. Each sample appends its record's number to the hint.
struct NotingRun {
  explicit NotingRun(std::uint64_t records, std::optional<std::size_t> index_bytes = {})
      : dataset(std::make_shared<MemoryDataset>(records)) {
    options.batch_size = 8;
    options.epochs = 3;
    options.order = Order::sequential();  // so no record comes again while its sample is being made
    options.index_bytes = index_bytes;
    options.runtime = make_runtime({.workers = 2});
  }

  /// Number of samples by the count of numbers in their hint, and the final size of all hints.
  std::map<std::size_t, std::size_t> counts;
  std::size_t hint_bytes = 0;

  void run() {
    std::array<std::atomic<std::size_t>, 8> found{};
    auto transform = std::make_shared<FunctionTransform>(
        SampleSpec({{"label", DType::int64, {}}}),
        [&](const Record& record, Random&, Sample& sample) {
          sample["label"].as<std::int64_t>()[0] = 0;
          const std::span<const std::byte> hint = sample.hint();
          std::vector<std::uint64_t> numbers(hint.size() / sizeof(std::uint64_t));
          std::ranges::copy(hint, std::as_writable_bytes(std::span(numbers)).begin());
          for (const std::uint64_t number : numbers) EXPECT_EQ(number, record.index());
          ++found.at(sample.has_hints() ? numbers.size() : 7);
          numbers.push_back(record.index());
          sample.keep_hint(std::as_bytes(std::span(numbers)));
          return Status::ok();
        });
    Pipeline pipeline(dataset, transform, std::make_shared<HostDevice>(), options);
    while (const Batch batch = pipeline.next()) continue;
    hint_bytes = pipeline.report().memory.index_bytes;
    counts.clear();
    for (std::size_t n = 0; n < found.size(); ++n)
      if (found.at(n) > 0) counts[n] = found.at(n);
  }

  std::shared_ptr<MemoryDataset> dataset;
  PipelineOptions options;
};

using Counts = std::map<std::size_t, std::size_t>;

TEST(PipelineHints, ComeBackInTheNextEpoch) {
  NotingRun run(100);
  run.run();
  EXPECT_EQ(run.counts, (Counts{{0, 100}, {1, 100}, {2, 100}}));
  EXPECT_GE(run.hint_bytes, 100 * 3 * sizeof(std::uint64_t));
  EXPECT_LE(run.hint_bytes, 100 * 256U);
}

TEST(PipelineHints, AreKeptForTheNextPipelineOverTheDataset) {
  NotingRun run(50);
  run.options.epochs = 1;
  run.run();
  run.run();
  EXPECT_EQ(run.counts, (Counts{{1, 50}}));
  run.dataset = std::make_shared<MemoryDataset>(50);
  run.run();
  EXPECT_EQ(run.counts, (Counts{{0, 50}})) << "another dataset";
  run.options.runtime = make_runtime({.workers = 1});
  run.run();
  EXPECT_EQ(run.counts, (Counts{{0, 50}})) << "another runtime";
}

TEST(PipelineHints, StayWithTheRecordOfTheSampleThatKeptThem) {
  PipelineOptions options;
  options.batch_size = 8;
  options.epochs = 2;
  options.order = Order::sequential();
  options.runtime = make_runtime({.workers = 1});
  std::size_t hints = 0;
  // Each third sample keeps a hint, and each third fails after it has kept one.
  auto transform = std::make_shared<FunctionTransform>(
      SampleSpec({{"label", DType::int64, {}}}),
      [&](const Record& record, Random&, Sample& sample) {
        sample["label"].as<std::int64_t>()[0] = 0;
        const std::uint64_t number = record.index();
        if (!sample.hint().empty()) {
          ++hints;
          EXPECT_EQ(number % 3, 0U);
        }
        if (number % 3 < 2) sample.keep_hint(std::as_bytes(std::span(&number, 1)));
        return number % 3 == 1 ? Status::bad("a third of all") : Status::ok();
      });
  options.bad_records = BadRecords::mark;
  Pipeline pipeline(std::make_shared<MemoryDataset>(48), transform, std::make_shared<HostDevice>(),
                    options);
  while (const Batch batch = pipeline.next()) continue;
  EXPECT_EQ(hints, 16U) << "in the second epoch";
}

TEST(PipelineHints, TakeNoMoreThanTheyMay) {
  NotingRun none(50, 0);
  none.run();
  EXPECT_EQ(none.counts, (Counts{{7, 150}})) << "no hints are kept";
  EXPECT_EQ(none.hint_bytes, 0U);
  NotingRun few(100, 2000);
  few.run();
  EXPECT_GT(few.counts[0], 200U);
  EXPECT_GT(few.counts[1], 5U);
  EXPECT_LE(few.hint_bytes, 2000U);
  EXPECT_GT(few.hint_bytes, 1000U);
}

/// Makes 64 bytes from each record's number, and counts how often. Then each tenth record turns out
/// to be bad.
class CachingTransform final : public Transform {
 public:
  explicit CachingTransform(std::uint64_t fingerprint = 1, std::size_t bytes = 64)
      : fingerprint_(fingerprint), bytes_(bytes) {}
  const SampleSpec& spec() const override { return spec_; }
  CacheablePrefix cacheable_prefix() const override {
    return {.bytes = bytes_, .fingerprint = fingerprint_};
  }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<Worker>(*this);
  }
  std::uint64_t made() const { return made_.exchange(0); }

 private:
  class Worker final : public TransformWorker {
   public:
    explicit Worker(const CachingTransform& transform) : transform_(transform) {}
    Status make(const Record& record, Random&, Sample& sample) override {
      std::vector<std::byte> own(64);
      std::span<const std::byte> bytes = sample.cached();
      if (bytes.empty()) {
        const std::span<std::byte> room = sample.room_in_cache();
        EXPECT_TRUE(room.empty() || room.size() == own.size());
        const std::span<std::byte> made = room.empty() ? std::span(own) : room;
        std::ranges::fill(made, static_cast<std::byte>(record.index()));
        ++transform_.made_;
        bytes = made;
      }
      for (const std::byte byte : bytes) EXPECT_EQ(byte, static_cast<std::byte>(record.index()));
      sample["value"].as<std::uint8_t>()[0] = static_cast<std::uint8_t>(bytes[63]);
      return record.index() % 10 == 3 ? Status::bad("found late") : Status::ok();
    }

   private:
    const CachingTransform& transform_;
  };

  SampleSpec spec_{{{"value", DType::uint8, {}}}};
  std::uint64_t fingerprint_;
  std::size_t bytes_;
  mutable std::atomic<std::uint64_t> made_{0};
};

/// Wraps a transform without a change.
class WrappingTransform final : public Transform {
 public:
  explicit WrappingTransform(std::shared_ptr<const Transform> inner) : inner_(std::move(inner)) {}
  const SampleSpec& spec() const override { return inner_->spec(); }
  CacheablePrefix cacheable_prefix() const override { return inner_->cacheable_prefix(); }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<Worker>(*inner_);
  }

 private:
  class Worker final : public TransformWorker {
   public:
    explicit Worker(const Transform& inner) : spec_(inner.spec()), worker_(inner.make_worker()) {}
    Status make(const Record& record, Random& random, Sample& sample) override {
      Sample part(sample, spec_, std::span(&sample[0], 1), 0);
      return worker_->make(record, random, part);
    }

   private:
    const SampleSpec& spec_;
    std::unique_ptr<TransformWorker> worker_;
  };
  std::shared_ptr<const Transform> inner_;
};

class PipelineCache : public ::testing::Test {
 protected:
  PipelineCache() {
    options_.batch_size = 8;
    options_.epochs = 3;
    // No record comes again while its sample is being made.
    options_.order = Order::sequential();
    options_.bad_records = BadRecords::mark;
    options_.runtime = make_runtime({.workers = 2});
    options_.cache_bytes = 100'000;
  }

  Report run(const std::shared_ptr<const Transform>& transform) {
    Pipeline pipeline(dataset_, transform, std::make_shared<HostDevice>(), options_);
    while (const Batch batch = pipeline.next())
      for (std::size_t n = 0; n < batch.size(); ++n)
        EXPECT_EQ(batch["value"].as<std::uint8_t>()[n],
                  batch.valid()[n] != 0 ? batch.indices()[n] : 0);
    return pipeline.report();
  }

  std::shared_ptr<MemoryDataset> dataset_ = std::make_shared<MemoryDataset>(100);
  PipelineOptions options_;
};

TEST_F(PipelineCache, MakesEachGoodRecordOnce) {
  options_.cache_bytes = 15'200;  // for 95 samples: entries of bad records are given back
  const auto transform = std::make_shared<CachingTransform>();
  const Report report = run(transform);
  EXPECT_EQ(transform->made(), 90U + 3 * 10) << "bad records are never kept";
  EXPECT_EQ(report.cache.hits, 180U);
  EXPECT_EQ(report.cache.misses, 90U);
  EXPECT_EQ(report.bad_records, 30U);
  EXPECT_GE(report.memory.cache_bytes, 90 * 64U);
  EXPECT_LE(report.memory.cache_bytes, options_.cache_bytes);
}

TEST_F(PipelineCache, IsSharedByPipelinesOfOneCacheablePrefix) {
  const auto transform = std::make_shared<CachingTransform>();
  run(transform);
  transform->made();
  run(transform);
  EXPECT_EQ(transform->made(), 30U) << "the bad ones";
  const auto wrapped = std::make_shared<CachingTransform>();
  run(std::make_shared<WrappingTransform>(wrapped));
  EXPECT_EQ(wrapped->made(), 30U);
  const auto other = std::make_shared<CachingTransform>(2);
  run(other);
  EXPECT_EQ(other->made(), 120U) << "another fixed part";
  dataset_ = std::make_shared<MemoryDataset>(100);
  run(transform);
  EXPECT_EQ(transform->made(), 120U) << "another dataset";
}

TEST_F(PipelineCache, IsNotSharedByDatasetsOfOneOwner) {
  const auto parts = std::make_shared<std::array<std::shared_ptr<MemoryDataset>, 2>>();
  for (auto& part : *parts) part = std::make_shared<MemoryDataset>(100);
  const std::shared_ptr<MemoryDataset> train(parts, parts->front().get());
  const std::shared_ptr<MemoryDataset> validation(parts, parts->back().get());
  const auto transform = std::make_shared<CachingTransform>();
  dataset_ = train;
  run(transform);
  RuntimeServices& services = RuntimeServices::of(*options_.runtime);
  const auto recoded = services.recoded_of(dataset_, 1, 100'000);
  const auto hints = services.hints_of(dataset_, 1000);
  EXPECT_EQ(transform->made(), 120U);

  dataset_ = validation;
  EXPECT_EQ(run(transform).cache.hits, 180U) << "as many as for the first one";
  EXPECT_EQ(transform->made(), 120U);
  EXPECT_NE(services.recoded_of(dataset_, 1, 100'000), recoded);
  EXPECT_NE(services.hints_of(dataset_, 1000), hints);

  dataset_ = train;
  run(transform);
  EXPECT_EQ(transform->made(), 30U) << "the bad ones";
  EXPECT_EQ(services.recoded_of(dataset_, 1, 100'000), recoded);
  EXPECT_EQ(services.hints_of(dataset_, 1000), hints);
}

TEST_F(PipelineCache, IsFreedOnRequestUnlessItIsUsed) {
  const auto transform = std::make_shared<CachingTransform>();
  EXPECT_EQ(run(transform).memory.cache_limit_bytes, options_.cache_bytes);
  EXPECT_EQ(transform->made(), 120U);
  RuntimeServices& services = RuntimeServices::of(*options_.runtime);
  auto used = services.cache_of(dataset_, 1, 64, 1);
  options_.runtime->free_unused_caches();
  run(transform);
  EXPECT_EQ(transform->made(), 30U) << "the bad ones";
  used.reset();
  const std::weak_ptr hints = services.hints_of(dataset_, 1);
  EXPECT_FALSE(hints.expired());
  options_.runtime->free_unused_caches();
  EXPECT_TRUE(hints.expired());
  options_.cache_bytes = 10'000;
  EXPECT_EQ(run(transform).memory.cache_limit_bytes, 10'000U) << "the limit goes with the cache";
  EXPECT_GE(transform->made(), 120U);
}

TEST_F(PipelineCache, NamesOtherCachesThatHoldTheBytes) {
  options_.cache_bytes = 15'200;
  const Report first = run(std::make_shared<CachingTransform>());
  EXPECT_GT(first.cache.hits, 0U);
  EXPECT_THAT(
      run(std::make_shared<CachingTransform>(2)).warnings,
      ::testing::Contains(::testing::HasSubstr(
          "caches of other transforms over this dataset hold " +
          std::to_string(first.memory.cache_bytes) + " of the 15200 bytes of cache_bytes")));
  EXPECT_THAT(run(std::make_shared<CachingTransform>(3, 20'000)).warnings,
              ::testing::Contains(::testing::HasSubstr("cache_bytes is 15200, which has no room")))
      << "the others are not to blame";
}

TEST_F(PipelineCache, WarnsOfADatasetThatItsPointerDoesNotOwn) {
  const auto warned = ::testing::Contains(::testing::HasSubstr("use_count() is 0"));
  const auto transform = std::make_shared<CachingTransform>();
  EXPECT_THAT(run(transform).warnings, ::testing::Not(warned));
  const std::shared_ptr<MemoryDataset> owner = dataset_;
  dataset_ = std::shared_ptr<MemoryDataset>(std::shared_ptr<void>(), owner.get());
  EXPECT_THAT(run(transform).warnings, warned);
  options_.cache_bytes = 0;
  EXPECT_THAT(run(transform).warnings, ::testing::Not(warned));
}

TEST_F(PipelineCache, SaysWhyNothingIsKept) {
  const auto caching = std::make_shared<CachingTransform>();
  const auto plain = std::make_shared<testing::FunctionTransform>(
      caching->spec(), [](const Record& record, Random&, Sample& sample) {
        EXPECT_TRUE(sample.cached().empty());
        EXPECT_TRUE(sample.room_in_cache().empty());
        sample["value"].as<std::uint8_t>()[0] = static_cast<std::uint8_t>(record.index());
        return Status::ok();
      });
  for (const auto& [transform, bytes, why] :
       {std::tuple<std::shared_ptr<const Transform>, std::size_t, const char*>{
            plain, 100'000, "cache_bytes has no effect: the transform has nothing to cache"},
        {caching, 900, "no room for a sample of 64 bytes besides the index of 100 records"},
        {caching, std::size_t{1} << 60, "memory that the process may use"},
        {caching, 0, ""}}) {
    options_.runtime = make_runtime({.workers = 2});
    options_.cache_bytes = bytes;
    const Report report = run(transform);
    EXPECT_EQ(report.cache.hits > 0, bytes > 900 && transform == caching) << why;
    const auto said = std::ranges::count_if(report.warnings, [why = why](const std::string& one) {
      return one.find("cache_bytes") != std::string::npos && one.find(why) != std::string::npos;
    });
    EXPECT_EQ(said, bytes > 0 ? 1 : 0) << why;
  }
}

}  // namespace
}  // namespace millrace
