// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/detail/webdataset_sample.h>

#include <fstream>
#include <string>
#include <vector>

#include "support/run_program.h"
#include "support/shared_data.h"
#include "support/stored_records.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

std::string field_text(const Record& record, std::string_view name) {
  return std::string(record.text(name));
}

/// The key of a sample of write_tars.py, in tar formats that allow such long names.
std::string long_key() {
  std::string key;
  for (int folder = 0; folder < 60; ++folder) key += "deep/";
  return key + "gr\xC3\xBCn";
}

/// "key:label:image" of each record.
std::vector<std::string> records_of(const Dataset& dataset) {
  const auto reader = dataset.make_reader();
  std::vector<std::string> all;
  for (std::uint64_t index = 0; index < dataset.size(); ++index) try {
      const Record record = reader->read(index);
      all.push_back(dataset.key(index) + ":" + std::to_string(record.integer("label")) + ":" +
                    field_text(record, "image"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_record);
      EXPECT_EQ(error.record(), index);
      all.push_back(error.reason());
    }
  return all;
}

void add_sample(TarFile& tar, const std::string& key, const std::string& image, int label) {
  tar.add(key + ".jpg", image);
  tar.add(key + ".cls", std::to_string(label));
}

TEST(TarDataset, HasTheSamplesOfTarsThatPythonWrote) {
  const TemporaryFolder folder;
  const fs::path photographs = shared_dir() / "data" / "photos";
  if (!fs::exists("/usr/bin/python3")) GTEST_SKIP() << "there is no /usr/bin/python3";
  const auto written =
      run_program({"/usr/bin/python3", MILLRACE_WRITE_TARS, folder.path().string(),
                   (fs::exists(photographs) ? photographs : folder.path()).string()});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  for (const std::string form : {"ustar", "gnu", "pax"})
    for (const bool map : {true, false}) {
      SCOPED_TRACE(form + (map ? " mapped" : " call by call"));
      const auto dataset = open_dataset(folder / (form + ".tar"), {.map = map});
      ASSERT_EQ(dataset->size(), 60U);
      EXPECT_EQ(dataset->facts().format, "tars");
      EXPECT_TRUE(dataset->classes().empty());
      const auto reader = dataset->make_reader();
      std::ifstream expected(folder / "expected.tsv");
      std::string key, label;
      std::uint64_t index = 0;
      for (; std::getline(expected, key, '\t') && std::getline(expected, label); ++index) {
        SCOPED_TRACE(key);
        const Record record = reader->read(index);
        const std::string number = std::to_string(index);
        const bool is_renamed = form != "ustar" && index == 7;
        EXPECT_EQ(dataset->key(index), is_renamed ? long_key() : key);
        EXPECT_EQ(std::to_string(record.integer("label")), label);
        EXPECT_EQ(field_text(record, "image"), file_contents(folder / (number + ".image")));
        EXPECT_EQ(field_text(record, "text"), file_contents(folder / (number + ".text")));
        EXPECT_EQ(record.has("seg.png"), index % 4 == 0);
        if (index % 4 == 0) {
          EXPECT_EQ(field_text(record, "seg.png"), file_contents(folder / (number + ".seg.png")));
        }
        EXPECT_EQ(record.has("json"), index % 3 != 1);
        EXPECT_TRUE(reader->intact().is_ok());
      }
      EXPECT_EQ(index, 60U);
    }
}

TEST(TarDataset, APatternAndAListAreOneDataset) {
  const TemporaryFolder folder;
  for (int tar = 0; tar < 12; ++tar) {
    TarFile file;
    for (int sample = 0; sample < 2; ++sample)
      add_sample(file, std::to_string(tar) + "-" + std::to_string(sample), "image", tar);
    file.write(folder /
               ("part-" + std::string(tar < 10 ? "0" : "") + std::to_string(tar) + ".tar"));
  }
  write_file(folder / "list.txt",
             "part-03.tar\r\n\n" + (folder / "part-0[12].tar").string() + "\n");
  const auto first_key = [&](const char* name) {
    const auto dataset = open_dataset(folder / name);
    EXPECT_EQ(dataset->name(), (folder / name).string());
    EXPECT_EQ(dataset->facts().fields, (std::vector<std::string>{"image", "label"}));
    return std::to_string(dataset->size()) + " from " + dataset->key(0) + " to " +
           dataset->key(dataset->size() - 1);
  };
  EXPECT_EQ(first_key("part-*.tar"), "24 from 0-0 to 11-1");
  EXPECT_EQ(first_key("part-{03..11}.tar"), "18 from 3-0 to 11-1");
  EXPECT_EQ(first_key("part-{0..1}{0..1}.tar"), "8 from 0-0 to 11-1");
  EXPECT_EQ(first_key("part-{08..10}.tar"), "6 from 8-0 to 10-1");
  EXPECT_EQ(first_key("part-{02..00}.tar"), "6 from 2-0 to 0-1");
  EXPECT_EQ(first_key("part-{00..4..2}.tar"), "6 from 0-0 to 4-1");
  EXPECT_EQ(first_key("part-{4..00..-2}.tar"), "6 from 4-0 to 0-1");
  EXPECT_EQ(first_key("part-{11..10}.tar"), "4 from 11-0 to 10-1");
  EXPECT_EQ(first_key("part-{05,03,1{1,0}}.tar"), "8 from 5-0 to 10-1");
  EXPECT_EQ(first_key("part-{0[12],11}.tar"), "6 from 1-0 to 11-1");
  EXPECT_EQ(first_key("list.txt"), "6 from 3-0 to 2-1");
  const auto all = open_dataset(folder / "part-*.tar");
  EXPECT_EQ(all->facts().files.size(), 12U);
  EXPECT_EQ(all->make_reader()->read(23).integer("label"), 11);
  EXPECT_NE(all->facts().fingerprint, open_dataset(folder / "part-0*.tar")->facts().fingerprint);
}

TEST(TarDataset, BracesStandForTheNamesThatBashMakes) {
  const std::vector<std::string> patterns{
      "{a..e}",    "{e..a}",    "{a..e..2}",    "{e..a..-2}",     "{A..D}",         "{a..a}",
      "{a..c..0}", "{y..z..9}", "x{a..c}{1,2}", "{b..d,9}",       "{{a..c},{x,y}}", "{a..1}",
      "{1..a}",    "{aa..c}",   "{a..bb}",      "{a..e..x}",      "{a..}",          "{..a}",
      "{a..e..}",  "{a.e}",     "{a..e..2..1}", "{01..3}-{a..b}", "{z..x}{Q..P}",   "{}"};
  std::string command = "printf '%s\\n'";
  std::string expanded;
  for (const std::string& pattern : patterns) {
    command += " " + pattern;
    for (const std::string& name : expand_braces(pattern)) expanded += name + "\n";
  }
  EXPECT_EQ(expanded, run_program({"/bin/bash", "-c", command}).out);
  EXPECT_TRUE(has_braces("{a..e}.tar"));
  EXPECT_FALSE(has_braces("{a..E}.tar")) << "letters of both cases";
}

TEST(TarDataset, ARangeMustBeThereAndBeBounded) {
  const TemporaryFolder folder;
  const auto code = [&](const char* name) {
    return thrown_by([&] { (void)open_dataset(folder / name); }).code();
  };
  EXPECT_EQ(code("part-{00..02}.tar"), ErrorCode::not_found);
  EXPECT_EQ(code("part-*.tar"), ErrorCode::not_found);
  EXPECT_EQ(code("part-{00..999999999999}.tar"), ErrorCode::invalid_argument);
  EXPECT_EQ(code("{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}.tar"), ErrorCode::invalid_argument);
  EXPECT_EQ(code("part-{02..00}.tar"), ErrorCode::not_found);
  EXPECT_EQ(code("part-{99999999..0}.tar"), ErrorCode::invalid_argument);
  // Braces that stand for one name are part of it, as in a shell.
  EXPECT_EQ(code("part-{0}.tar"), ErrorCode::not_found);
}

/// Returns a name of `count` ranges below `folders` folders. It stands for 3^count tars.
std::string many_ranges(int count, int folders) {
  std::string name;
  for (int n = 0; n < folders; ++n) name += "x/";
  for (int n = 0; n < count; ++n) name += "{2..4}";
  return name + ".tar";
}

TEST(TarDataset, NamesThatFillMemoryAreRefused) {
  const TemporaryFolder folder;
  const Error error = thrown_by([&] { (void)open_dataset(folder / many_ranges(10, 700)); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr(".tar stands for more than 32 MiB of names"));
  EXPECT_EQ(thrown_by([&] { (void)open_dataset(folder / many_ranges(9, 500)); }).code(),
            ErrorCode::not_found);
}

TEST(TarDataset, AListThatIsNoneIsCorrupt) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& text) {
    write_file(folder / "list", text);
    return thrown_by([&] { (void)open_dataset(folder / "list"); });
  };
  const Error range = error("a.tar\npart-{00..999999999999}.tar\n");
  EXPECT_EQ(range.code(), ErrorCode::corrupt);
  EXPECT_THAT(range.what(), HasSubstr("list: "));
  EXPECT_EQ(error("a.tar\n" + std::string(5000, 'x')).code(), ErrorCode::corrupt);
  // Each line alone stands for few enough names, so the error names the list.
  const std::string line = many_ranges(9, 500) + "\n";
  const std::string of_list = (folder / "list").string() + " stands for more than ";
  const Error long_names = error("a.tar\n" + line + line);
  EXPECT_EQ(long_names.code(), ErrorCode::corrupt);
  EXPECT_EQ(long_names.what(), of_list + "32 MiB of names");
  const Error many = error("a.tar\npart-{00001..50000}.tar\npart-{00001..50000}.tar\n");
  EXPECT_EQ(many.code(), ErrorCode::corrupt);
  EXPECT_EQ(many.what(), of_list + "99999 tars");
  EXPECT_EQ(error(std::string(300, 'x') + ".tar\n").code(), ErrorCode::not_found);
  EXPECT_EQ(error(std::string(300, 'x') + "./?x.tar\n").code(), ErrorCode::not_found);
  EXPECT_EQ(error(std::string(300, 'x') + "/?x.tar\n").code(), ErrorCode::not_found);
}

