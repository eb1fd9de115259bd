// SPDX-License-Identifier: Apache-2.0
//
// Damaged JPEGs with the seek indices of the intact ones. A device that decodes them finds segments
// that do not end where their next ones begin. Batches are those of workers that use the same
// indices.
#include <gtest/gtest.h>
#include <millrace/dataset.h>
#include <millrace/host_device.h>
#include <millrace/image_decoder.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>
#include <millrace/random.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/jpeg_samples.h"

namespace millrace {
namespace {

using testing::Bytes;

/// JPEGs and their stored seek indices. Of every three, the second has a damaged scan.
class DamagedJpegs final : public Dataset {
 public:
  DamagedJpegs() {
    auto all = std::make_shared<std::vector<Stored>>();
    const auto decoder = make_image_decoder();
    Random random(11, 0);
    for (std::uint64_t n = 0; n < 60; ++n) {
      Bytes jpeg = testing::encode(testing::noise(150, 90, static_cast<unsigned>(n)), {});
      EXPECT_TRUE(decoder->open(jpeg).is_ok());
      decoder->use_index({}, image_checksum(Record(n, {}, n)));
      EXPECT_TRUE(decoder->check().is_ok());
      const auto index = decoder->extended_index();
      const std::size_t scan = testing::first_scan(jpeg);
      if (n % 3 == 1) jpeg[scan + random.below(jpeg.size() - scan)] ^= std::byte{0x24};
      all->push_back({std::move(jpeg), Bytes(index.begin(), index.end())});
    }
    all_ = all;
  }
  std::uint64_t size() const override { return all_->size(); }
  std::unique_ptr<DatasetReader> make_reader() const override {
    return std::make_unique<Reader>(all_);
  }
  std::string name() const override { return "damaged"; }
  bool has_stored_hints() const override { return true; }
  void stored_hint(std::uint64_t index, std::vector<std::byte>& hint) const override {
    hint = (*all_)[index].index;
  }

 private:
  struct Stored {
    Bytes jpeg;
    Bytes index;
  };
  using All = std::shared_ptr<const std::vector<Stored>>;

  class Reader final : public DatasetReader {
   public:
    explicit Reader(All all) : all_(std::move(all)) {}
    Record read(std::uint64_t index) override {
      label_ = static_cast<std::int64_t>(index);
      fields_ = {{{"image", (*all_)[index].jpeg}, {"label", std::as_bytes(std::span(&label_, 1))}}};
      return Record(index, fields_, index);
    }

   private:
    All all_;
    std::int64_t label_ = 0;
    std::array<RecordField, 2> fields_;
  };

  All all_;
};

/// The images and record indices of a run, and whether the device has made each.
struct DamagedRun {
  std::vector<std::byte> images{};
  std::vector<std::uint64_t> indices{};
  std::vector<std::uint8_t> packed{};
};

DamagedRun run(DecodeOn decode_on) {
  Recipe recipe = Recipe::train(128);
  recipe.decode_on = decode_on;
  HostStream stream;
  Pipeline pipeline(std::make_shared<const DamagedJpegs>(), image_transform(recipe),
                    std::make_shared<HostDevice>(HostDeviceOptions{.copies = true}),
                    {.batch_size = 16,
                     .seed = 5,
                     .epochs = 3,
                     .bad_records = BadRecords::replace,
                     .conversion = Conversion{.dtype = DType::float32},
                     .runtime = make_runtime({.workers = 2})});
  DamagedRun made;
  while (const Batch batch = pipeline.next(stream)) {
    stream.synchronize();
    const auto add = [&](const char* field, auto& to) {
      using Value = typename std::remove_reference_t<decltype(to)>::value_type;
      const Tensor tensor = batch[field];
      const auto* const data = static_cast<const Value*>(tensor.data);
      to.insert(to.end(), data, data + tensor.bytes() / sizeof(Value));
    };
    add("image", made.images);
    add("index", made.indices);
    if (decode_on == DecodeOn::device) add("packed", made.packed);
  }
  return made;
}

TEST(DeviceDamage, GivesTheBatchesOfWorkers) {
  const DamagedRun of_workers = run(DecodeOn::worker);
  const DamagedRun of_device = run(DecodeOn::device);
  EXPECT_EQ(of_device.indices, of_workers.indices);
  EXPECT_TRUE(of_device.images == of_workers.images);
  std::size_t by_device = 0;
  std::size_t intact_by_device = 0;
  std::size_t intact = 0;
  for (std::size_t n = 0; n < of_device.packed.size(); ++n) {
    const bool is_intact = of_device.indices[n] % 3 != 1;
    by_device += of_device.packed[n];
    intact += is_intact ? 1 : 0;
    intact_by_device += is_intact ? of_device.packed[n] : 0;
  }
  EXPECT_EQ(intact_by_device, intact);
  // Some damage lies beside the crop, some makes segments doubtful.
  EXPECT_GT(by_device, intact);
  EXPECT_LT(by_device, of_device.packed.size());
}

}  // namespace
}  // namespace millrace
