// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/error.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "support/jpeg_samples.h"
#include "support/packs.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using namespace testing;

using Result = RunningProgram::Result;

TEST(Pack, FoldersBecomeClassesInTheOrderOfTheirNames) {
  const TemporaryFolder folder;
  write_jpeg(folder / "photos" / "dog" / "b.jpg", 30, 20);
  write_jpeg(folder / "photos" / "dog" / "a" / "z.jpeg");
  write_jpeg(folder / "photos" / "dog" / "a.jpg");
  write_jpeg(folder / "photos" / "cat" / "name, with comma.JPG");
  write_jpeg(folder / "photos" / "Zebra" / "caf\xc3\xa9.jpg");
  write_jpeg(folder / "photos" / ".hidden" / "x.jpg");
  write_text(folder / "photos" / "cat" / ".DS_Store", "x");
  fs::create_directory(folder / "photos" / "emu");
  const Result result = pack(folder / "photos", folder / "out.lmdb");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("packed 5 records (4 classes, 1 of them empty, 0.0 MB) in "));
  EXPECT_THAT(result.out, HasSubstr((folder / "out.lmdb").string()));
  EXPECT_THAT(result.err,
              HasSubstr("ignored 1 hidden folder\nmillrace: passed over, with names that begin "
                        "with a dot: 1\n"));
  EXPECT_THAT(contents(folder / "out.lmdb"),
              ElementsAre("Zebra/caf\xc3\xa9.jpg 0", "cat/name, with comma.JPG 1", "dog/a.jpg 2",
                          "dog/b.jpg 2", "dog/a/z.jpeg 2"));

  const auto dataset = open_dataset(folder / "out.lmdb");
  EXPECT_THAT(dataset->classes(), ElementsAre("Zebra", "cat", "dog", "emu"));
  EXPECT_EQ(dataset->key(3), "dog/b.jpg");
  const auto reader = dataset->make_reader();
  const Record record = reader->read(3);
  std::vector<std::string_view> names;
  for (const RecordField& field : record.fields()) names.push_back(field.name);
  EXPECT_THAT(names, ElementsAre("image", "label", "path", "width", "height"));
  EXPECT_EQ(record.integer("width"), 30);
  EXPECT_EQ(record.integer("height"), 20);
  EXPECT_TRUE(std::ranges::equal(record["image"], jpeg(30, 20)));
}

TEST(Pack, CountsImagesThatOtherDecodersTake) {
  const TemporaryFolder folder;
  write_jpeg(folder / "photos" / "baseline.jpg");
  const Encoding progressive{.scans = Encoding::Scans::progressive};
  write_bytes(folder / "photos" / "progressive.jpg", encode(noise(40, 30, 1), progressive));
  for (const char* name : {"a.jpg", "b.jpg"})
    write_bytes(folder / "photos" / name, encode(noise(40, 30, 1), {.arithmetic = true}));
  const Result result = pack(folder / "photos", folder / "out.lmdb");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("decoded by libjpeg-turbo (arithmetic coding): 2 images\n"));
}

TEST(Pack, AndVerifyCountImagesWithStrayBytes) {
  const TemporaryFolder folder;
  write_jpeg(folder / "photos" / "sound.jpg");
  for (const unsigned count : {1U, 3U, 500U}) {
    Bytes image = encode(noise(40, 30, count), {});
    image.insert(image.end() - 2, count, count == 3 ? std::byte{0x5A} : std::byte{0});
    write_bytes(folder / "photos" / (std::to_string(count) + ".jpg"), image);
  }
  const Result result = pack(folder / "photos", folder / "out.lmdb");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("repaired (stray bytes skipped): 3 images\n"));
  const Result verified = millrace_command({"verify", (folder / "out.lmdb").string()});
  EXPECT_EQ(verified.exit_code, 0) << verified.out;
  EXPECT_THAT(verified.out, HasSubstr("4 images decoded (3 repaired)"));
}

TEST(Pack, HasTheLabelsAndTheOrderOfTheFolderInPlace) {
  const TemporaryFolder folder;
  for (const char* file : {"b/z.jpg", "b/c/1.jpg", "b/c-d/1.jpg", "b/.2.jpg", "a/1.jpg",
                           ".git/1.jpg", "b/.cache/1.jpg", "lost+found/1.jpg", "a/._1.jpg"})
    write_jpeg(folder / "photos" / file);
  const Result result = pack(folder / "photos", folder / "out.lmdb");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("ignored 3 hidden folders\n"));
  const auto in_place = open_dataset(folder / "photos");
  const auto packed = open_dataset(folder / "out.lmdb");
  EXPECT_EQ(packed->classes(), in_place->classes());
  ASSERT_EQ(packed->size(), in_place->size());
  const auto packed_reader = packed->make_reader();
  const auto reader = in_place->make_reader();
  for (std::uint64_t index = 0; index < packed->size(); ++index) {
    EXPECT_EQ(packed->key(index), in_place->key(index));
    EXPECT_EQ(packed_reader->read(index).integer("label"), reader->read(index).integer("label"));
  }
}