TEST(TarDataset, SamplesAreConsecutiveMembersOfOneKey) {
  const TemporaryFolder folder;
  TarFile tar;
  add_sample(tar, "a", "first", 1);
  tar.add("folder/", "", '5');
  tar.add("without", "extension");
  tar.add("a.extra", "is of the first still");
  add_sample(tar, "b.c/d", "second", 2);
  add_sample(tar, "a", "third", -1);
  tar.add("__meta__.json", "{}");
  tar.write(folder / "a.tar");
  const auto dataset = open_dataset(folder / "a.tar");
  EXPECT_THAT(records_of(*dataset), ElementsAre("a:1:first", "b.c/d:2:second", "a:-1:third"));
  EXPECT_EQ(dataset->make_reader()->read(0).text("extra"), "is of the first still");
}

TEST(TarDataset, ARecordThatLacksWhatOthersHaveIsBad) {
  const TemporaryFolder folder;
  TarFile tar;
  add_sample(tar, "a", "image", 1);
  tar.add("b.jpg", "image");
  tar.add("c.cls", "2");
  add_sample(tar, "d", "image", -2);
  add_sample(tar, "e", "image", 1);
  tar.add("e.png", "another");
  tar.add("f.jpg", "image");
  tar.add("f.json", "[1]");
  tar.add("g.jpg", "image");
  tar.add("g.json", R"({"of": 1})");
  tar.add("h.jpg", "image");
  tar.add("h.cls", "1");
  tar.add("h.CLS", "1");
  tar.write(folder / "a.tar");
  EXPECT_THAT(
      records_of(*open_dataset(folder / "a.tar")),
      ElementsAre("a:1:image", "has no label (.cls or .json)",
                  "has no image, unlike those before it",
                  "the label in its .cls, \"-2\", is not a number from -1 up",
                  "has two images, .jpg and .png", "its .json is not a JSON object",
                  "its .json has neither \"label\" nor \"cls\"", "has two files for \"cls\""));
}

