// SPDX-License-Identifier: Apache-2.0
//
// Targets that have the form of a dataset's records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/image_transform.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/stored_records.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::thrown_by;

/// Records with these fields. `on_read` is called with each number that is read.
class RecordsOf final : public Dataset {
 public:
  using Fields = std::map<std::string, std::string>;
  explicit RecordsOf(std::vector<Fields> records) : records_(std::move(records)) {}

  std::function<void(std::uint64_t)> on_read = [](std::uint64_t) {};
  std::vector<FieldSpec> specs{};

  std::vector<FieldSpec> field_specs() const override { return specs; }
  std::uint64_t size() const override { return records_.size(); }
  std::string name() const override { return "records"; }
  std::unique_ptr<DatasetReader> make_reader() const override {
    class Reader final : public DatasetReader {
     public:
      explicit Reader(const RecordsOf& dataset) : dataset_(dataset) {}
      Record read(std::uint64_t index) override {
        dataset_.on_read(index);
        fields_.clear();
        for (const auto& [name, text] : dataset_.records_[index])
          fields_.push_back({name, std::as_bytes(std::span(text))});
        return {index, fields_};
      }

     private:
      const RecordsOf& dataset_;
      std::vector<RecordField> fields_;
    };
    return std::make_unique<Reader>(*this);
  }

 private:
  std::vector<Fields> records_;
};

std::string integer(std::int64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

Recipe recipe_with(const std::vector<RecordsOf::Fields>& records) {
  return recipe_for(Recipe(), RecordsOf(records));
}

/// Returns the recipe for `records` records with the same label.
Recipe recipe_of_label(const std::string& label, std::size_t records = 20) {
  return recipe_with({records, {{"image", "jpeg"}, {"label", label}}});
}

TEST(StoredTarget, ThatIsAnIntegerLeavesTheRecipeAsItIs) {
  const RecordsOf dataset({20, {{"label", integer(3)}}});
  RecordsOf counted = dataset;
  int reads = 0;
  counted.on_read = [&](std::uint64_t) { ++reads; };
  EXPECT_EQ(recipe_for(Recipe(), counted), Recipe());
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(image_transform(Recipe())->fitted_to(dataset), nullptr);
  for (const std::int64_t value : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, INT64_MAX})
    EXPECT_EQ(recipe_of_label(integer(value)), Recipe()) << value;
}

TEST(StoredTarget, ThatNoRecordHasIsLeftOut) {
  const RecordsOf dataset({20, {{"image", "jpeg"}}});
  const auto fitted = image_transform(Recipe())->fitted_to(dataset);
  ASSERT_NE(fitted, nullptr);
  EXPECT_EQ(fitted->spec().fields().size(), 1U);
  EXPECT_EQ(fitted->fitted_to(dataset), nullptr);
}

TEST(StoredTarget, ThatIsATextVariesInLength) {
  const auto field_of = [](const std::string& label) {
    return image_transform(recipe_of_label(label))->spec().fields()[1];
  };
  const FieldSpec small{"label", DType::uint8, {4096}, true, {}, {}, {}};
  EXPECT_EQ(field_of("a word"), small);
  EXPECT_EQ(field_of("elephant"), small);  // as long as an integer
  EXPECT_EQ(field_of(""), small);
  EXPECT_EQ(field_of(std::string(3000, 'x')).shape, (Shape{8192}));
  // Bytes that are not text, all of one length.
  EXPECT_EQ(field_of(std::string("\xff\x00\x01\x02", 4)),
            (FieldSpec{"label", DType::uint8, {4}, false, {}, {}, {}}));
}

TEST(StoredTarget, IsWhatTheDatasetSays) {
  RecordsOf dataset({20, {{"label", integer(3)}}});
  int reads = 0;
  dataset.on_read = [&](std::uint64_t) { ++reads; };
  dataset.specs = {{"label", DType::int64, {}}};
  EXPECT_EQ(recipe_for(Recipe(), dataset), Recipe());
  EXPECT_EQ(reads, 0);
  dataset.specs = {{"label", DType::float32, {2}}};
  const std::vector<Target> expected{
      {"label", ValuesTarget{.dtype = DType::float32, .shape = {2}}}};
  EXPECT_EQ(recipe_for(Recipe(), dataset).targets, expected);
}

