// SPDX-License-Identifier: Apache-2.0
//
// Batches that are mixed by a worker and by the device.
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/mix.h>
#include <millrace/pipeline.h>
#include <millrace/warp_operations.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "augment/jpeg_dataset.h"
#include "support/recipe_text.h"

namespace millrace {
namespace {

using testing::why_not;

constexpr int mixed_classes = 30;

struct MixedRun {
  std::vector<std::vector<std::byte>> images;
  std::vector<std::vector<float>> targets;
  std::vector<std::vector<std::int64_t>> labels;
};

MixedRun mixed_run(const Recipe& recipe, const std::optional<Conversion>& conversion,
                   unsigned workers = 2) {
  PipelineOptions options{.batch_size = 8,
                          .seed = 5,
                          .epochs = 3,
                          .conversion = conversion,
                          .runtime = make_runtime({.workers = workers})};
  Pipeline pipeline(std::make_shared<testing::JpegDataset>(), image_transform(recipe),
                    std::make_shared<HostDevice>(), options);
  MixedRun made;
  while (const Batch batch = pipeline.next()) {
    const Tensor images = batch.images();
    const auto* data = static_cast<const std::byte*>(images.data);
    made.images.emplace_back(data, data + images.bytes());
    const auto labels = batch.labels().as<std::int64_t>();
    made.labels.emplace_back(labels.begin(), labels.end());
    if (!recipe.mix) continue;
    const auto targets = batch["target"].as<float>();
    made.targets.emplace_back(targets.begin(), targets.end());
  }
  return made;
}

Recipe recipe_of(const std::optional<Mix>& mix, FlipOn flip_on = FlipOn::worker) {
  Recipe recipe = Recipe::train(24);
  recipe.ops.back() = RandomHorizontalFlip{.p = 0.5, .on = flip_on};
  recipe.mix = mix;
  return recipe;
}

TEST(Mix, HasTheSameBitsOnWorkerAndDevice) {
  for (const DType dtype : {DType::uint8, DType::float16}) {
    Conversion conversion{.dtype = dtype};
    if (dtype != DType::uint8) conversion.mean = Conversion::imagenet_mean;
    Mix mix{.classes = mixed_classes, .p = 0.8};
    const MixedRun on_worker = mixed_run(recipe_of(mix), conversion, 4);
    mix.on = MixOn::device;
    for (const FlipOn flip_on : {FlipOn::worker, FlipOn::device}) {
      const MixedRun on_device = mixed_run(recipe_of(mix, flip_on), conversion, 1);
      EXPECT_EQ(on_device.images, on_worker.images);
      EXPECT_EQ(on_device.targets, on_worker.targets);
    }
    EXPECT_NE(on_worker.images, mixed_run(recipe_of(std::nullopt), conversion).images);
  }
}

// Every batch is the mixture of the unmixed batch by the share in its targets.
TEST(Mix, MixesPixelsByTheShareOfTheTargets) {
  const MixedRun plain = mixed_run(recipe_of(std::nullopt), std::nullopt);
  const MixedRun mixed =
      mixed_run(recipe_of(Mix{.classes = mixed_classes, .mixup = 1, .cutmix = 0}), std::nullopt);
  ASSERT_EQ(plain.images.size(), mixed.images.size());
  std::size_t changed = 0;
  for (std::size_t batch = 0; batch < plain.images.size(); ++batch) {
    const std::vector<std::int64_t>& labels = mixed.labels[batch];
    const std::size_t samples = labels.size();
    const std::size_t bytes = plain.images[batch].size() / samples;
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const std::size_t other = samples - 1 - sample;
      const float* const target = &mixed.targets[batch][sample * mixed_classes];
      const float share = target[labels[sample]];
      EXPECT_FLOAT_EQ(share + (other == sample ? 0 : target[labels[other]]), 1);
      changed += share < 1 ? 1 : 0;
      for (std::size_t byte = 0; byte < bytes; ++byte) {
        const float own = std::to_integer<std::uint8_t>(plain.images[batch][sample * bytes + byte]);
        const float his = std::to_integer<std::uint8_t>(plain.images[batch][other * bytes + byte]);
        const float is = std::to_integer<std::uint8_t>(mixed.images[batch][sample * bytes + byte]);
        ASSERT_NEAR(is, own * share + his * (1 - share), 0.51F);
      }
    }
  }
  EXPECT_GT(changed, 60U);
}

TEST(Mix, CutsABoxOfTheShareOfTheTargets) {
  const MixedRun plain = mixed_run(recipe_of(std::nullopt), std::nullopt);
  const MixedRun mixed =
      mixed_run(recipe_of(Mix{.classes = mixed_classes, .mixup = 0, .cutmix = 1}), std::nullopt);
  for (std::size_t batch = 0; batch < plain.images.size(); ++batch) {
    const std::size_t samples = mixed.labels[batch].size();
    const std::size_t bytes = plain.images[batch].size() / samples;
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const std::size_t other = samples - 1 - sample;
      if (other == sample) continue;
      const float share =
          mixed.targets[batch][sample * mixed_classes +
                               static_cast<std::size_t>(mixed.labels[batch][sample])];
      std::size_t own = 0;
      for (std::size_t byte = 0; byte < bytes; ++byte) {
        const std::byte is = mixed.images[batch][sample * bytes + byte];
        const bool is_own = is == plain.images[batch][sample * bytes + byte];
        ASSERT_TRUE(is_own || is == plain.images[batch][other * bytes + byte]);
        own += is_own ? 1 : 0;
      }
      EXPECT_GE(static_cast<float>(own) / static_cast<float>(bytes), share - 1e-6F);
    }
  }
}

