// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/detail/webdataset_sample.h>

#include <algorithm>
#include <map>

#include "support/packs.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using namespace testing;
using Result = RunningProgram::Result;

/// A sample with an image and a label.
void add_sample(TarFile& tar, const std::string& key, int label) {
  tar.add(key + ".jpg", jpeg(24, 16 + label));
  tar.add(key + ".cls", std::to_string(label));
}

TEST(PackTar, HelpListsEachExtensionOfAnImage) {
  const std::string help = millrace_command({"pack", "--help"}).out;
  const std::size_t begin = help.find("image (.jpg");
  ASSERT_NE(begin, help.npos);
  std::string listed = "image (";
  for (const std::string_view extension : image_extensions)
    listed += (listed.ends_with('(') ? "." : ", .") + std::string(extension);
  EXPECT_THAT(help.substr(begin), StartsWith(listed + ")"));
}

TEST(PackTar, TakesBracesAsOtherCommandsDo) {
  const TemporaryFolder folder;
  for (int number = 0; number < 4; ++number) {
    TarFile tar;
    add_sample(tar, "s", number);
    tar.write(folder / (std::to_string(number) + ".tar"));
  }
  const Result result = pack(folder / "{2..0..2,3}.tar", folder / "none.lmdb");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("2..0..2.tar does not exist"));
  const Result packed = pack(folder / "{3,{2..0..2}}.tar", folder / "out.lmdb");
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(contents(folder / "out.lmdb"),
              ElementsAre("3.tar/s.jpg 3", "2.tar/s.jpg 2", "0.tar/s.jpg 0"));
}

TEST(PackTar, SamplesComeInTheOrderOfTheTar) {
  const TemporaryFolder folder;
  TarFile tar;
  tar.add("./", "", '5');
  tar.add("b/0002.cls", " 5\n");
  tar.add("b/0002.jpg", jpeg(40, 30));
  tar.add("./b/0002.txt", "a caption");
  tar.add("a/0001.JPEG", jpeg(20, 10));
  tar.add("a/0001.json", R"({"caption": "a cat", "label": 7, "cls": 1})");
  tar.add("a.b/caf\xc3\xa9.seg.png", "not the image");
  tar.add("a.b/caf\xc3\xa9.jpg", jpeg(24, 16));
  tar.add("a.b/caf\xc3\xa9.json", R"({"cls": -1})");
  tar.add("c.json", R"({"label": "cat"})");
  tar.add("c.cls", "2");
  tar.add("c.jpg", jpeg(24, 17));
  tar.add("a/._0001.jpg", "a Mac's");
  tar.write(folder / "s.tar");
  const Result result = pack(folder / "s.tar", folder / "out.lmdb");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("packed 4 records (3 classes, "));
  EXPECT_EQ(result.err, "millrace: passed over, with names that begin with a dot: 1\n");
  EXPECT_THAT(contents(folder / "out.lmdb"),
              ElementsAre("s.tar/b/0002.jpg 5", "s.tar/a/0001.JPEG 7",
                          "s.tar/a.b/caf\xc3\xa9.jpg -1", "s.tar/c.jpg 2"));
  const auto dataset = open_dataset(folder / "out.lmdb");
  EXPECT_THAT(dataset->classes(), IsEmpty());
  const auto reader = dataset->make_reader();
  const Record record = reader->read(0);
  EXPECT_EQ(record.integer("width"), 40);
  EXPECT_EQ(record.integer("height"), 30);
  EXPECT_TRUE(std::ranges::equal(record["image"], jpeg(40, 30)));
}

TEST(PackTar, TakesSeveralAndPatterns) {
  const TemporaryFolder folder;
  for (int number = 0; number < 3; ++number) {
    TarFile tar;
    add_sample(tar, "x", number);
    add_sample(tar, "y", number);
    tar.write(folder / ("s" + std::to_string(number) + ".tar"));
  }
  const std::string out = folder / "out.lmdb";
  ASSERT_EQ(millrace_command({"pack", folder / "s2.tar", folder / "s0.tar", out}).exit_code, 0);
  EXPECT_THAT(contents(out),
              ElementsAre("s2.tar/x.jpg 2", "s2.tar/y.jpg 2", "s0.tar/x.jpg 0", "s0.tar/y.jpg 0"));
  ASSERT_EQ(millrace_command({"pack", folder / "s*.tar", out, "--force"}).exit_code, 0);
  EXPECT_THAT(contents(out), ElementsAre("s0.tar/x.jpg 0", "s0.tar/y.jpg 0", "s1.tar/x.jpg 1",
                                         "s1.tar/y.jpg 1", "s2.tar/x.jpg 2", "s2.tar/y.jpg 2"));
  EXPECT_THAT(millrace_command({"pack", folder / "t*.tar", out, "--force"}).err,
              HasSubstr("t*.tar matches no file"));
}

