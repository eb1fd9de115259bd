// SPDX-License-Identifier: Apache-2.0
//
// A worker that makes two samples interleaved makes the same samples as one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/detail/interleaved_decoder.h>
#include <millrace/image_decoder.h>
#include <millrace/image_transform.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/jpeg_samples.h"
#include "support/sample_maker.h"
#include "support/shared_data.h"

namespace millrace {
namespace {

using testing::Bytes;
using testing::encode;
using testing::noise;

/// Images as tasks for a worker, up to two at once, and their results.
class Samples final : public SampleSource {
 public:
  Samples(const Transform& transform, std::vector<Bytes> images)
      : transform_(transform), images_(std::move(images)) {}

  struct Outcome {
    std::string reason;
    std::vector<std::uint8_t> pixels;
    std::int64_t label = -1;
    std::string decoder_name;
    bool operator==(const Outcome&) const = default;
  };

  SampleTask* next() override {
    const std::size_t open = made_.size() - ended_;
    if (open == 2 || made_.size() == images_.size()) return nullptr;
    made_.emplace_back(transform_.spec(), images_[made_.size()],
                       static_cast<std::int64_t>(made_.size()));
    max_open_ = std::max(max_open_, open + 1);
    return &made_.back().task;
  }
  void made(SampleTask& task, const Status& status) override {
    PendingImage& made = made_of(task);
    made.sample.pause();
    made.outcome.reason = status.reason();
    if (status.is_ok()) {
      made.outcome.pixels = made.pixels;
      made.outcome.label = made.into_label;
      made.outcome.decoder_name = made.sample.decoder_name();
    }
    ++ended_;
  }
  void failed(SampleTask& task) override {
    try {
      throw;
    } catch (const std::exception& error) {
      made(task, Status::bad(std::string("threw ") + error.what()));
    }
  }

  std::vector<Outcome> outcomes() const {
    std::vector<Outcome> outcomes;
    for (const PendingImage& made : made_) outcomes.push_back(made.outcome);
    return outcomes;
  }
  std::size_t max_open() const { return max_open_; }
  std::size_t ended() const { return ended_; }
  std::uint64_t busy_ns() const {
    std::uint64_t sum = 0;
    for (const PendingImage& made : made_)
      for (const std::uint64_t ns : made.stage_ns) sum += ns;
    return sum;
  }

 private:
  struct PendingImage {
    PendingImage(const SampleSpec& spec, const Bytes& image, std::int64_t number)
        : label(number),
          pixels(spec.fields()[0].shape.elements()),
          fields{RecordField{"image", image},
                 RecordField{"label", std::as_bytes(std::span(&label, 1))}},
          record(static_cast<std::uint64_t>(number),
                 std::span(fields).first(number % 10 == 9 ? 1 : 2)),
          random(5, static_cast<std::uint64_t>(number)),
          places{Tensor{pixels.data(), DType::uint8, spec.fields()[0].shape},
                 Tensor{&into_label, DType::int64, {}}},
          sample(spec, places, stage_ns),
          task{record, random, sample} {}
    std::int64_t label;
    std::int64_t into_label = -1;
    std::vector<std::uint8_t> pixels;
    std::array<std::uint64_t, 2> stage_ns{};
    std::array<RecordField, 2> fields;
    Record record;
    Random random;
    std::array<Tensor, 2> places;
    Sample sample;
    SampleTask task;
    Outcome outcome;
  };
  PendingImage& made_of(const SampleTask& task) {
    return *std::ranges::find_if(made_,
                                 [&](const PendingImage& made) { return &made.task == &task; });
  }

