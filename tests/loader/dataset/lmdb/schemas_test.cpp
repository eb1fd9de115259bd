// SPDX-License-Identifier: Apache-2.0
//
// Other programs' datasets, written by python-lmdb.
#include <gmock/gmock.h>
#include <millrace/dataset.h>

#include <numeric>
#include <string>
#include <vector>

#include "loader/dataset/lmdb/written_lmdb.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace testing;

/// A record as the script has written it.
ExpectedRecord seen(const Dataset& dataset, DatasetReader& reader, std::uint64_t index) {
  const Record record = reader.read(index);
  ExpectedRecord parts = {dataset.key(index)};
  for (const RecordField& field : record.fields()) {
    parts.emplace_back(field.name);
    parts.emplace_back(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
  }
  EXPECT_TRUE(reader.intact().is_ok());
  return parts;
}

struct WrittenSet {
  const char* name;
  const char* format;
  const char* reason;
  std::vector<std::string> classes = {};
  OpenOptions options = {};
};

void expect_as_written(const WrittenLmdb& written, const WrittenSet& set) {
  SCOPED_TRACE(set.name);
  const std::vector<ExpectedRecord> expected =
      expected_records(written / (std::string(set.name) + ".expected"));
  ASSERT_FALSE(expected.empty());
  for (const bool map : {true, false}) {
    OpenOptions options = set.options;
    options.map = map;
    const auto dataset = open_dataset(written / set.name, options);
    const DatasetFacts facts = dataset->facts();
    EXPECT_EQ(facts.format, set.format);
    EXPECT_THAT(facts.format_reason, HasSubstr(set.reason));
    EXPECT_EQ(facts.files.size(), 1U);
    EXPECT_EQ(dataset->classes(), set.classes);
    EXPECT_EQ(facts.warnings, std::vector<std::string>());
    ASSERT_EQ(dataset->size(), expected.size());
    std::vector<std::uint64_t> all(expected.size());
    std::iota(all.begin(), all.end(), 0U);
    dataset->prefetch(all);
    const auto reader = dataset->make_reader();
    for (const std::uint64_t index : all) {
      const std::uint64_t any = index * 37 % all.size();
      ASSERT_EQ(seen(*dataset, *reader, any), expected[any]) << any;
    }
    std::vector<std::string> fields;
    for (std::size_t part = 1; part < expected[0].size(); part += 2)
      fields.push_back(expected[0][part]);
    EXPECT_EQ(facts.fields, fields);
  }
  // The format's name alone opens it, too.
  OpenOptions named = set.options;
  named.format = set.format;
  EXPECT_EQ(open_dataset(written / set.name, named)->size(), expected.size());
}

TEST(LmdbSchemas, ImagesUnderAnyKeysAreAsWritten) {
  const WrittenLmdb written({"images"});
  MILLRACE_NEEDS_WRITTEN(written);
  const char* of_jpeg = "all of 16 records that were looked at hold JPEG images";
  for (const char* name : {"decimal", "padded", "big_endian", "little_endian"})
    expect_as_written(written, {name, "images", of_jpeg});
  expect_as_written(written, {"padded_metadata", "images", "JPEG images"});
  expect_as_written(written, {"lsun", "images", "hold JPEG images or WebP images"});
  expect_as_written(written, {"integer", "databases", of_jpeg});
  expect_as_written(written, {"paths", "images", of_jpeg, {"n01440764", "n01440764-b", "n02"}});
  expect_as_written(written, {"one_folder", "images", of_jpeg, {"cat"}});
}

TEST(LmdbSchemas, DatumsAndTensorsAreAsWritten) {
  const WrittenLmdb written({"datum", "tensors"});
  MILLRACE_NEEDS_WRITTEN(written);
  expect_as_written(written,
                    {"datum", "caffe-datum", "all of 16 records that were looked at hold"});
  expect_as_written(written, {"datum_raw", "caffe-datum", "raw values of 8 bits"});
  expect_as_written(written, {"datum_float", "caffe-datum", "2 x 2 x 3 floats"});
  expect_as_written(written, {"tensors", "caffe2-tensors", "JPEG images"});
  expect_as_written(written, {"tensors_bytes", "caffe2-tensors", "4 x 5 x 3 values"});
  expect_as_written(written, {"tensors_float", "caffe2-tensors", "2 x 3 values"});
}

TEST(LmdbSchemas, TextsAndTuplesAreAsWritten) {
  const WrittenLmdb written({"texts", "tuples"});
  MILLRACE_NEEDS_WRITTEN(written);
  expect_as_written(written, {"ocr", "ocr", "it has the keys num-samples and image-000000001"});
  for (const char* name : {"pickle3", "pickle4", "pickle5", "pickle_text"})
    expect_as_written(written, {name, "tuples", "hold pickled tuples with JPEG images"});
  for (const char* name : {"msgpack", "msgpack_text"})
    expect_as_written(written, {name, "tuples", "hold MessagePack lists with JPEG images"});
  expect_as_written(written, {"dictionaries", "tuples", "MessagePack dictionaries"});

  const Error gap = thrown_by([&] { (void)open_dataset(written / "ocr_gap"); });
  EXPECT_EQ(gap.code(), ErrorCode::corrupt);
  EXPECT_THAT(gap.what(), AllOf(HasSubstr("ocr_gap"), HasSubstr("no key image-000000031")));
}

TEST(LmdbSchemas, DatabasesAreJoinedByKey) {
  const WrittenLmdb written({"databases"});
  MILLRACE_NEEDS_WRITTEN(written);
  const OpenOptions both{.images = "images", .labels = "labels"};
  for (const char* name : {"databases", "databases_binary", "databases_big"})
    expect_as_written(written,
                      {name, "databases", "the database labels has their labels", {}, both});

  const auto error = [&](const char* name, const OpenOptions& options) {
    return thrown_by([&] { (void)open_dataset(written / name, options); });
  };
  const Error gap = error("databases_gap", both);
  EXPECT_EQ(gap.code(), ErrorCode::corrupt);
  EXPECT_THAT(gap.what(), AllOf(HasSubstr("databases_gap"), HasSubstr("no label for the key k17")));
  EXPECT_THAT(
      error("databases_gap", {.format = "images", .images = "labels", .labels = "images"}).what(),
      HasSubstr("a label but no image for the key k17"));
  const Error unnamed = error("databases", {});
  EXPECT_EQ(unnamed.code(), ErrorCode::corrupt);
  EXPECT_THAT(unnamed.what(), AllOf(HasSubstr("(images, labels)"), HasSubstr("--images NAME")));
  EXPECT_THAT(error("databases", {.images = "imges"}).what(),
              HasSubstr("has no database \"imges\"; it has: images, labels"));
  const auto without = open_dataset(written / "databases", {.images = "images"});
  EXPECT_EQ(without->facts().fields, std::vector<std::string>{"image"});
}

TEST(LmdbSchemas, AValueOfNoSchemaIsRefusedWithAllReasons) {
  const WrittenLmdb written({"refused"});
  MILLRACE_NEEDS_WRITTEN(written);
  const std::string reason = thrown_by([&] { (void)open_dataset(written / "words"); }).reason();
  EXPECT_THAT(
      reason,
      HasSubstr("packed file: of its data.mdb: it is an LMDB file, but not a millrace dataset"));
  EXPECT_THAT(reason, HasSubstr("databases: its main database holds no others"));
  EXPECT_THAT(reason, HasSubstr("ocr: it has no key num-samples"));
  EXPECT_THAT(
      reason,
      HasSubstr("images: the value of key \"key 0\" does not begin as a known image format does"));
  EXPECT_THAT(reason, HasSubstr("caffe-datum: the value of key \"key 0\": "));
  EXPECT_THAT(reason, HasSubstr("tuples: the value of key \"key 0\": as MessagePack: "));
  const Error several =
      thrown_by([&] { (void)open_dataset(written / "dupsort", {.images = "several"}); });
  EXPECT_EQ(several.code(), ErrorCode::corrupt);
  EXPECT_THAT(several.what(), HasSubstr("keeps several values for a key (MDB_DUPSORT)"));
}

TEST(LmdbSchemas, AMillraceDatasetInAFolderOpens) {
  const TemporaryFolder folder;
  write_dataset(folder / "data.mdb", 10);
  const auto dataset = open_dataset(folder.path());
  EXPECT_EQ(dataset->facts().format, "packed file");
  expect_record(dataset->make_reader()->read(7), 7);
}

}  // namespace
}  // namespace millrace
