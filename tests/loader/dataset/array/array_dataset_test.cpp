// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/concat_dataset.h>
#include <millrace/dataset.h>
#include <unistd.h>

#include <numeric>

#include "loader/dataset/array/npy_files.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing;

std::vector<std::int32_t> counted(std::int32_t count, std::int32_t first = 0) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

template <typename Value>
std::vector<Value> values_of(const Record& record, std::string_view field) {
  const std::span<const std::byte> bytes = record[field];
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class ArrayDataset : public ::testing::TestWithParam<bool> {
 protected:
  std::shared_ptr<const Dataset> open(const std::string& name) const {
    return open_dataset(folder_ / name, {.map = GetParam()});
  }
  /// Writes a description whose members are `fields`.
  std::shared_ptr<const Dataset> described(const std::string& fields,
                                           const std::string& more = "") const {
    write_bytes(folder_ / "all.json",
                R"({"format": "arrays", )" + more + R"("fields": {)" + fields + "}}");
    return open("all.json");
  }
  std::string problem_of(const std::string& fields, const std::string& more = "") const {
    const Error error = thrown_by([&] { (void)described(fields, more); });
    EXPECT_TRUE(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::not_found)
        << error.what();
    EXPECT_THAT(error.what(), HasSubstr("all.json"));
    return error.what();
  }

  TemporaryFolder folder_;
};

TEST_P(ArrayDataset, AFileOfNumpysIsAFieldOfItsName) {
  write_npy(folder_ / "pairs.npy", "<i4", "(5, 2)", bytes_of(counted(10)));
  const auto dataset = open("pairs.npy");
  ASSERT_EQ(dataset->size(), 5U);
  const auto reader = dataset->make_reader();
  EXPECT_THAT(values_of<std::int32_t>(reader->read(3), "pairs"), ElementsAre(6, 7));
  EXPECT_EQ(reader->read(3).checksum(), std::nullopt);
  EXPECT_THAT(dataset->facts().fields, ElementsAre("pairs"));
  EXPECT_THAT(dataset->facts().files, ElementsAre((folder_ / "pairs.npy").string()));
  EXPECT_EQ(dataset->facts().format, "npy file");
  EXPECT_EQ(dataset->key(3), "record 3");
  EXPECT_EQ(thrown_by([&] { reader->read(5); }).code(), ErrorCode::invalid_argument);
  EXPECT_THAT(values_of<std::int32_t>(reader->read(4), "pairs"), ElementsAre(8, 9));
  dataset->prefetch(std::vector<std::uint64_t>{4, 0, 2, 99});
}

TEST_P(ArrayDataset, SeveralLieSideBySideUnderOtherNames) {
  write_npy(folder_ / "a.npy", "<i4", counted(4));
  write_npy(folder_ / "b.npy", "<f8", std::vector<double>{0.5, 1.5, 2.5, 3.5});
  write_npy(folder_ / "c.npy", "|u1", std::vector<std::uint8_t>{9, 8, 7, 255});
  std::filesystem::create_directory(folder_ / "elsewhere");
  write_npy(folder_ / "elsewhere/d.npy", "<i4", counted(4, 100));
  const auto dataset = described(R"("token": {"npy": "a.npy"}, "weight": {"npy": "b.npy"},
      "label": {"npy": "c.npy", "as": "int64"}, "far": {"npy": "elsewhere/d.npy"})",
                                 R"("classes": ["cat", "dog"], )");
  ASSERT_EQ(dataset->size(), 4U);
  EXPECT_THAT(dataset->facts().fields, ElementsAre("token", "weight", "label", "far"));
  EXPECT_THAT(dataset->classes(), ElementsAre("cat", "dog"));
  EXPECT_EQ(dataset->facts().format, "arrays");
  EXPECT_EQ(dataset->facts().files.size(), 4U);
  const auto reader = dataset->make_reader();
  const Record record = reader->read(3);
  EXPECT_THAT(values_of<std::int32_t>(record, "token"), ElementsAre(3));
  EXPECT_THAT(values_of<double>(record, "weight"), ElementsAre(3.5));
  EXPECT_EQ(record.integer("label"), 255);
  EXPECT_THAT(values_of<std::int32_t>(record, "far"), ElementsAre(103));
  const std::vector<FieldSpec> specs = dataset->field_specs();
  ASSERT_EQ(specs.size(), 4U);
  EXPECT_EQ(specs[2], (FieldSpec{"label", DType::int64, {}}));
}

