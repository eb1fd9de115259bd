// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <millrace/pipeline.h>
#include <millrace/raw_transform.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "loader/dataset/array/npy_files.h"
#include "support/fake_dataset.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

class RawTransform : public ::testing::Test {
 protected:
  /// Lists of 2, 0 and 4 numbers, three pairs and three labels.
  std::shared_ptr<const Dataset> lists(const std::string& max_length = "") const {
    write_npy(folder_ / "values.npy", "<i4", std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
    write_npy(folder_ / "offsets.npy", "<i8", std::vector<std::int64_t>{0, 2, 2, 6});
    write_npy(folder_ / "pairs.npy", "<f4", "(3, 2)",
              bytes_of(std::vector<float>{0.5F, 1.5F, 2.5F, 3.5F, 4.5F, 5.5F}));
    write_npy(folder_ / "label.npy", "|u1", std::vector<std::uint8_t>{7, 8, 9});
    write_bytes(folder_ / "all.json", R"({"format": "arrays", "fields": {
        "words": {"npy": "values.npy", "offsets": "offsets.npy")" +
                                          max_length + R"(}, "pair": {"npy": "pairs.npy"},
        "label": {"npy": "label.npy", "as": "int64"}}})");
    return open_dataset(folder_ / "all.json");
  }

  static Batch batch_of(const std::shared_ptr<const Dataset>& dataset,
                        std::shared_ptr<const Transform> transform,
                        BadRecords bad_records = BadRecords::fail) {
    Pipeline pipeline(dataset, std::move(transform), std::make_shared<HostDevice>(),
                      {.batch_size = static_cast<std::size_t>(dataset->size()),
                       .order = Order::sequential(),
                       .epochs = 1,
                       .bad_records = bad_records,
                       .runtime = make_runtime({.workers = 1})});
    return pipeline.next();
  }

  static std::string problem_of(std::vector<RawField> fields) {
    const Error error = thrown_by([&] { (void)raw_transform(std::move(fields)); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }

  TemporaryFolder folder_;
};

TEST_F(RawTransform, TakesFieldsAsTheDatasetSaysThem) {
  const auto dataset = lists(R"(, "max_length": 3)");
  const auto transform = raw_transform(*dataset);
  ASSERT_EQ(transform->spec().fields().size(), 4U);
  EXPECT_EQ(transform->spec().fields()[0], (FieldSpec{"words", DType::int32, {3}, true}));
  const Batch batch = batch_of(dataset, transform);
  EXPECT_THAT(batch["words"].as<std::int32_t>(), ElementsAre(1, 2, 0, 0, 0, 0, 3, 4, 5));
  EXPECT_EQ(batch["words"].shape, (Shape{3, 3}));
  EXPECT_THAT(batch["words.length"].as<std::uint32_t>(), ElementsAre(2, 0, 3));
  EXPECT_THAT(batch["pair"].as<float>(), ElementsAre(0.5F, 1.5F, 2.5F, 3.5F, 4.5F, 5.5F));
  EXPECT_THAT(batch.labels().as<std::int64_t>(), ElementsAre(7, 8, 9));
}

TEST_F(RawTransform, FillsWhatIsBehindTheEnd) {
  const auto dataset = lists();
  const Batch batch = batch_of(
      dataset, raw_transform({{.spec = {"words", DType::int32, {5}, true}, .fill = -100}}));
  EXPECT_THAT(batch["words"].as<std::int32_t>(),
              ElementsAre(1, 2, -100, -100, -100, -100, -100, -100, -100, -100, 3, 4, 5, 6, -100));
  EXPECT_THAT(batch["words.length"].as<std::uint32_t>(), ElementsAre(2, 0, 4));
}

TEST_F(RawTransform, FillsWithAnyNumberThatTheDtypeHolds) {
  const auto dataset = lists();
  const auto first_filled = [&](DType dtype, double fill) {
    // Record 1 has no values, so all of it is filled.
    const Batch batch =
        batch_of(dataset, raw_transform({{.spec = {"words", dtype, {1}, true}, .fill = fill}}));
    const Tensor words = batch["words"];
    std::vector<std::byte> bytes(size_of(dtype));
    std::memcpy(bytes.data(), static_cast<const std::byte*>(words.data) + bytes.size(),
                bytes.size());
    return bytes;
  };
  const auto is = [](const std::vector<std::byte>& bytes, const auto& value) {
    return bytes.size() == sizeof value && std::memcmp(bytes.data(), &value, sizeof value) == 0;
  };
  EXPECT_TRUE(is(first_filled(DType::uint8, 255), std::uint8_t{255}));
  EXPECT_TRUE(is(first_filled(DType::int8, -128), std::int8_t{-128}));
  EXPECT_TRUE(is(first_filled(DType::int16, -2), std::int16_t{-2}));
  EXPECT_TRUE(is(first_filled(DType::uint16, 65535), std::uint16_t{65535}));
  EXPECT_TRUE(is(first_filled(DType::uint32, 4294967295.0), UINT32_MAX));
  EXPECT_TRUE(is(first_filled(DType::float32, 0.1), 0.1F));
  EXPECT_TRUE(is(first_filled(DType::float16, -1.5), std::uint16_t{0xBE00}));
  EXPECT_TRUE(is(first_filled(DType::bfloat16, 1), std::uint16_t{0x3F80}));
  EXPECT_TRUE(is(first_filled(DType::boolean, 1), std::uint8_t{1}));
  for (const auto& [dtype, fill] : std::vector<std::pair<DType, double>>{
           {DType::uint8, 256},
           {DType::uint8, -1},
           {DType::int8, 128},
           {DType::int32, 0.5},
           {DType::int64, 9223372036854775808.0},
           {DType::uint64, 18446744073709551616.0},
           {DType::boolean, 2},
           {DType::int32, std::numeric_limits<double>::quiet_NaN()}})
    EXPECT_THAT(problem_of({{.spec = {"x", dtype, {1}, true}, .fill = fill}}),
                HasSubstr("\"x\" is " + std::string(to_string(dtype)) + ", which cannot hold"));
}

TEST_F(RawTransform, ARecordOfAnotherSizeIsABadOne) {
  const auto dataset = lists();
  const auto reason = [&](const FieldSpec& spec) {
    return thrown_by([&] { (void)batch_of(dataset, raw_transform({{.spec = spec}})); }).reason();
  };
  EXPECT_THAT(reason({"pair", DType::float32, {3}}),
              HasSubstr("its field \"pair\" has 8 bytes; float32 [3] has 12"));
  EXPECT_THAT(reason({"words", DType::int64, {3, 2}, true}),
              HasSubstr("its field \"words\" has 8 bytes; its values have 16 each"));
  EXPECT_THAT(reason({"wrods", DType::int64, {3}}), HasSubstr("it has no field \"wrods\""));
  const Batch batch =
      batch_of(dataset, raw_transform({{.spec = {"words", DType::int32, {2}}}}), BadRecords::mark);
  EXPECT_THAT(batch.valid(), ElementsAre(1, 0, 0));
  EXPECT_THAT(batch["words"].as<std::int32_t>(), ElementsAre(1, 2, 0, 0, 0, 0));
}

TEST_F(RawTransform, SaysWhatIsMissing) {
  EXPECT_THAT(thrown_by([&] { (void)raw_transform(*lists()); }).what(),
              AllOf(HasSubstr("\"words\" varies in length"), HasSubstr("max_length")));
  EXPECT_THAT(thrown_by([] { (void)raw_transform(MemoryDataset(3)); }).what(),
              HasSubstr("memory does not say what dtype and shape its fields have"));
  EXPECT_THAT(problem_of({}), HasSubstr("at least one field"));
  EXPECT_THAT(problem_of({{.spec = {"x", DType::int8, {2}}}, {.spec = {"x", DType::int8, {2}}}}),
              HasSubstr("comes twice"));
  EXPECT_THAT(problem_of({{.spec = {"x", DType::int8, {}, true}}}), HasSubstr("is a scalar"));
  EXPECT_THAT(problem_of({{.spec = {"x", DType::int8, {}, true}, .fill = -1}}),
              HasSubstr("is a scalar"));
}

TEST_F(RawTransform, AnotherOneHasAnotherFingerprint) {
  const auto of = [](DType dtype, double fill) {
    return raw_transform({{.spec = {"x", dtype, {2}, true}, .fill = fill}})->fingerprint();
  };
  EXPECT_EQ(of(DType::int32, 1), of(DType::int32, 1));
  EXPECT_NE(of(DType::int32, 1), of(DType::int32, 2));
  EXPECT_NE(of(DType::int32, 1), of(DType::uint32, 1));
  EXPECT_NE(of(DType::float32, 1e-7), of(DType::float32, 2e-7));
}

}  // namespace
}  // namespace millrace