TEST(StoredTarget, IsWhatMostRecordsHave) {
  std::vector<RecordsOf::Fields> records(20, {{"label", integer(3)}});
  records[0] = {{"image", "jpeg"}};
  EXPECT_EQ(recipe_with(records), Recipe());
  records[0] = {{"label", ""}};
  EXPECT_EQ(recipe_with(records), Recipe());
}

TEST(StoredTarget, StaysIfRecordsCannotBeRead) {
  RecordsOf dataset({20, {{"image", "jpeg"}}});
  dataset.on_read = [](std::uint64_t) { throw std::logic_error("of the user's own"); };
  EXPECT_EQ(recipe_for(Recipe(), dataset), Recipe());
  dataset.on_read = [](std::uint64_t) { throw Error(ErrorCode::bad_record, "is damaged"); };
  EXPECT_EQ(recipe_for(Recipe(), dataset), Recipe());
  dataset.on_read = [](std::uint64_t index) {
    if (index == 0) throw Error(ErrorCode::bad_record, "is damaged");
  };
  EXPECT_TRUE(recipe_for(Recipe(), dataset).targets.empty());
  EXPECT_EQ(recipe_with({}), Recipe());
}

TEST(StoredTarget, FollowsRecordsAmongOthersToo) {
  Recipe recipe;
  recipe.targets = {{"mask", MaskTarget{}}, {"caption", StoredTarget{}}, {"label", StoredTarget{}}};
  const RecordsOf dataset({9, {{"caption", "two cats"}, {"mask", "png"}}});
  const Recipe fitted = recipe_for(recipe, dataset);
  const std::vector<Target> expected{
      {"mask", MaskTarget{}}, {"caption", ValuesTarget{.dtype = DType::uint8, .max_length = 4096}}};
  EXPECT_EQ(fitted.targets, expected);
}

TEST(StoredTarget, DoesNotTouchATargetThatIsNamed) {
  const Recipe named = Recipe::from_json(R"({"targets": {"label": {"is": "values"}}})");
  EXPECT_EQ(recipe_for(named, RecordsOf({9, {{"image", "jpeg"}}})), named);
  EXPECT_EQ(Recipe::from_json(named.to_json()), named);
}

TEST(StoredTarget, HasTheFingerprintOfAnInteger) {
  const Recipe named = Recipe::from_json(R"({"targets": {"label": {"is": "values"}}})");
  const auto fingerprint = [](const Recipe& recipe) {
    return image_transform(recipe)->fingerprint().value();
  };
  EXPECT_THAT(Recipe().to_json(), ::testing::Not(HasSubstr("targets")));
  EXPECT_EQ(fingerprint(named), fingerprint(Recipe()));
  Recipe both;
  both.targets.push_back({"mask", MaskTarget{}});
  EXPECT_EQ(Recipe::from_json(both.to_json()), both);
  const Recipe both_named = Recipe::from_json(R"({"targets": {"label": {"is": "values"},
                                                            "mask": {"is": "mask"}}})");
  EXPECT_EQ(fingerprint(both), fingerprint(both_named));
  EXPECT_NE(fingerprint(both), fingerprint(Recipe()));
}

TEST(StoredTarget, ThatIsMixedMustBeAnInteger) {
  Recipe recipe;
  recipe.mix = Mix{.classes = 10, .mixup = 1};
  EXPECT_EQ(recipe_for(recipe, RecordsOf({9, {{"label", integer(3)}}})), recipe);
  for (const RecordsOf::Fields& fields :
       {RecordsOf::Fields{{"image", "jpeg"}}, RecordsOf::Fields{{"label", "a cat"}}})
    EXPECT_THAT(thrown_by([&] {
                  (void)recipe_for(recipe, RecordsOf({9, fields}));
                }).what(),
                HasSubstr("records: the records have no integer \"label\", which the recipe's "
                          "\"mix\" needs; leave \"mix\" out"));
}

}  // namespace
}  // namespace millrace