TEST_P(ArrayDataset, ADescriptionIsReadFromWhereItsLinkLeads) {
  write_npy(folder_ / "a.npy", "<i4", counted(4));
  (void)described(R"("a": {"npy": "a.npy"})");
  const TemporaryFolder other;
  std::filesystem::create_symlink(folder_ / "all.json", other / "link.json");
  EXPECT_EQ(open_dataset(other / "link.json", {.map = GetParam()})->size(), 4U);
}

TEST_P(ArrayDataset, FilesOneAfterTheOther) {
  write_npy(folder_ / "a.npy", "<i4", counted(3));
  write_npy(folder_ / "none.npy", "<i4", counted(0));
  write_npy(folder_ / "b.npy", "<i4", counted(2, 50));
  const auto dataset = described(R"("n": {"npy": ["a.npy", "none.npy", "b.npy", "a.npy"]})");
  ASSERT_EQ(dataset->size(), 8U);
  EXPECT_EQ(dataset->facts().files.size(), 3U);
  const auto reader = dataset->make_reader();
  std::vector<std::int32_t> all;
  for (std::uint64_t index = 0; index < 8; ++index)
    all.push_back(values_of<std::int32_t>(reader->read(index), "n").at(0));
  EXPECT_THAT(all, ElementsAre(0, 1, 2, 50, 51, 0, 1, 2));
  write_npy(folder_ / "floats.npy", "<f4", std::vector<float>{1, 2});
  EXPECT_THAT(problem_of(R"("n": {"npy": ["a.npy", "floats.npy"]})"),
              AllOf(HasSubstr("\"fields.n\""), HasSubstr("floats.npy has values float32 []")));
}

