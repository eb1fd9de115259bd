// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/error.h>
#include <millrace/sample_spec.h>

namespace millrace {
namespace {

using ::testing::HasSubstr;

void expect_refused(std::vector<FieldSpec> fields, const std::string& part_of_message) {
  try {
    const SampleSpec spec(std::move(fields));
    ADD_FAILURE() << "accepted; expected a refusal with \"" << part_of_message << '"';
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(part_of_message));
  }
}

TEST(SampleSpec, KeepsItsFieldsInOrder) {
  const SampleSpec spec(
      {{"image", DType::uint8, {224, 224, 3}, false}, {"label", DType::int64, {}, false}});
  ASSERT_EQ(spec.fields().size(), 2U);
  EXPECT_EQ(spec.fields()[0].name, "image");
  EXPECT_EQ(spec.fields()[1].dtype, DType::int64);
  EXPECT_EQ(spec.index_of("image"), 0U);
  EXPECT_EQ(spec.index_of("label"), 1U);
  EXPECT_EQ(spec.bytes_per_sample(), 224U * 224 * 3 + 8);
}

TEST(SampleSpec, AddsALengthForEachVariableFieldAtTheEnd) {
  const SampleSpec spec({{"boxes", DType::float32, {20, 4}, true},
                         {"label", DType::int64, {}, false},
                         {"words", DType::int32, {7}, true}});
  ASSERT_EQ(spec.fields().size(), 5U);
  EXPECT_EQ(spec.fields()[3].name, "boxes.length");
  EXPECT_EQ(spec.fields()[4].name, "words.length");
  for (const std::size_t field : {3U, 4U}) {
    EXPECT_EQ(spec.fields()[field].dtype, DType::uint32);
    EXPECT_EQ(spec.fields()[field].shape, Shape());
    EXPECT_FALSE(spec.fields()[field].variable);
  }
  EXPECT_EQ(spec.length_field_of(0), 3U);
  EXPECT_EQ(spec.length_field_of(2), 4U);
  EXPECT_EQ(spec.index_of("words.length"), 4U);
  EXPECT_EQ(spec.bytes_per_sample(), 20U * 4 * 4 + 8 + 7 * 4 + 4 + 4);
}

TEST(SampleSpec, NamesWhatThereIsWhenAFieldIsUnknown) {
  const SampleSpec spec({{"image", DType::uint8, {4}, false}, {"label", DType::int64, {}, false}});
  try {
    (void)spec.index_of("lable");
    FAIL() << "an unknown field was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("lable"));
    EXPECT_THAT(error.what(), HasSubstr("image"));
    EXPECT_THAT(error.what(), HasSubstr("label"));
  }
}

TEST(SampleSpec, HasNoLengthForAFixedField) {
  const SampleSpec spec(
      {{"image", DType::uint8, {4}, false}, {"boxes", DType::float32, {3, 4}, true}});
  for (const std::size_t field : {spec.index_of("image"), spec.index_of("boxes.length")}) try {
      (void)spec.length_field_of(field);
      ADD_FAILURE() << "a length for fixed field " << field;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
}

TEST(SampleSpec, RefusesWhatCannotBeLaidOut) {
  expect_refused({}, "field");
  expect_refused({{"", DType::uint8, {4}, false}}, "name");
  expect_refused({{"a", DType::uint8, {4}, false}, {"a", DType::int64, {}, false}}, "\"a\"");
  expect_refused({{"image", DType::uint8, {4, 0, 3}, false}}, "image");
  expect_refused({{"count", DType::int64, {}, true}}, "count");
}

TEST(SampleSpec, RefusesANameThatItsOwnLengthFieldTakes) {
  expect_refused(
      {{"boxes", DType::float32, {3, 4}, true}, {"boxes.length", DType::uint32, {}, false}},
      "boxes.length");
}

TEST(SampleSpec, RefusesFlipsThatCannotBe) {
  const FieldSpec image{"image", DType::uint8, {4, 4, 3}};
  const auto flips_of = [](const char* name, const char* of) {
    return FieldSpec{.name = name, .dtype = DType::uint8, .shape = {}, .flipped_image = of};
  };
  EXPECT_EQ(SampleSpec({image, flips_of("flip", "image")}).fields()[1].flipped_image, "image");
  expect_refused({image, flips_of("flip", "picture")}, "picture");
  expect_refused({image, flips_of("flip", "flip")}, "flip");
  expect_refused({image, flips_of("flip", "image"), flips_of("flop", "image")}, "flop");
  expect_refused(
      {image, {.name = "flip", .dtype = DType::int32, .shape = {}, .flipped_image = "image"}},
      "int32");
  expect_refused(
      {image, {.name = "flip", .dtype = DType::uint8, .shape = {2}, .flipped_image = "image"}},
      "[2]");
}

TEST(SampleSpec, RefusesAShapeThatLeavesNoRoomForTheBatch) {
  expect_refused({{"deep", DType::uint8, {1, 1, 1, 1, 1, 1}, false}}, "deep");
}

}  // namespace
}  // namespace millrace