/// The shares of the first of two blank samples, drawn by 2,000 batches.
std::map<std::string, std::vector<double>> shares_of(const Mix& mix) {
  const auto transform = mix_transform(mix);
  const SampleSpec spec({{"image", DType::uint8, {20, 30, 1}},
                         {"label", DType::int64, {}},
                         {"target", DType::float32, {2}},
                         {"mix", DType::int32, {5}}});
  std::map<std::string, std::vector<double>> shares;
  for (std::uint64_t position = 0; position < 2000; ++position) {
    std::vector<std::uint8_t> images(2 * 20 * 30);
    std::vector<std::int64_t> labels{0, 1};
    std::vector<float> targets(4);
    std::vector<std::int32_t> mixes(10);
    const std::vector<std::uint64_t> indices{0, 1};
    const std::vector<std::uint8_t> valid{1, 1};
    MadeBatch batch(spec,
                    {{images.data(), DType::uint8, {2, 20, 30, 1}},
                     {labels.data(), DType::int64, {2}},
                     {targets.data(), DType::float32, {2, 2}},
                     {mixes.data(), DType::int32, {2, 5}}},
                    indices, valid);
    Random random(3, position, 18);
    transform->run(batch, random);
    const char* kind = mixes[3] > 0 ? "cutmix" : mixes[0] < 256 ? "mixup" : "none";
    shares[kind].push_back(targets[0]);
  }
  return shares;
}

// With alpha 1 the share is uniform.
TEST(Mix, DrawsItsShares) {
  const auto shares =
      shares_of({.classes = 2, .mixup = 1, .cutmix = 1, .p = 0.5, .on = MixOn::device});
  EXPECT_NEAR(static_cast<double>(shares.at("none").size()), 1000, 100);
  EXPECT_NEAR(static_cast<double>(shares.at("mixup").size()), 500, 80);
  EXPECT_NEAR(static_cast<double>(shares.at("cutmix").size()), 500, 80);
  std::vector<double> bins(10);
  for (const double share : shares.at("mixup"))
    ++bins[std::min<std::size_t>(9, static_cast<std::size_t>(share * 10))];
  const double expected = static_cast<double>(shares.at("mixup").size()) / 10;
  double chi_square = 0;
  for (const double bin : bins) chi_square += (bin - expected) * (bin - expected) / expected;
  EXPECT_LT(chi_square, 27.9) << "9 degrees of freedom, p = 0.001";

  // Small alphas: hardly anything is mixed, and each share is a number.
  const auto few = shares_of({.classes = 2, .mixup = 1e-6, .cutmix = 0, .on = MixOn::device});
  for (const double share : few.at("mixup")) ASSERT_TRUE(share >= 0 && share <= 1);
}

TEST(Mix, LeavesSamplesThatAreNotValid) {
  const auto transform = mix_transform({.classes = 9, .mixup = 1, .cutmix = 0});
  const SampleSpec samples({{"image", DType::uint8, {1, 1, 1}}, {"label", DType::int64, {}}});
  const SampleSpec spec({{"image", DType::uint8, {1, 1, 1}},
                         {"label", DType::int64, {}},
                         transform->fields(samples).front()});
  std::vector<std::uint8_t> images{200, 100, 0, 0};
  std::vector<std::int64_t> labels{1, 2, 3, -1};  // the last one was never written
  std::vector<float> targets(4 * 9);
  const std::vector<std::uint64_t> indices{0, 1, 2, 3};
  const std::vector<std::uint8_t> valid{1, 1, 1, 0};
  MadeBatch batch(spec,
                  {{images.data(), DType::uint8, {4, 1, 1, 1}},
                   {labels.data(), DType::int64, {4}},
                   {targets.data(), DType::float32, {4, 9}}},
                  indices, valid);
  Random random(1, 1);
  transform->run(batch, random);
  EXPECT_EQ(images[0], 200) << "its partner is not valid";
  EXPECT_EQ(targets[1], 1);
  EXPECT_EQ(images[3], 0);
  EXPECT_THAT(std::span(targets).last(9), ::testing::Each(0));
  EXPECT_NE(images[1], 100);

  labels[1] = 9;
  try {
    transform->run(batch, random);
    FAIL() << "there is no class 9";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("record 1 has the label 9, and mix.classes is 9"));
  }
}