TEST_P(ArrayDataset, WindowsOfATokenStream) {
  write_npy(folder_ / "tokens.npy", "<i4", counted(10));
  write_npy(folder_ / "more.npy", "<i4", counted(3, 100));
  const auto windows = [&](const std::string& window, const std::string& files) {
    const auto dataset = described(R"("t": {"npy": )" + files + R"(, "window": )" + window + "}");
    const auto reader = dataset->make_reader();
    std::vector<std::vector<std::int32_t>> all;
    for (std::uint64_t index = 0; index < dataset->size(); ++index)
      all.push_back(values_of<std::int32_t>(reader->read(index), "t"));
    return all;
  };
  using Windows = std::vector<std::vector<std::int32_t>>;
  EXPECT_EQ(windows(R"({"length": 4, "stride": 3})", R"("tokens.npy")"),
            (Windows{{0, 1, 2, 3}, {3, 4, 5, 6}, {6, 7, 8, 9}}));
  EXPECT_EQ(windows(R"({"length": 4})", R"("tokens.npy")"), (Windows{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(windows(R"({"length": 3, "stride": 9})", R"(["tokens.npy", "more.npy"])"),
            (Windows{{0, 1, 2}, {100, 101, 102}}));
  EXPECT_EQ(described(R"("t": {"npy": "tokens.npy", "window": {"length": 4, "stride": 3}})")
                ->field_specs()
                .at(0),
            (FieldSpec{"t", DType::int32, {4}}));
  EXPECT_THAT(problem_of(R"("t": {"npy": "tokens.npy", "window": {"stride": 3}})"),
              HasSubstr("\"fields.t.window.length\" is missing"));
  EXPECT_THAT(problem_of(R"("t": {"npy": "tokens.npy", "window": {"length": 0}})"),
              HasSubstr("\"fields.t.window.length\" is 0"));
  EXPECT_THAT(problem_of(R"("t": {"npy": "tokens.npy", "window": {"length": 1099511627776}})"),
              HasSubstr("more than 1099511627776 bytes"));
  write_npy(folder_ / "pairs.npy", "<i4", "(5, 2)", bytes_of(counted(10)));
  EXPECT_THAT(problem_of(R"("t": {"npy": "pairs.npy", "window": {"length": 2}})"),
              HasSubstr("one dimension"));
}

TEST_P(ArrayDataset, ListsOfVaryingLength) {
  write_npy(folder_ / "values.npy", "<i4", counted(10));
  write_npy(folder_ / "offsets.npy", "<i8", std::vector<std::int64_t>{0, 3, 3, 10});
  write_npy(folder_ / "label.npy", "|i1", std::vector<std::int8_t>{1, -1, 1});
  const auto dataset = described(R"("words": {"npy": "values.npy", "offsets": "offsets.npy",
      "max_length": 7}, "label": {"npy": "label.npy", "as": "int64"})");
  ASSERT_EQ(dataset->size(), 3U);
  const auto reader = dataset->make_reader();
  EXPECT_THAT(values_of<std::int32_t>(reader->read(0), "words"), ElementsAre(0, 1, 2));
  EXPECT_THAT(reader->read(1)["words"], IsEmpty());
  EXPECT_EQ(reader->read(1).integer("label"), -1);
  EXPECT_THAT(values_of<std::int32_t>(reader->read(2), "words"), ElementsAre(3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(dataset->field_specs().at(0), (FieldSpec{"words", DType::int32, {7}, true}));
  dataset->prefetch(std::vector<std::uint64_t>{0, 1, 2});
}

TEST_P(ArrayDataset, OffsetsThatLeadNowhereAreBadRecords) {
  write_npy(folder_ / "values.npy", "<i4", counted(10));
  write_npy(folder_ / "i8.npy", "<i8", std::vector<std::int64_t>{0, 4, 3, 11, INT64_MIN, -1, 10});
  write_npy(folder_ / "u8.npy", "<u8",
            std::vector<std::uint64_t>{0, 4, 3, 11, UINT64_MAX, UINT64_MAX, 10});
  for (const std::string offsets : {"i8.npy", "u8.npy"}) {
    const auto dataset = described(R"("w": {"npy": "values.npy", "offsets": ")" + offsets + "\"}");
    ASSERT_EQ(dataset->size(), 6U);
    const auto reader = dataset->make_reader();
    EXPECT_THAT(values_of<std::int32_t>(reader->read(0), "w"), ElementsAre(0, 1, 2, 3));
    for (std::uint64_t index = 1; index < 6; ++index) {
      const Error error = thrown_by([&] { reader->read(index); });
      EXPECT_EQ(error.code(), ErrorCode::bad_record);
      EXPECT_EQ(error.record(), index);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("record " + std::to_string(index)),
                                      HasSubstr(offsets), HasSubstr("the 10 values of")));
    }
    dataset->prefetch(std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5});
  }
  EXPECT_THAT(thrown_by([&] {
                (void)described(R"("w": {"npy": "values.npy", "offsets": "i8.npy"})")
                    ->make_reader()
                    ->read(1);
              }).reason(),
              HasSubstr("are 4 and 3; they must not go backwards"));
  write_npy(folder_ / "floats.npy", "<f4", std::vector<float>{0, 1});
  EXPECT_THAT(problem_of(R"("w": {"npy": "values.npy", "offsets": "floats.npy"})"),
              HasSubstr("floats.npy has values float32 []"));
  write_npy(folder_ / "none.npy", "<i8", std::vector<std::int64_t>{});
  EXPECT_THAT(problem_of(R"("w": {"npy": "values.npy", "offsets": "none.npy"})"),
              HasSubstr("none.npy is empty"));
}

