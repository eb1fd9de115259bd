// SPDX-License-Identifier: Apache-2.0
//
// Tests of `Order::bucketed`, and of the lengths that it reads from a dataset.
#include <gmock/gmock.h>
#include <millrace/concat_dataset.h>
#include <millrace/dataset_writer.h>
#include <millrace/error.h>
#include <millrace/record_lengths.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <thread>

#include "loader/order/chi_square.h"
#include "loader/order/drawn.h"
#include "support/fake_dataset.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

using Lengths = std::vector<std::uint32_t>;

/// Lengths like those of texts: most are short, some many times as long.
Lengths skewed(std::uint64_t records) {
  Lengths lengths;
  for (std::uint64_t record = 0; record < records; ++record) {
    const std::uint64_t of_thousand = Random(99, record).below(1000);
    lengths.push_back(
        static_cast<std::uint32_t>(8 + of_thousand * of_thousand * of_thousand / 1'000'000));
  }
  return lengths;
}

Sampler bucketed(std::uint64_t records, std::uint64_t window, std::uint64_t group,
                 std::uint64_t seed = 5) {
  return Sampler(
      Order::bucketed(skewed(records), {.window_records = window, .group_records = group}), records,
      seed);
}

/// Padded size of batches of `size` records, each as long as its longest record, relative to the
/// sum of lengths.
double padded(const std::vector<std::uint64_t>& records, const Lengths& lengths, std::size_t size) {
  std::uint64_t places = 0;
  std::uint64_t sum = 0;
  for (std::size_t begin = 0; begin < records.size(); begin += size) {
    const auto batch = std::span(records).subspan(begin, std::min(size, records.size() - begin));
    std::uint32_t longest = 0;
    for (const std::uint64_t record : batch) {
      longest = std::max(longest, lengths[record]);
      sum += lengths[record];
    }
    places += batch.size() * longest;
  }
  return static_cast<double>(places) / static_cast<double>(sum);
}

TEST(OrderBucketed, EpochsHaveEachRecordOnce) {
  for (std::uint64_t size = 1; size <= 90; ++size)
    for (const std::uint64_t group : {1U, 2U, 7U, 10U, 64U})
      for (const std::uint64_t window : {64U, 65U, 70U, 1000U}) {
        const Sampler sampler = bucketed(size, window, group, size + window);
        ASSERT_EQ(sampler.epoch_size(), size);
        ASSERT_TRUE(is_permutation(epoch_of(sampler, group)))
            << size << " in windows of " << window << ", groups of " << group;
      }
  for (const std::uint64_t size : {4095U, 4096U, 30'011U})
    for (const std::uint64_t window :
         {std::uint64_t{256}, std::uint64_t{1000}, std::uint64_t{4096}, std::uint64_t{1} << 32})
      ASSERT_TRUE(is_permutation(epoch_of(bucketed(size, window, 32), 1))) << size << " " << window;
}

TEST(OrderBucketed, GroupsAreCutsOfASortedWindow) {
  constexpr std::uint64_t window = 60;
  const Lengths lengths = skewed(229);
  const Sampler sampler =
      bucketed(229, 67, 12);  // windows of 5 groups; the last has 4 and 1 record
  bool in_rising_order = true;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<std::uint64_t> records = epoch_of(sampler, epoch);
    for (std::size_t first = 0; first < records.size(); first += window) {
      // From the shortest length of each group to its longest.
      std::map<std::uint32_t, std::uint32_t> groups;
      const std::size_t end = std::min<std::size_t>(first + window, 228);
      for (std::size_t begin = first; begin < end; begin += 12) {
        const auto group = std::span(records).subspan(begin, 12);
        EXPECT_TRUE(std::ranges::is_sorted(group, {}, [&](auto n) { return lengths[n]; }));
        in_rising_order = in_rising_order &&
                          (begin == first || lengths[records[begin - 1]] <= lengths[group.front()]);
        groups[lengths[group.front()]] = lengths[group.back()];
      }
      for (auto group = groups.begin(), next = group; ++next != groups.end(); group = next)
        EXPECT_LE(group->second, next->first) << "groups that overlap";
    }
  }
  EXPECT_FALSE(in_rising_order);
  EXPECT_NE(epoch_of(sampler, 0), epoch_of(sampler, 1));
}

// Padded size of batches of 64 records relative to the sum of lengths: 1 means no padding.
TEST(OrderBucketed, BatchesNeedLittlePadding) {
  constexpr std::uint64_t size = 20'000;
  const Lengths lengths = skewed(size);
  const auto padding = [&](const Sampler& sampler, std::size_t batch) {
    return padded(epoch_of(sampler, 0), lengths, batch);
  };
  EXPECT_NEAR(padding(Sampler(Order::shuffled(), size, 5), 64), 3.7850, 1e-4);
  EXPECT_NEAR(padding(bucketed(size, 64, 64), 64), 3.7766, 1e-4) << "a window of one group";
  EXPECT_NEAR(padding(bucketed(size, 640, 64), 64), 1.2092, 1e-4);
  EXPECT_NEAR(padding(bucketed(size, 6400, 64), 64), 1.0252, 1e-4);
  EXPECT_NEAR(padding(bucketed(size, 1 << 20, 64), 64), 1.0062, 1e-4);
  EXPECT_NEAR(padding(bucketed(size, 6400, 64), 16), 1.0060, 1e-4) << "a rank's piece of the batch";
}

TEST(OrderBucketed, EqualLengthsStayShuffled) {
  const Lengths equal(12, 7);
  std::vector<std::uint64_t> counts(12 * 12);
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const auto records = epoch_of(
        Sampler(Order::bucketed(equal, {.window_records = 6, .group_records = 3}), 12, seed), 0);
    for (std::uint64_t place = 0; place < 12; ++place) ++counts[place * 12 + records[place]];
  }
  EXPECT_LT(chi_square(counts), chi_square_limit(11 * 11));
}