  const Transform& transform_;
  const std::vector<Bytes> images_;
  std::deque<PendingImage> made_;
  std::size_t ended_ = 0;
  std::size_t max_open_ = 0;
};

/// Images of many sizes and kinds, some of which can be interleaved. Some are bad in their header,
/// some in their data. Every tenth record lacks its label.
std::vector<Bytes> images() {
  std::vector<Bytes> images;
  unsigned seed = 1;
  for (const testing::Encoding& encoding : testing::encodings())
    for (const int width : {40, 300, 77}) {
      if (encoding.scans > testing::Encoding::Scans::progressive) continue;  // takes long
      images.push_back(encode(noise(width, 60 + width / 4, seed++), encoding));
      if (seed % 7 == 0) images.back().resize(images.back().size() / 2);
      if (seed % 11 == 0) images.back().resize(20);
    }
  const std::string pixmap = "P6 40 30 255\n" + std::string(3600, 'x');
  const auto bytes = std::as_bytes(std::span(pixmap));
  const Bytes large = encode(noise(700, 500, seed), {});
  for (std::size_t at = 0; at < images.size(); at += 7) {
    // Images of both kinds, now after one that can be interleaved and now after another.
    images.insert(images.begin() + static_cast<std::ptrdiff_t>(at), {bytes.begin(), bytes.end()});
    images.insert(images.begin() + static_cast<std::ptrdiff_t>(at + at % 3), large);
  }
  static_assert(700 * 500 > InterleavedDecoder::max_pixels);
  return images;
}

void expect_same(const Recipe& recipe, const std::vector<Bytes>& images, bool takes_turns = true) {
  const auto transform = image_transform(recipe);
  Samples alone(*transform, images);
  const auto worker = transform->make_worker();
  while (SampleTask* const task = alone.next()) {
    Status status = Status::ok();
    try {
      status = worker->make(task->record, task->random, task->sample);
    } catch (...) {
      alone.failed(*task);
      continue;
    }
    alone.made(*task, status);
  }
  Samples in_turn(*transform, images);
  worker->make_interleaved(in_turn);
  EXPECT_EQ(in_turn.ended(), images.size());
  EXPECT_EQ(in_turn.max_open(), takes_turns ? 2U : 1U);
  const auto expected = alone.outcomes();
  const auto made = in_turn.outcomes();
  for (std::size_t n = 0; n < images.size(); ++n)
    ASSERT_TRUE(made[n] == expected[n])
        << "image " << n << ": \"" << made[n].reason << "\", not \"" << expected[n].reason << '"';
}

TEST(InterleavedImages, ComeOutAsAlone) {
  const std::vector<Bytes> all = images();
  const auto transform = image_transform({{32, 32}, {RandomResizedCrop{}}});
  Samples samples(*transform, all);
  transform->make_worker()->make_interleaved(samples);
  std::size_t bad = 0;
  std::size_t threw = 0;
  for (const auto& outcome : samples.outcomes()) {
    bad += outcome.reason.empty() ? 0 : 1;
    threw += outcome.reason.starts_with("threw") ? 1 : 0;
  }
  EXPECT_GT(bad, 5U);
  EXPECT_LT(bad, all.size() / 2);
  EXPECT_GT(threw, 1U) << "records without labels";
  expect_same({{32, 32}, {RandomResizedCrop{}, RandomHorizontalFlip{}}}, all);
  expect_same({{32, 24}, {Resize{40}, CenterCrop{}}}, all);
  expect_same({{24, 24}, {Resize{40}, FiveCrop{}}}, all);
}

TEST(InterleavedImages, AreNotInterleavedAtALowerResolution) {
  Recipe recipe{{32, 32}, {Resize{32}, CenterCrop{}}};
  recipe.resolution = Resolution::reduced;
  expect_same(recipe, {encode(noise(300, 300, 1), {}), encode(noise(310, 300, 1), {})}, false);
}

TEST(InterleavedImages, PhotographsComeOutAsAlone) {
  MILLRACE_NEEDS_SHARED("data/photos");
  std::vector<Bytes> photographs;
  for (const auto& path : testing::jpeg_files(testing::shared_dir() / "data/photos"))
    if (photographs.size() < 100) photographs.push_back(testing::read_file(path));
  expect_same({{224, 224}, {RandomResizedCrop{}, RandomHorizontalFlip{}}}, photographs);
}

// The pipeline keeps its workers when a run of samples ends with an error.
TEST(InterleavedImages, AreNotThoseThatARunLeftBehind) {
  class Ends final : public SampleSource {
   public:
    Ends(Samples& samples, std::size_t ends) : samples_(samples), ends_(ends) {}
    SampleTask* next() override { return samples_.next(); }
    void made(SampleTask& task, const Status& status) override {
      if (ends_-- == 0) throw Error(ErrorCode::transform, "the run is at its end");
      samples_.made(task, status);
    }
    void failed(SampleTask& task) override { samples_.failed(task); }

   private:
    Samples& samples_;
    std::size_t ends_;
  };
  std::vector<Bytes> all = images();
  all.resize(12);
  const auto transform = image_transform({{32, 32}, {RandomResizedCrop{}}});
  Samples undisturbed(*transform, all);
  transform->make_worker()->make_interleaved(undisturbed);
  const auto worker = transform->make_worker();
  for (std::size_t ends = 0; ends < 8; ++ends) {
    {
      Samples left(*transform, all);
      Ends source(left, ends);
      EXPECT_THROW(worker->make_interleaved(source), Error);
    }
    Samples samples(*transform, all);
    worker->make_interleaved(samples);
    ASSERT_TRUE(samples.outcomes() == undisturbed.outcomes()) << ends;
  }
}

TEST(InterleavedImages, ShareTheTimeThatTheyTake) {
  const auto transform = image_transform({{32, 32}, {RandomResizedCrop{}}});
  Samples samples(*transform, images());
  const auto worker = transform->make_worker();
  const auto begin = std::chrono::steady_clock::now();
  worker->make_interleaved(samples);
  const auto taken = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::steady_clock::now() - begin);
  EXPECT_GT(samples.busy_ns(), 0U);
  EXPECT_LE(samples.busy_ns(), static_cast<std::uint64_t>(taken.count()));
}

}  // namespace
}  // namespace millrace