TEST_P(ArrayDataset, RawRecordsAreCutAsTheDescriptionSays) {
  // A header of 3 bytes, then records of 2 + 4 bytes.
  std::string file = "abc";
  for (int n = 0; n < 5; ++n) {
    const std::int32_t number = 1000 * n;
    file += static_cast<char>(n);
    file += static_cast<char>(-n);
    file.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  write_bytes(folder_ / "raw.bin", file);
  const std::string layout = R"("raw": "raw.bin", "header_bytes": 3, "record_bytes": 6, )";
  const std::string fields = R"("first": {"dtype": "uint8"},
      "second": {"offset": 1, "dtype": "int8", "as": "int64"},
      "both": {"dtype": "int8", "shape": [2]}, "number": {"offset": 2, "dtype": "int32"})";
  const auto dataset = described(fields, layout);
  ASSERT_EQ(dataset->size(), 5U);
  EXPECT_EQ(dataset->facts().files.size(), 1U);
  const auto reader = dataset->make_reader();
  const Record record = reader->read(4);
  EXPECT_THAT(values_of<std::uint8_t>(record, "first"), ElementsAre(4));
  EXPECT_EQ(record.integer("second"), -4);
  EXPECT_THAT(values_of<std::int8_t>(record, "both"), ElementsAre(4, -4));
  EXPECT_THAT(values_of<std::int32_t>(record, "number"), ElementsAre(4000));

  EXPECT_THAT(problem_of(R"("n": {"offset": 3, "dtype": "int32"})", layout),
              HasSubstr("at offset 3 do not fit into records of 6 bytes"));
  EXPECT_THAT(
      problem_of(R"("n": {"dtype": "int32"})", R"("raw": "raw.bin", )"),
      HasSubstr("raw.bin has 33 bytes, which do not hold a header of 0 bytes and whole records"));
  EXPECT_THAT(problem_of(R"("n": {"dtype": "int31"})", layout),
              HasSubstr("\"fields.n.dtype\" is \"int31\", must be one of uint8, int32"));
  EXPECT_THAT(problem_of(R"("n": {"shape": [2]})", layout),
              HasSubstr("\"fields.n.dtype\" is missing"));
  EXPECT_THAT(problem_of(R"("n": {"dtype": "int8", "shape": [2, 0]})", layout),
              HasSubstr("\"fields.n.shape\" is [2,0]"));
  EXPECT_THAT(
      problem_of(R"("n": {"dtype": "int8", "shape": [1099511627776, 1099511627776]})", layout),
      HasSubstr("with at most 1099511627776 bytes"));
}

TEST_P(ArrayDataset, ImagesComeAsPnm) {
  write_npy(folder_ / "chw.npy", "|u1", "(2, 3, 1, 2)", "rRgGbBsStTuU");
  write_npy(folder_ / "hwc.npy", "|u1", "(2, 1, 2, 3)", "rgbRGBstuSTU");
  write_npy(folder_ / "grey.npy", "|u1", "(2, 2, 1)", "aAbB");
  write_npy(folder_ / "one.npy", "|u1", "(2, 1, 2, 1)", "aAbB");
  const auto dataset = described(R"("chw": {"npy": "chw.npy", "image": "chw"},
      "hwc": {"npy": "hwc.npy", "image": "hwc"}, "grey": {"npy": "grey.npy", "image": "grey"},
      "one": {"npy": "one.npy", "image": "chw"})");
  const auto reader = dataset->make_reader();
  EXPECT_EQ(reader->read(0).text("chw"), "P6\n2 1\n255\nrgbRGB");
  EXPECT_EQ(reader->read(1).text("hwc"), "P6\n2 1\n255\nstuSTU");
  EXPECT_EQ(reader->read(0).text("grey"), "P5\n1 2\n255\naA");
  EXPECT_EQ(reader->read(1).text("one"), "P5\n1 2\n255\nbB");
  EXPECT_EQ(dataset->field_specs().at(0), (FieldSpec{"chw", DType::uint8, {17}}));
  for (const std::string wrong :
       {R"("npy": "grey.npy", "image": "hwc")", R"("npy": "chw.npy", "image": "hwc")"})
    EXPECT_THAT(problem_of("\"i\": {" + wrong + "}"), HasSubstr("an image is uint8 [3, height"));
  EXPECT_THAT(problem_of(R"("i": {"npy": "grey.npy", "image": "gray"})"),
              HasSubstr("\"fields.i.image\" is \"gray\", must be \"chw\", \"hwc\" or \"grey\""));
  EXPECT_THAT(problem_of(R"("i": {"npy": "grey.npy", "image": "grey", "as": "int64"})"),
              HasSubstr("exclude each other"));
}