TEST(TarDataset, WithoutLabelsItHasNone) {
  const TemporaryFolder folder;
  TarFile tar;
  tar.add("a.jpg", "image");
  tar.add("a.json", R"({"caption": "a"})");
  tar.write(folder / "a.tar");
  const auto dataset = open_dataset(folder / "a.tar");
  EXPECT_EQ(dataset->facts().fields, (std::vector<std::string>{"image", "json"}));
  EXPECT_FALSE(dataset->make_reader()->read(0).has("label"));
}

TEST(TarDataset, ATarBehindATarIsRead) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) {
    TarFile tar;
    add_sample(tar, name, name, 3);
    tar.write(folder / name);
  }
  write_file(folder / "both.tar", file_contents(folder / "a") + file_contents(folder / "b"));
  EXPECT_THAT(records_of(*open_dataset(folder / "both.tar")), ElementsAre("a:3:a", "b:3:b"));
}

TEST(TarDataset, RefusesWhatCannotBeReadInPlace) {
  const TemporaryFolder folder;
  TarFile tar;
  add_sample(tar, "a", std::string(2000, 'a'), 1);
  tar.write(folder / "a.tar");
  const std::string sound = file_contents(folder / "a.tar");
  const auto reason_of = [&](const std::string& contents) {
    write_file(folder / "b.tar", contents);
    const Error error =
        thrown_by([&] { (void)open_dataset(folder / "b.tar", {.format = "tars"}); });
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    EXPECT_THAT(error.what(), HasSubstr((folder / "b.tar").string()));
    return std::string(error.what());
  };
  EXPECT_THAT(reason_of(""), HasSubstr("is empty"));
  EXPECT_THAT(reason_of("\x1f\x8b" + std::string(600, 'x')),
              HasSubstr("compressed with gzip, and cannot be read in place; unpack it, or have it "
                        "packed by `millrace pack`"));
  EXPECT_THAT(reason_of(std::string(600, 'x')), HasSubstr("it has no tar header"));
  EXPECT_THAT(reason_of(std::string(2048, '\0')), HasSubstr("has no samples"));
  EXPECT_THAT(reason_of(sound.substr(0, 3584)), HasSubstr("without a tar's end mark"));
  EXPECT_THAT(reason_of(sound.substr(0, 2600)), HasSubstr("it ends within a header"));
  EXPECT_THAT(reason_of(sound.substr(0, 1000)), HasSubstr("it was cut short"));
  std::string flipped = sound;
  flipped[2560 + 3] ^= 1;
  EXPECT_THAT(reason_of(flipped), HasSubstr("the header at byte 2560 is missing or damaged"));
  TarFile sparse;
  sparse.add("a.jpg", "tail", 'S', 1 << 20, 4);
  sparse.write(folder / "sparse.tar");
  EXPECT_THAT(reason_of(file_contents(folder / "sparse.tar")),
              HasSubstr("is sparse, which cannot be read in place; `millrace pack` reads it"));
}

}  // namespace
}  // namespace millrace