TEST(PackTar, ReadsCompressedOnes) {
  const TemporaryFolder folder;
  TarFile tar;
  for (int number = 0; number < 5; ++number) add_sample(tar, std::to_string(number), number);
  tar.write(folder / "s.tar");
  if (std::system(("gzip -k " + (folder / "s.tar").string()).c_str()) != 0)
    GTEST_SKIP() << "needs gzip";
  ASSERT_EQ(pack(folder / "s.tar", folder / "plain.lmdb").exit_code, 0);
  const Result result = pack(folder / "s.tar.gz", folder / "gz.lmdb");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(contents(folder / "gz.lmdb").at(4), "s.tar.gz/4.jpg 4");
  fs::resize_file(folder / "s.tar.gz", fs::file_size(folder / "s.tar.gz") - 20);
  const Result cut = pack(folder / "s.tar.gz", folder / "cut.lmdb");
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_THAT(
      cut.err,
      HasSubstr("s.tar.gz is neither a folder nor a tar that can be read: truncated gzip input"));
  EXPECT_FALSE(fs::exists(folder / "cut.lmdb"));
}

TEST(PackTar, LeavesOutSamplesThatAreNone) {
  const TemporaryFolder folder;
  const std::map<std::string, std::vector<std::pair<std::string, std::string>>> wrong = {
      {"has no image", {{"x.cls", "1"}}},
      {"has no label", {{"x.jpg", "i"}, {"x.txt", "cat"}}},
      {"the label in its .cls, \"cat\", is not a number from -1 up",
       {{"x.jpg", "i"}, {"x.cls", "cat\n"}}},
      {"the label in its .cls, \"1.5\",", {{"x.jpg", "i"}, {"x.cls", "1.5"}}},
      {"the label in its .cls, \"\",", {{"x.jpg", "i"}, {"x.cls", ""}}},
      {"the label in its .json, \"\"dog\"\",", {{"x.jpg", "i"}, {"x.json", R"({"label": "dog"})"}}},
      {"the label in its .json, \"-2\",", {{"x.jpg", "i"}, {"x.json", R"({"cls": -2})"}}},
      {"neither \"label\" nor \"cls\"", {{"x.jpg", "i"}, {"x.json", R"({"class": 2})"}}},
      {"is not a JSON object", {{"x.jpg", "i"}, {"x.json", "[1"}}},
      {"has two images, x.jpg and x.png", {{"x.jpg", "i"}, {"x.png", "i"}, {"x.cls", "1"}}},
      {"has two images, x.jpg and x.jpg", {{"x.jpg", "i"}, {"x.jpg", "i"}, {"x.cls", "1"}}},
      {"has two .cls", {{"x.jpg", "i"}, {"x.cls", "1"}, {"x.cls", "1"}}},
      {"its .json is 2000000 bytes long",
       {{"x.jpg", "i"}, {"x.json", std::string(2'000'000, ' ')}}},
      {"its members are not adjacent", {{"good0.txt", "of the first"}, {"good0.cls", "3"}}}};
  for (const auto& [reason, members] : wrong) {
    TarFile tar;
    add_sample(tar, "good0", 0);
    add_sample(tar, "good1", 1);
    for (const auto& [name, bytes] : members) tar.add(name, bytes);
    add_sample(tar, "good2", 2);
    tar.write(folder / "s.tar");
    const Result result = pack(folder / "s.tar", folder / "out.lmdb", {"--force"});
    EXPECT_EQ(result.exit_code, 1) << reason;
    const std::string key = members[0].first.substr(0, members[0].first.find('.'));
    EXPECT_THAT(result.err, HasSubstr("left out 1 file:\n  s.tar/" + key + ": "));
    EXPECT_THAT(result.err, HasSubstr(reason));
    EXPECT_THAT(contents(folder / "out.lmdb"),
                ElementsAre("s.tar/good0.jpg 0", "s.tar/good1.jpg 1", "s.tar/good2.jpg 2"));
    EXPECT_EQ(pack(folder / "s.tar", folder / "out.lmdb", {"--force", "--skip-bad"}).exit_code, 0);
  }
}

TEST(PackTar, LeavesOutImagesThatDoNotDecode) {
  const TemporaryFolder folder;
  TarFile tar;
  add_sample(tar, "a", 0);
  tar.add("b.jpg", "no JPEG at all");
  tar.add("b.cls", "1");
  tar.add("c.jpg", "");
  tar.add("c.cls", "1");
  add_sample(tar, "d", 2);
  tar.write(folder / "s.tar");
  const Result result = pack(folder / "s.tar", folder / "out.lmdb");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("left out 2 files:\n  s.tar/b.jpg: "));
  EXPECT_THAT(result.err, HasSubstr("  s.tar/c.jpg: is empty\n"));
  EXPECT_THAT(contents(folder / "out.lmdb"), ElementsAre("s.tar/a.jpg 0", "s.tar/d.jpg 2"));
}