// `LastBatch::drop` leaves the short group out. If it always had the longest records, these would
// never come.
TEST(OrderBucketed, EachRecordIsAsLikelyInTheShortGroup) {
  Lengths lengths(20);
  for (std::uint32_t record = 0; record < 20; ++record) lengths[record] = record;
  const auto counts = [&](std::uint64_t size) {
    const Sampler sampler(
        Order::bucketed({lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(size)},
                        {.window_records = 40, .group_records = 8}),
        size, 5);
    std::vector<std::uint64_t> result(size);
    for (std::uint64_t epoch = 0; epoch < 4000; ++epoch)
      for (std::uint64_t offset = 16; offset < size; ++offset) ++result[sampler.at(epoch, offset)];
    return result;
  };
  EXPECT_LT(chi_square(counts(17)), chi_square_limit(16));
  for (const std::uint64_t count : counts(20))
    EXPECT_NEAR(static_cast<double>(count), 800, 150) << "4 of them in each epoch";
}

TEST(OrderBucketed, PositionsDoNotDependOnWhatWasDrawnBefore) {
  const Sampler whole = bucketed(1003, 96, 8);
  const std::vector<std::uint64_t> reference = drawn(whole, 0, 3 * 1003);
  for (std::uint64_t position = 0; position < reference.size(); position += 41) {
    const Sampler resumed = bucketed(1003, 96, 8);
    const std::uint64_t left = std::min<std::uint64_t>(300, reference.size() - position);
    EXPECT_EQ(drawn(resumed, position, left),
              std::vector(reference.begin() + static_cast<std::ptrdiff_t>(position),
                          reference.begin() + static_cast<std::ptrdiff_t>(position + left)));
  }
  for (std::uint64_t n = 0; n < 500; ++n)
    EXPECT_EQ(whole(n * 977 % reference.size()), reference[n * 977 % reference.size()]);
}

TEST(OrderBucketed, ThreadsDrawTheSameAtOnce) {
  const Sampler sampler = bucketed(1003, 96, 8);
  const std::vector<std::uint64_t> reference = drawn(bucketed(1003, 96, 8), 0, 2 * 1003);
  std::vector<std::vector<std::uint64_t>> seen(6, std::vector<std::uint64_t>(reference.size()));
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < seen.size(); ++thread)
      threads.emplace_back([&, thread] {
        // Each reader starts at another place, so that more windows are in use than are kept.
        for (std::uint64_t n = 0; n < reference.size(); ++n) {
          const std::uint64_t position = (n + thread * 300) % reference.size();
          seen[thread][position] = sampler(position);
        }
      });
  }
  EXPECT_THAT(seen, Each(reference));
}