TEST_P(ArrayDataset, ShapesThatDoNotFitAreRefused) {
  const auto problem = [&](const std::string& shape, std::size_t bytes) {
    write_npy(folder_ / "a.npy", "<i4", shape, std::string(bytes, 'x'));
    return std::string(thrown_by([&] { (void)open("a.npy"); }).what());
  };
  EXPECT_THAT(problem("(5, 2)", 39), HasSubstr("is cut short: shape (5, 2) of int32 needs more "
                                               "than the 39 bytes that are there"));
  EXPECT_THAT(problem("(18446744073709551615,)", 40), HasSubstr("is cut short"));
  EXPECT_THAT(problem("(4611686018427387904, 1)", 40), HasSubstr("is cut short"));
  EXPECT_THAT(problem("(2, 4294967296, 4294967296)", 40), HasSubstr("more than 1099511627776"));
  EXPECT_THAT(problem("(4294967296, 4294967296, 1)", 40), HasSubstr("is cut short"));
  EXPECT_THAT(problem("(9223372036854775807, 0)", 40), HasSubstr("records are empty"));
  EXPECT_THAT(problem("()", 4), HasSubstr("without a first axis"));
  EXPECT_THAT(problem("(1, 1, 1, 1, 1, 1, 1)", 4), HasSubstr("at most 6 extents"));
}

TEST_P(ArrayDataset, AFileThatIsCutShortIsRefused) {
  write_npy(folder_ / "whole.npy", "<i4", "(5, 2)", bytes_of(counted(10)));
  const std::string whole = file_contents(folder_ / "whole.npy");
  for (std::size_t length = 1; length < whole.size(); ++length) {
    write_bytes(folder_ / "cut.npy", whole.substr(0, length));
    EXPECT_EQ(thrown_by([&] { (void)open("cut.npy"); }).code(), ErrorCode::corrupt) << length;
  }
  write_bytes(folder_ / "longer.npy", whole + "and more");
  EXPECT_EQ(open("longer.npy")->size(), 5U) << "as numpy reads it";
}

TEST_P(ArrayDataset, AFileThatIsMadeShorterIsABadRecord) {
  constexpr std::size_t row = 4096;
  write_npy(folder_ / "rows.npy", "|u1", "(6, 4096)", std::string(6 * row, 'x'));
  write_npy(folder_ / "label.npy", "<i8", std::vector<std::int64_t>(6, 1));
  const auto dataset = described(R"("rows": {"npy": "rows.npy"}, "label": {"npy": "label.npy"})");
  const auto reader = dataset->make_reader();
  ASSERT_EQ(truncate((folder_ / "rows.npy").c_str(), 2 * row), 0);
  const auto outcome = [&](std::uint64_t index) {
    try {
      const Record record = reader->read(index);
      for (const std::byte byte : record["rows"])
        (void)*const_cast<const volatile std::byte*>(&byte);
      return reader->intact().reason();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_record);
      return error.reason();
    }
  };
  EXPECT_EQ(outcome(0), "");
  // Record 1 ends 128 bytes behind the file's end, in its last page.
  for (const std::uint64_t index : {1U, 2U, 5U})
    EXPECT_THAT(outcome(index), HasSubstr((folder_ / "rows.npy").string() + " cannot be read at"));
  EXPECT_EQ(outcome(0), "");
}

TEST_P(ArrayDataset, WrongDescriptionsNameFileKeyAndValue) {
  write_npy(folder_ / "a.npy", "<i4", counted(4));
  write_npy(folder_ / "b.npy", "<f4", std::vector<float>{1, 2, 3});
  for (const auto& [fields, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "\"fields\" is missing or empty"},
           {R"("a": 3)", "\"fields.a\" is 3, must be an object"},
           {R"("": {"npy": "a.npy"})", "a name that is empty or longer than 200 bytes"},
           {R"("a": {})", R"(neither "fields.a.npy" nor "fields.a.raw" is there)"},
           {R"("a": {"npy": 3})", "\"fields.a.npy\" is 3, must be a name"},
           {R"("a": {"npy": []})", "\"fields.a.npy\" is []"},
           {R"("a": {"npy": "a.npy", "raw": "b"})", "exclude each other"},
           {R"("a": {"npy": "a.npy", "dtype": "int8"})", "unknown key \"fields.a.dtype\""},
           {R"("a": {"npy": "a.npy", "nyp": 1})",
            "unknown key \"fields.a.nyp\"; the known keys are \"npy\""},
           {R"("a": {"npy": "none.npy"})", "none.npy does not exist"},
           {R"("a": {"npy": ""})", "is not a file name"},
           {R"("a": {"npy": "a\u0000.npy"})", "is not a file name"},
           {R"("a": {"npy": "."})", "is no file"},
           {R"("a": {"npy": "all.json"})", "all.json is not a .npy file"},
           {R"("a": {"npy": "a.npy", "max_length": 3})", "needs \"fields.a.offsets\""},
           {R"("a": {"npy": "a.npy", "as": "int32"})", "\"fields.a.as\" is \"int32\""},
           {R"("b": {"npy": "b.npy", "as": "int64"})", "only integers"},
           {R"("a": {"npy": "a.npy", "window": 3})", "\"fields.a.window\" is 3"},
           {R"("a": {"npy": "a.npy"}, "b": {"npy": "b.npy"})",
            "\"a\" has 4 records and \"b\" has 3"}})
    EXPECT_THAT(problem_of(fields), HasSubstr(words)) << fields;
  const std::string field = R"("a": {"npy": "a.npy"})";
  EXPECT_THAT(problem_of(field, R"("more": 1, )"), HasSubstr("unknown key \"more\""));
  EXPECT_THAT(problem_of(field, R"("classes": [1], )"), HasSubstr("\"classes\" is [1]"));
  EXPECT_THAT(problem_of(field, R"("record_bytes": 4, )"), HasSubstr("\"raw\" is missing"));
}