// A hole takes no bytes of the tar. Each of these images would be 70 MB in the dataset.
TEST(PackTar, LeavesOutImagesThatAreFarLongerThanTheTar) {
  const TemporaryFolder folder;
  const Bytes picture = jpeg(24, 16);
  const std::string head(reinterpret_cast<const char*>(picture.data()), picture.size());
  TarFile tar;
  add_sample(tar, "a", 0);
  for (const char* key : {"b", "c", "d"}) {
    tar.add(std::string(key) + ".jpg", head + "end", 'S', 70'000'000, 3);
    tar.add(std::string(key) + ".cls", "1");
  }
  tar.add("e.jpg", head, 'S', 200'000);
  tar.add("e.cls", "1");
  add_sample(tar, "f", 2);
  tar.write(folder / "s.tar");
  const auto out = folder / "out.lmdb";
  const Result result = pack(folder / "s.tar", out, {"--skip-bad"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(contents(out), ElementsAre("s.tar/a.jpg 0", "s.tar/e.jpg 1", "s.tar/f.jpg 2"));
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("left out 3 files:\n  s.tar/b: its image is 70000000 bytes long "
                              "after "),
                    HasSubstr(" bytes of the tar; at most 100 times as many are packed "
                              "(--max-expansion)\n")));
  EXPECT_LT(fs::file_size(out), 10'000'000U);
  EXPECT_LT(result.peak_bytes, 100'000'000U);
  const Result all = pack(folder / "s.tar", out, {"--force", "--max-expansion", "1000000"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_GT(fs::file_size(out), 210'000'000U);
}

TEST(PackTar, RefusesOneThatWasCutShort) {
  const TemporaryFolder folder;
  TarFile tar;
  add_sample(tar, "a", 0);
  const std::size_t boundary = tar.size();
  tar.add("b.cls", "1");
  tar.add("b.jpg", jpeg(100, 100));
  for (const std::size_t bytes :
       {boundary, boundary + 100, boundary + 512 + 3, boundary + 1024 + 700, tar.size()}) {
    tar.write_cut(folder / "s.tar", bytes);
    const Result result = pack(folder / "s.tar", folder / "out.lmdb", {"--skip-bad"});
    EXPECT_EQ(result.exit_code, 1) << bytes;
    EXPECT_THAT(result.err, StartsWith("millrace: " + (folder / "s.tar").string() + " "));
    EXPECT_FALSE(fs::exists(folder / "out.lmdb")) << bytes;
  }
}

TEST(PackTar, ReadsTarsOneAfterTheOtherInOneFile) {
  const TemporaryFolder folder;
  for (const char* key : {"a", "b"}) {
    TarFile tar;
    add_sample(tar, key, key[0] - 'a');
    tar.write(folder / (std::string(key) + ".tar"));
  }
  const std::string join =
      "cd \"$0\" && cat a.tar b.tar > s.tar && gzip a.tar b.tar && "
      "cat a.tar.gz b.tar.gz > s.tgz";
  ASSERT_EQ(run_program({"/bin/sh", "-c", join, folder.path()}).exit_code, 0);
  for (const std::string name : {"s.tar", "s.tgz"}) {
    EXPECT_EQ(pack(folder / name, folder / "out.lmdb", {"--force"}).exit_code, 0);
    EXPECT_THAT(contents(folder / "out.lmdb"), ElementsAre(name + "/a.jpg 0", name + "/b.jpg 1"));
  }
}

TEST(PackTar, ANegativeSizeOfASparseMemberIsRefused) {
  const TemporaryFolder folder;
  for (const std::string member : {"x.cls", "x.jpg"})
    for (const char* key : {"GNU.sparse.realsize", "GNU.sparse.size"}) {
      SCOPED_TRACE(member + " " + key);
      std::string record = " " + std::string(key) + "=-1000\n";
      record = std::to_string(record.size() + 2) + record;
      TarFile tar;
      tar.add("x/PaxHeaders/" + member, record, 'x');
      tar.add(member, "1");
      tar.write(folder / "s.tar");
      const Result result = pack(folder / "s.tar", folder / "out.lmdb");
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_THAT(result.err,
                  HasSubstr("s.tar: the header of member " + member +
                            " is damaged (size -1000, expected 0 or more); copy it again"));
      EXPECT_FALSE(fs::exists(folder / "out.lmdb"));
    }
}

TEST(PackTar, SaysWhatIsWrongWithItsArguments) {
  const TemporaryFolder folder;
  TarFile tar;
  add_sample(tar, "a", 0);
  tar.write(folder / "a.tar");
  tar.write(folder / "b.tar");
  fs::create_directory(folder / "photos");
  write_text(folder / "list.csv", "a,1\n");
  const std::string a = folder / "a.tar", b = folder / "b.tar", out = folder / "out.lmdb";
  EXPECT_THAT(millrace_command({"pack", a, b, "--force"}).err,
              HasSubstr("b.tar is named as a tar; OUT, the dataset's file, comes last"));
  EXPECT_GT(fs::file_size(b), 1000u);
  EXPECT_EQ(millrace_command({"pack", a, folder / "photos", out}).exit_code, 2);
  EXPECT_EQ(millrace_command({"pack", a, folder / "missing.tar", out}).exit_code, 2);
  EXPECT_THAT(pack(a, out, {"--list", folder / "list.csv"}).err, HasSubstr("--list"));
  TarFile().write(folder / "empty.tar");
  EXPECT_THAT(pack(folder / "empty.tar", out).err, HasSubstr("there is no image to pack"));
  EXPECT_FALSE(fs::exists(out));
}

}  // namespace
}  // namespace millrace