TEST(OrderBucketed, LengthsAreThoseOfTheDatasetsRecords) {
  Lengths lengths(40);
  for (std::uint32_t record = 0; record < 40; ++record) lengths[record] = 1000 - record;
  const Order order = Order::bucketed(lengths, {.window_records = 40, .group_records = 40});
  const std::vector<std::uint64_t> some{3, 38, 12, 30};
  EXPECT_THAT(epoch_of(Sampler(order.subset(some), 40, 5), 0), ElementsAre(38, 30, 12, 3));
  EXPECT_THAT(epoch_of(Sampler(order.subset(some).repeated(2), 40, 5), 1),
              ElementsAre(38, 38, 30, 30, 12, 12, 3, 3));
  const Sampler filtered(order.filtered(40, [](auto record) { return record > 36; }), 40, 5);
  EXPECT_THAT(epoch_of(filtered, 0), ElementsAre(39, 38, 37));
}

TEST(OrderBucketed, DrawsWhatItAlwaysDrew) {
  EXPECT_THAT(drawn(bucketed(1000, 100, 10, 42), 3000, 6),
              ElementsAre(874, 506, 630, 35, 183, 894));
  EXPECT_THAT(drawn(bucketed(105, 100, 10, 42), 101, 6), ElementsAre(98, 53, 30, 86, 39, 33));
  EXPECT_EQ(bucketed(1000, 100, 10).hash(), 145929439969459912U);
}

TEST(OrderBucketed, HashTellsWhatChangesTheOrder) {
  const auto hash = [](Lengths lengths, Order::Buckets buckets) {
    return Sampler(Order::bucketed(std::move(lengths), buckets), 4, 1).hash();
  };
  std::set<std::uint64_t> hashes{Sampler(Order::shuffled(), 4, 1).hash()};
  const Lengths lengths{1, 2, 3, 4};
  EXPECT_TRUE(hashes.insert(hash(lengths, {.window_records = 8, .group_records = 2})).second);
  EXPECT_TRUE(hashes.insert(hash(lengths, {.window_records = 8, .group_records = 4})).second);
  EXPECT_TRUE(hashes.insert(hash(lengths, {.window_records = 4, .group_records = 2})).second);
  EXPECT_TRUE(hashes.insert(hash({1, 2, 3, 5}, {.window_records = 8, .group_records = 2})).second);
  EXPECT_FALSE(hashes.insert(hash(lengths, {.window_records = 9, .group_records = 2})).second)
      << "a window is whole groups";
}

/// Records of a field "text" with these lengths, and a label.
class Texts final : public Dataset {
 public:
  explicit Texts(Lengths lengths) : lengths_(std::move(lengths)) {}

  static constexpr std::uint32_t bad = UINT32_MAX;

  std::uint64_t size() const override { return lengths_.size(); }
  std::string name() const override { return "texts"; }
  void prefetch(std::span<const std::uint64_t> indices) const override {
    told.insert(told.end(), indices.begin(), indices.end());
  }
  std::unique_ptr<DatasetReader> make_reader() const override {
    return std::make_unique<Reader>(lengths_);
  }

  mutable std::vector<std::uint64_t> told;

 private:
  class Reader final : public DatasetReader {
   public:
    explicit Reader(const Lengths& lengths) : lengths_(lengths) {}
    Record read(std::uint64_t index) override {
      if (lengths_[index] == bad) throw Error(ErrorCode::bad_record, "torn", "read", index);
      bytes_.resize(lengths_[index]);
      fields_ = {{"label", {}}, {"text", bytes_}};
      return Record(index, fields_);
    }

   private:
    Lengths lengths_;
    std::vector<std::byte> bytes_;
    std::vector<RecordField> fields_;
  };

  Lengths lengths_;
};