// Boxes are those of the flipped image, on the worker and on the device.
TEST(DeviceErasing, HasTheBitsOfTheWorkers) {
  const Conversion conversion{.dtype = DType::float16, .mean = Conversion::imagenet_mean};
  RandomErasing erasing{.p = 0.7, .value = {200, 100, 50}};
  Mix mix{.classes = mixed_classes};
  const auto images_of = [&](FlipOn flip_on, bool mixed) {
    Recipe recipe = recipe_of(mixed ? std::optional(mix) : std::nullopt, flip_on);
    recipe.ops.emplace_back(erasing);
    return mixed_run(recipe, conversion).images;
  };
  const auto plain = images_of(FlipOn::worker, false);
  const auto mixed = images_of(FlipOn::worker, true);
  EXPECT_NE(plain, mixed_run(recipe_of(std::nullopt), conversion).images);
  EXPECT_NE(plain, mixed);
  erasing.on = EraseOn::device;
  mix.on = MixOn::device;
  for (const FlipOn flip_on : {FlipOn::worker, FlipOn::device}) {
    EXPECT_EQ(images_of(flip_on, false), plain);
    EXPECT_EQ(images_of(flip_on, true), mixed);
  }
}

TEST(DeviceErasing, StandsBehindWhatWorkersDo) {
  const std::string crop = R"({"op": "random_resized_crop"}, )";
  const std::string erase = R"({"op": "random_erasing", "on": "device"})";
  EXPECT_EQ(
      testing::why_no_list("[" + crop + erase + R"(, {"op": "random_erasing"}])"),
      "train.json: ops[2] (random_erasing) comes after ops[1] (random_erasing), which runs on "
      "the device; only other operations on the device may follow, a flip before the others");
  EXPECT_EQ(
      testing::why_no_list("[" + crop + erase +
                           R"(, {"op": "random_horizontal_flip", "on": "device"}])"),
      "train.json: ops[2] (random_horizontal_flip) comes after ops[1] (random_erasing), which "
      "runs on the device; only other operations on the device may follow, a flip before the "
      "others");
}

TEST(Mix, IsWrittenAndReadWithTheRecipe) {
  const Recipe recipe = recipe_of(Mix{.classes = 12, .cutmix = 0, .on = MixOn::device});
  EXPECT_EQ(Recipe::from_json(recipe.to_json()), recipe);
  EXPECT_THAT(recipe.to_json(), ::testing::HasSubstr(R"("mix":{"classes":12,"mixup":0.2)"));
  EXPECT_NE(recipe.to_json(), recipe_of(std::nullopt).to_json());
}

TEST(Mix, RefusesWhatItCannotDo) {
  const struct {
    const char* mix;
    const char* why;
  } table[] = {
      {R"({})", "train.json: mix: \"classes\" is 0, must lie in 2..1048576"},
      {R"({"classes": 1.5})", "train.json: mix: \"classes\" is 1.5, must be an integer"},
      {R"({"classes": 9, "p": 2})", "train.json: mix: \"p\" is 2.0, must lie in 0.0..1.0"},
      {R"({"classes": 9, "mixup": 0, "cutmix": 0})",
       "train.json: mix: \"mixup\" and \"cutmix\" are both 0, and nothing is mixed"},
      {R"({"classes": 9, "on": "gpu"})",
       "train.json: mix: \"on\" is \"gpu\", must be \"worker\" or \"device\""},
      {R"({"classes": 9, "size": 3})",
       "train.json: mix: unknown key \"size\"; the known keys are \"classes\", \"mixup\", "
       "\"cutmix\", "
       "\"cutmix_share\", \"p\", \"on\""},
      {"7", "train.json: mix: mix must be an object in { }"},
  };
  for (const auto& [mix, why] : table)
    EXPECT_EQ(why_not(R"({"mix": )" + std::string(mix) + "}"), why) << mix;
  EXPECT_EQ(why_not(R"({"mix": {"classes": 9}, "ops": [{"op": "random_resized_crop"},
                     {"op": "random_horizontal_flip", "on": "device"}]})"),
            "train.json: ops[1] (random_horizontal_flip) runs on the device, and \"mix\" before it "
            "on a worker; let both run on one of them");
  EXPECT_THROW((void)mix_transform({}), Error);
}

TEST(Mix, OnTheDeviceWithoutConversionIsRefused) {
  try {
    (void)mixed_run(recipe_of(Mix{.classes = mixed_classes, .on = MixOn::device}), std::nullopt);
    FAIL() << "nobody would have mixed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("leaves the mixing of \"image\" to the device"));
  }
}

}  // namespace
}  // namespace millrace