TEST_P(ArrayDataset, DescriptionsAreToldFromListsOfShards) {
  const auto problem = [&](const std::string& text) {
    write_bytes(folder_ / "all.json", text);
    return std::string(thrown_by([&] { (void)open("all.json"); }).what());
  };
  EXPECT_THAT(problem(R"({"fields": {"a": {"npy": "a.npy"}}})"),
              HasSubstr("\"format\" is missing, must be \"arrays\""));
  EXPECT_THAT(problem(R"({"format": "arrows", "fields": {}})"),
              HasSubstr("\"format\" is \"arrows\", must be \"arrays\""));
  EXPECT_THAT(problem(R"({"format": "arrays"})"), HasSubstr("\"fields\" is missing"));
  EXPECT_THAT(problem("{\"format\": \"arrays\",\n \"fields\": {\"a\" {}}}"),
              HasSubstr("a description of arrays, is not valid JSON: it goes wrong in line 2"));
  EXPECT_THAT(problem(R"({"format": 1})"), HasSubstr("undamaged list of shards"));
  EXPECT_THAT(problem(R"({"millrace_shards": 1, "fields": {}})"), HasSubstr("list of shards"));
  EXPECT_THAT(problem("{" + std::string(5000, ' ')), HasSubstr("list of shards"));
  EXPECT_THAT(problem("  [1]"), AllOf(HasSubstr("arrays, list of shards: it does not begin with"),
                                      HasSubstr("npy file: it has no .npy header")));
  std::string deep = R"({"format": "arrays", "fields": )";
  for (int n = 0; n < 100; ++n) deep += R"({"a": )";
  EXPECT_THAT(problem(deep), HasSubstr("nested in more than 64 levels"));
}

TEST_P(ArrayDataset, ANamedFormatIsOpenedWithoutAProbe) {
  write_npy(folder_ / "a.npy", "<i4", counted(4));
  EXPECT_EQ(open_dataset(folder_ / "a.npy", {.map = GetParam(), .format = "npy file"})->size(), 4U);
  EXPECT_THAT(thrown_by([&] {
                (void)open_dataset(folder_ / "a.npy", {.map = GetParam(), .format = "arrays"});
              }).what(),
              HasSubstr("is not valid JSON"));
}

TEST_P(ArrayDataset, JoinedOnesSayWhatAllSay) {
  write_npy(folder_ / "x.npy", "<i4", counted(4));
  write_npy(folder_ / "y.npy", "<f4", std::vector<float>{1, 2, 3});
  const auto first = described(R"("x": {"npy": "x.npy"}, "z": {"npy": "x.npy"})");
  const auto other = described(R"("z": {"npy": "y.npy"}, "x": {"npy": "y.npy"})");
  const auto same = described(R"("z": {"npy": "y.npy"})");
  EXPECT_EQ(concat_datasets({first, first})->field_specs(), first->field_specs());
  EXPECT_THAT(concat_datasets({first, other})->field_specs(), IsEmpty());
  EXPECT_THAT(concat_datasets({other, same})->field_specs(),
              ElementsAre(FieldSpec{"z", DType::float32, {}}));
}

INSTANTIATE_TEST_SUITE_P(Maps, ArrayDataset, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Mapped" : "CallByCall"; });

}  // namespace
}  // namespace millrace