TEST(RecordLengths, AreTheBytesOfAField) {
  Lengths lengths = skewed(200);
  lengths[7] = 0;
  const Texts texts(lengths);
  EXPECT_EQ(record_lengths(texts, "text"), lengths);
  EXPECT_THAT(record_lengths(texts, "label"), Each(0U));
  EXPECT_THAT(record_lengths(Texts({}), "text"), ::testing::IsEmpty());
  EXPECT_THAT(record_lengths(Texts({5, Texts::bad, 6}), "text"), ElementsAre(5, 0, 6));
  EXPECT_THROW((void)record_lengths(texts, "words"), Error);
}

TEST(RecordLengths, TheDatasetIsToldOfEachRecordOnce) {
  for (const std::uint64_t records : {1U, 63U, 64U, 65U, 200U}) {
    const Texts texts(skewed(records));
    (void)record_lengths(texts, "text");
    EXPECT_EQ(texts.told.size(), records);
    EXPECT_TRUE(is_permutation(texts.told));
  }
}

TEST(RecordLengths, OfAPackedDataset) {
  const TemporaryFolder folder;
  {
    DatasetWriter writer(folder / "texts.lmdb");
    for (const std::uint32_t length : {3U, 0U, 70'000U}) {
      const std::vector<std::byte> bytes(length);
      const RecordField fields[] = {{"text", bytes}};
      writer.append(fields);
    }
    writer.finish();
  }
  const auto dataset = open_dataset(folder / "texts.lmdb");
  EXPECT_THAT(record_lengths(*dataset, "text"), ElementsAre(3, 0, 70'000));
  EXPECT_THAT(record_lengths(*concat_datasets({dataset, dataset}), "text"),
              ElementsAre(3, 0, 70'000, 3, 0, 70'000));
}

TEST(OrderBucketed, ByAFieldIsByItsLengths) {
  const Texts texts(skewed(300));
  const Order::Buckets buckets{.window_records = 64, .group_records = 8};
  const Order by_field = Order::bucketed_by("text", buckets).repeated(2).measured(texts);
  const Sampler sampler(by_field, 300, 5);
  const Sampler by_lengths(Order::bucketed(skewed(300), buckets).repeated(2), 300, 5);
  EXPECT_EQ(epoch_of(sampler, 1), epoch_of(by_lengths, 1));
  EXPECT_EQ(sampler.hash(), by_lengths.hash());
  EXPECT_EQ(epoch_of(Sampler(by_field.measured(Texts({1, 2})), 300, 5), 1), epoch_of(sampler, 1))
      << "what is measured stays so";
  EXPECT_EQ(Sampler(Order::blocks().measured(texts), 300, 5).hash(),
            Sampler(Order::blocks(), 300, 5).hash());
}

TEST(OrderBucketed, RefusesWhatMakesNoSense) {
  const auto make = [](std::uint64_t window, std::uint64_t group) {
    (void)Order::bucketed({1, 2, 3}, {.window_records = window, .group_records = group});
  };
  const Order of_three = Order::bucketed({1, 2, 3}, {.window_records = 2, .group_records = 2});
  const std::vector<std::pair<std::function<void()>, std::string>> cases{
      {[&] { make(8, 0); }, "group_records is 0"},
      {[&] { make(0, 8); }, "window_records is 0"},
      {[&] { make(7, 8); }, "window_records is 7, less than group_records, 8"},
      {[&] { make((std::uint64_t{1} << 32) + 1, 8); }, "at most 2^32 records"},
      {[] { (void)Order::bucketed({}, {.group_records = 1}); }, "there are no lengths"},
      {[] { (void)Order::bucketed_by("", {.group_records = 1}); }, "has no name"},
      {[&] { (void)Sampler(of_three, 4, 1); },
       "there are 3 lengths, but the dataset has 4 records"},
      {[&] {
         (void)Sampler(of_three.subset({0, 1, 2}), 4, 1);
       },
       "there are 3 lengths, but the dataset has 4 records"},
      {[] { (void)Sampler(Order::bucketed_by("text", {.group_records = 1}), 4, 1); },
       "the lengths of field \"text\" have not been read"},
  };
  for (const auto& [call, expected] : cases) {
    try {
      call();
      ADD_FAILURE() << "was not refused: " << expected;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << expected;
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
  }
}

}  // namespace
}  // namespace millrace