TEST(Pack, AFlatFolderHasNoLabels) {
  const TemporaryFolder folder;
  write_jpeg(folder / "photos" / "b.jpg");
  write_jpeg(folder / "photos" / "a.jpg");
  // The dataset may be in the packed folder, also one from an earlier run.
  for (int round = 0; round < 2; ++round) {
    const Result result = pack(folder / "photos", folder / "photos" / "out.lmdb", {"--force"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, StartsWith("packed 2 records (no classes, "));
    EXPECT_THAT(contents(folder / "photos" / "out.lmdb"), ElementsAre("a.jpg -1", "b.jpg -1"));
  }
  EXPECT_THAT(open_dataset(folder / "photos" / "out.lmdb")->classes(), IsEmpty());
}

TEST(Pack, ListsWhatItLeavesOut) {
  const TemporaryFolder folder;
  write_jpeg(folder / "photos" / "a" / "good.jpg");
  write_jpeg(folder / "photos" / "loose.jpg");
  write_text(folder / "photos" / "a" / "notes.txt", "remember the milk");
  write_text(folder / "photos" / "a" / "empty.jpg", "");
  write_text(folder / "photos" / "b" / "picture.png", "\x89PNG\r\n\x1a\n and so on");
  Bytes cut = jpeg(64, 64);
  cut.resize(cut.size() / 2);
  write_bytes(folder / "photos" / "b" / "cut.jpg", cut);
  write_text(folder / "photos" / "b" / "starts-like-one.jpg",
             "\xff\xd8 but does not go on like one");
  fs::create_symlink("nowhere.jpg", folder / "photos" / "b" / "dangling.jpg");
  fs::create_symlink("..", folder / "photos" / "b" / "loop");
  for (const bool skip_bad : {false, true}) {
    const Result result = pack(
        folder / "photos", folder / "out.lmdb",
        skip_bad ? std::vector<std::string>{"--skip-bad", "--force"} : std::vector<std::string>{});
    EXPECT_EQ(result.exit_code, skip_bad ? 0 : 1);
    EXPECT_THAT(result.err, HasSubstr("left out 8 files:\n"));
    EXPECT_THAT(result.err,
                HasSubstr("  loose.jpg: lies beside the class folders, so it has no class\n"));
    EXPECT_THAT(result.err, HasSubstr("  a/notes.txt: "));
    EXPECT_THAT(result.err, HasSubstr("  a/empty.jpg: is empty\n"));
    EXPECT_THAT(result.err, HasSubstr("  b/picture.png: it ends in its header\n"));
    EXPECT_THAT(result.err, HasSubstr("  b/cut.jpg: "));
    EXPECT_THAT(result.err, HasSubstr("  b/starts-like-one.jpg: "));
    EXPECT_THAT(result.err, HasSubstr("  b/dangling.jpg: is a link that leads nowhere\n"));
    EXPECT_THAT(result.err, HasSubstr("  b/loop: is a link back to a folder above it\n"));
    EXPECT_EQ(result.err.find("--skip-bad") == std::string::npos, skip_bad);
    EXPECT_THAT(result.out, StartsWith("packed 1 records"));
    EXPECT_THAT(contents(folder / "out.lmdb"), ElementsAre("a/good.jpg 0"));
  }
}

TEST(Pack, FollowsLinksToFoldersAndFiles) {
  const TemporaryFolder folder;
  write_jpeg(folder / "elsewhere" / "x.jpg");
  fs::create_directories(folder / "photos" / "a");
  fs::create_symlink(folder / "elsewhere", folder / "photos" / "b");
  fs::create_symlink(folder / "elsewhere" / "x.jpg", folder / "photos" / "a" / "y.jpg");
  EXPECT_EQ(pack(folder / "photos", folder / "out.lmdb").exit_code, 0);
  EXPECT_THAT(contents(folder / "out.lmdb"), ElementsAre("a/y.jpg 0", "b/x.jpg 1"));
}

// Each of ten folders has links to all others: ten factorial paths by names alone.
TEST(Pack, LinksInCirclesEnd) {
  const TemporaryFolder folder;
  constexpr int folders = 10;
  const auto name = [](int number) { return "f" + std::to_string(number); };
  for (int number = 0; number < folders; ++number) {
    write_jpeg(folder / "all" / name(number) / "x.jpg");
    for (int other = 0; other < folders; ++other)
      fs::create_directory_symlink(folder / "all" / name(other),
                                   folder / "all" / name(number) / ("to-" + name(other)));
  }
  for (const char* class_name : {"a", "b"}) {
    fs::create_directories(folder / "photos" / class_name);
    fs::create_directory_symlink(folder / "all" / "f0", folder / "photos" / class_name / "in");
  }
  const Result result = run_program({"/usr/bin/timeout", "20", MILLRACE_COMMAND, "pack",
                                     folder / "photos", folder / "out.lmdb", "--skip-bad"});
  EXPECT_EQ(result.exit_code, 0);
  // Each image once per class.
  EXPECT_THAT(result.out, StartsWith("packed 20 records (2 classes, "));
  EXPECT_THAT(result.err, HasSubstr("  a/in/to-f0: is a link back to a folder above it\n"));
  EXPECT_THAT(result.err, HasSubstr("  a/in/to-f2: is a folder of this class by another name\n"));
}

TEST(Pack, TakesImagesAndLabelsFromAList) {
  const TemporaryFolder folder;
  write_jpeg(folder / "photos" / "one,two.jpg");
  write_jpeg(folder / "photos" / "deep" / "three.jpg");
  write_text(folder / "list.csv", "one,two.jpg,12\n\ndeep/three.jpg,-1\r\none,two.jpg,0");
  const Result result =
      pack(folder / "photos", folder / "out.lmdb", {"--list", folder / "list.csv"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("packed 3 records (2 classes, "));
  EXPECT_THAT(contents(folder / "out.lmdb"),
              ElementsAre("one,two.jpg 12", "deep/three.jpg -1", "one,two.jpg 0"));
  EXPECT_THAT(open_dataset(folder / "out.lmdb")->classes(), IsEmpty());
}

TEST(Pack, NamesTheLineOfAListThatIsWrong) {
  const TemporaryFolder folder;
  write_jpeg(folder / "photos" / "a.jpg");
  const std::map<std::string, std::string> wrong = {
      {"a.jpg", "\"a.jpg\" has no comma"},
      {"a.jpg,", "label \"\" is not a number"},
      {"a.jpg,cat", "label \"cat\" is not a number"},
      {"a.jpg,-2", "label \"-2\" is not a number from -1 up"},
      {"a.jpg,1x", "label \"1x\""},
      {",3", "the path before the comma is empty"},
      {"/a.jpg,3", "\"/a.jpg\" is not relative"},
      {"a.jpg,99999999999999999999", "is not a number"}};
  for (const auto& [line, reason] : wrong) {
    write_text(folder / "list.csv", "a.jpg,1\n" + line + "\n");
    const Result result =
        pack(folder / "photos", folder / "out.lmdb", {"--list", folder / "list.csv"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr((folder / "list.csv").string() + ":2: "));
    EXPECT_THAT(result.err, HasSubstr(reason));
    EXPECT_FALSE(fs::exists(folder / "out.lmdb"));
  }
  write_text(folder / "list.csv", "a.jpg,1\nmissing.jpg,2\n");
  const Result result =
      pack(folder / "photos", folder / "out.lmdb", {"--list", folder / "list.csv"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("  missing.jpg: cannot be read: No such file or directory\n"));
  EXPECT_THAT(contents(folder / "out.lmdb"), ElementsAre("a.jpg 1"));
  EXPECT_THAT(pack(folder / "photos", folder / "x.lmdb", {"--list", folder / "none.csv"}).err,
              HasSubstr("none.csv cannot be read"));
}

TEST(Pack, WritesNothingWhereThereIsNoImage) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "photos");
  write_text(folder / "kept.lmdb", "precious");
  for (int round = 0; round < 2; ++round) {
    const Result result = pack(folder / "photos", folder / "out.lmdb", {"--skip-bad"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err,
                HasSubstr("there is no image to pack in " + (folder / "photos").string()));
    EXPECT_FALSE(fs::exists(folder / "out.lmdb"));
    EXPECT_EQ(pack(folder / "photos", folder / "kept.lmdb", {"--force"}).exit_code, 1);
    EXPECT_EQ(fs::file_size(folder / "kept.lmdb"), 8u);
    write_text(folder / "photos" / "a.txt", "x");
  }
}

TEST(Pack, ReplacesOnlyWithForce) {
  const TemporaryFolder folder;
  write_jpeg(folder / "photos" / "a.jpg");
  write_text(folder / "out.lmdb", "precious");
  const Result refused = pack(folder / "photos", folder / "out.lmdb");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err,
            "millrace: " + (folder / "out.lmdb").string() + " exists; --force replaces it\n");
  EXPECT_EQ(fs::file_size(folder / "out.lmdb"), 8u);
  EXPECT_EQ(pack(folder / "photos", folder / "out.lmdb", {"--force"}).exit_code, 0);
  EXPECT_THAT(contents(folder / "out.lmdb"), ElementsAre("a.jpg -1"));
}

TEST(Pack, NamesALinkWhoseTargetDoesNotExist) {
  const TemporaryFolder folder;
  write_jpeg(folder / "photos" / "a.jpg");
  fs::create_symlink("nowhere.lmdb", folder / "out.lmdb");
  const Result result = pack(folder / "photos", folder / "out.lmdb", {"--force"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr((folder / "out.lmdb").string() +
                                    " is a symbolic link to nowhere.lmdb, which does not exist"));
  EXPECT_TRUE(fs::is_symlink(folder / "out.lmdb"));
  EXPECT_FALSE(fs::exists(folder / "nowhere.lmdb"));
}

TEST(Pack, SaysWhatIsWrongWithItsArguments) {
  const TemporaryFolder folder;
  write_jpeg(folder / "photos" / "a.jpg");
  const auto expect = [&](const Result& result, int exit_code, const std::string& text) {
    EXPECT_EQ(result.exit_code, exit_code) << text;
    EXPECT_THAT(result.err, StartsWith("millrace: "));
    EXPECT_THAT(result.err, HasSubstr(text));
    EXPECT_THAT(result.out, IsEmpty());
  };
  expect(pack(folder / "missing", folder / "out.lmdb"), 1, "missing does not exist");
  expect(pack(folder / "photos" / "a.jpg", folder / "out.lmdb"), 1,
         "a.jpg is neither a folder nor a tar");
  expect(pack(folder / "photos", folder.path()), 1, "is a folder; OUT is the dataset's file");
  expect(pack(folder / "photos", folder / "no" / "out.lmdb"), 1,
         "cannot be created: No such file or directory");
  expect(millrace_command({"pack"}), 2, "INPUT is required");
  expect(millrace_command({"pack", "a"}), 2, "OUT is required");
  expect(millrace_command({"pack", "a", "b", "c"}), 2, "See millrace pack --help");
  expect(pack(folder / "photos", folder / "out.lmdb", {"--workers", "0"}), 2, "--workers");
  expect(pack(folder / "photos", folder / "out.lmdb", {"--nonsense"}), 2, "--nonsense");
  expect(millrace_command({"nonsense"}), 2, "nonsense");
}

TEST(Command, HelpsAndTellsItsVersion) {
  const Result version = millrace_command({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, "millrace " MILLRACE_VERSION "\n");
  const Result help = millrace_command({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("pack "));
  const Result pack_help = millrace_command({"pack", "--help"});
  EXPECT_EQ(pack_help.exit_code, 0);
  EXPECT_THAT(pack_help.out, HasSubstr("Examples:\n  millrace pack "));
  const Result nothing = millrace_command({});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.out, IsEmpty());
  EXPECT_THAT(nothing.err, HasSubstr("Usage: millrace"));
}

TEST(Pack, MakesTheSameRecordsWithAnyNumberOfWorkers) {
  const TemporaryFolder folder;
  for (int image = 0; image < 60; ++image)
    write_jpeg(folder / "photos" / std::to_string(image % 3) / (std::to_string(image) + ".jpg"),
               16 + image * 7 % 200, 16 + image);
  ASSERT_EQ(pack(folder / "photos", folder / "1.lmdb", {"--workers", "1"}).exit_code, 0);
  ASSERT_EQ(pack(folder / "photos", folder / "9.lmdb", {"--workers", "9"}).exit_code, 0);
  EXPECT_EQ(read_file(folder / "1.lmdb"), read_file(folder / "9.lmdb"));
}

TEST(Pack, LosesNoneOfThePhotographs) {
  MILLRACE_NEEDS_SHARED("data/photos");
  const fs::path photos = shared_dir() / "data" / "photos";
  const TemporaryFolder folder;
  const Result result = pack(photos, folder / "out.lmdb");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("packed 500 records (2 classes, "));
  const auto dataset = open_dataset(folder / "out.lmdb");
  ASSERT_EQ(dataset->size(), 500u);
  std::map<std::string, int> seen;
  const auto reader = dataset->make_reader();
  for (std::uint64_t index = 0; index < 500; ++index) {
    const Record record = reader->read(index);
    const std::string path(record.text("path"));
    ++seen[path];
    ASSERT_TRUE(std::ranges::equal(record["image"], read_file(photos / path))) << path;
    ASSERT_EQ(record.integer("label"), path.starts_with("animal/") ? 0 : 1);
    ASSERT_GT(record.integer("width"), 0);
  }
  EXPECT_EQ(seen.size(), 500u);
}

}  // namespace
}  // namespace millrace
