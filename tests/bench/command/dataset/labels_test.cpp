// SPDX-License-Identifier: Apache-2.0
//
// Datasets without labels, or with texts as labels, in commands and pipelines with no options.
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/host_device.h>
#include <millrace/image_transform.h>
#include <millrace/pipeline.h>

#include <filesystem>
#include <string>
#include <vector>

#include "loader/dataset/lmdb/written_lmdb.h"
#include "support/packs.h"
#include "support/stored_records.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;

TEST(Labels, BenchAndVerifyRunOnAllKindsOfLmdb) {
  const WrittenLmdb written({"images", "datum", "tensors", "texts", "tuples", "databases"});
  MILLRACE_NEEDS_WRITTEN(written);
  int sets = 0;
  for (const auto& entry : fs::directory_iterator(written.path())) {
    if (entry.path().extension() != ".expected") continue;
    const fs::path path = fs::path(entry.path()).replace_extension();
    SCOPED_TRACE(path);
    std::vector<std::string> names;
    if (path.filename().string().starts_with("databases"))
      names = {"--images", "images", "--labels", "labels"};
    // The options make the runs short. None of them names a field.
    std::vector<std::string> bench = {"bench", path, "--batches", "2", "--size", "32"};
    std::vector<std::string> verify = {"verify", path};
    bench.insert(bench.end(), names.begin(), names.end());
    verify.insert(verify.end(), names.begin(), names.end());
    for (const auto& command : {bench, verify}) {
      const auto result = millrace_command(command);
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
    ++sets;
  }
  EXPECT_GE(sets, 19);
}

TEST(Labels, DrawSamplesOfImagesWithoutThem) {
  const WrittenLmdb written({"images", "texts"});
  MILLRACE_NEEDS_WRITTEN(written);
  for (const char* name : {"lsun", "ocr"}) {
    const auto result = millrace_command(
        {"view", written / name, "--record", "2", "--png", written / (std::string(name) + ".png")});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST(Labels, InspectMissesNothingWhereTheyAreTexts) {
  const WrittenLmdb written({"texts"});
  MILLRACE_NEEDS_WRITTEN(written);
  const auto inspected = millrace_command({"inspect", written / "ocr"});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("label "));
  EXPECT_THAT(inspected.out, Not(HasSubstr("missing")));
}

class LabelsInBatches : public ::testing::Test {
 protected:
  Batch batch_of(const std::string& name, const Recipe& recipe) {
    pipeline_ = std::make_unique<Pipeline>(
        open_dataset(written_ / name), image_transform(recipe), std::make_shared<HostDevice>(),
        PipelineOptions{.batch_size = 4, .order = Order::sequential()});
    return pipeline_->next();
  }

  const WrittenLmdb written_{{"images", "texts"}};
  std::unique_ptr<Pipeline> pipeline_;
};

TEST_F(LabelsInBatches, AreLeftOutWhereRecordsHaveNone) {
  MILLRACE_NEEDS_WRITTEN(written_);
  const Batch batch = batch_of("decimal", Recipe::eval(32));
  EXPECT_THROW((void)batch["label"], Error);
  EXPECT_EQ(batch["image"].shape, (Shape{4, 32, 32, 3}));
}

TEST_F(LabelsInBatches, VaryInLengthWhereTheyAreTexts) {
  MILLRACE_NEEDS_WRITTEN(written_);
  const Batch batch = batch_of("ocr", Recipe::eval(32));
  const Tensor label = batch["label"];
  EXPECT_EQ(label.dtype, DType::uint8);
  EXPECT_EQ(label.shape[0], 4U);
  EXPECT_GE(label.shape[1], 3000U);
  EXPECT_THAT(batch["label.length"].as<std::uint32_t>(), ElementsAre(0, 5, 3000, 18));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(label.data) + label.shape[1], 5),
            "w\xC3\xB6rd");
}

TEST_F(LabelsInBatches, ANamedFieldThatIsMissingSaysHowToLeaveItOut) {
  MILLRACE_NEEDS_WRITTEN(written_);
  Recipe recipe = Recipe::eval(32);
  recipe.targets = {{"label", ValuesTarget{}}};
  const Error error = thrown_by([&] { (void)batch_of("decimal", recipe); });
  EXPECT_THAT(error.what(), HasSubstr("has no field \"label\"; its fields are: image"));
  EXPECT_THAT(error.what(), HasSubstr("leave \"label\" out of the recipe's \"targets\""));
}

TEST_F(LabelsInBatches, ARecipeThatWorkedStaysTheSame) {
  MILLRACE_NEEDS_WRITTEN(written_);
  const auto dataset = open_dataset(written_ / "paths");
  EXPECT_EQ(recipe_for(Recipe::train(), *dataset), Recipe::train());
  EXPECT_EQ(image_transform(Recipe::train())->fitted_to(*dataset), nullptr);
}

}  // namespace
}  // namespace millrace
