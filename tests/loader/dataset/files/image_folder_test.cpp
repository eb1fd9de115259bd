// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "support/run_program.h"
#include "support/sanitizers.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

void write_below(const fs::path& path, const std::string& contents = "image") {
  fs::create_directories(path.parent_path());
  write_file(path, contents);
}

/// Classes in a line, then "path,label" for each record.
std::string listing_of(const Dataset& dataset) {
  std::string text;
  for (const std::string& name : dataset.classes()) text += (text.empty() ? "" : ",") + name;
  text += "\n";
  const auto reader = dataset.make_reader();
  for (std::uint64_t index = 0; index < dataset.size(); ++index) {
    std::string label = "bad";
    try {
      label = std::to_string(reader->read(index).integer("label"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_record);
    }
    text += dataset.key(index) + "," + label + "\n";
  }
  return text;
}

/// Writes a tree of names that other orders would sort differently.
void write_awkward_tree(const fs::path& folder) {
  for (const char* file :
       {"cat/1.jpg",      "cat/10.JPG",    "cat/2.Jpeg",          "cat/a/b/3.png",
        "cat/a-b/4.png",  "cat/a/5.webp",  "cat/a.b/6.tiff",      "cat/.hidden/7.bmp",
        "cat/.8.jpg",     "cat/notes.txt", "cat/9.jpg.txt",       "cat/x.gif",
        "Cat/11.ppm",     "dog/12.pgm",    "dog/\xC3\xA4/13.tif", "dog/z/14.jpg",
        ".thumbs/15.jpg", "a b/16.jpg",    "zebra/17.jpg",        "beside.jpg"})
    write_below(folder / file);
  fs::create_directory_symlink("../dog", folder / "cat" / "dogs");
  fs::create_directory_symlink("dog", folder / "dog link");
  fs::create_symlink("../cat/1.jpg", folder / "zebra" / "link.jpg");
}

TEST(ImageFolder, HasTorchvisionsClassesAndOrder) {
  const TemporaryFolder folder;
  const fs::path images = folder / "images";
  write_awkward_tree(images);
  if (!fs::exists("/usr/bin/python3")) GTEST_SKIP() << "there is no /usr/bin/python3";
  const auto asked = run_program({"/usr/bin/python3", MILLRACE_IMAGE_FOLDER_ORACLE, images.string(),
                                  (folder / "out").string()});
  if (asked.exit_code == 77) GTEST_SKIP() << asked.out;
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  const auto dataset = open_dataset(images);
  EXPECT_EQ(listing_of(*dataset), file_contents(folder / "out"));
  EXPECT_EQ(dataset->size(), 21U);
  EXPECT_EQ(dataset->facts().format, "image folder");
  EXPECT_EQ(dataset->facts().format_reason, "it is a folder of 6 class folders");
}

TEST(ImageFolder, IsInTheOrderThatTorchvisionHasIt) {
  const TemporaryFolder folder;
  for (const char* file : {"b/2.jpg", "b/10.jpg", "b/c/1.jpg", "b/c-d/1.jpg", "a/.1.jpg"})
    write_below(folder / file);
  EXPECT_EQ(listing_of(*open_dataset(folder.path())),
            "a,b\na/.1.jpg,0\nb/10.jpg,1\nb/2.jpg,1\nb/c/1.jpg,1\nb/c-d/1.jpg,1\n");
}

TEST(ImageFolder, HiddenFoldersDoNotCount) {
  const TemporaryFolder folder;
  for (const char* file : {"1.jpg", "2.jpg", ".ipynb_checkpoints/1.jpg", ".git/3.jpg", "._1.jpg"})
    write_below(folder / file);
  fs::create_directory(folder / "lost+found");
  const auto flat = open_dataset(folder.path());
  EXPECT_EQ(listing_of(*flat), "\n1.jpg,-1\n2.jpg,-1\n");
  EXPECT_THAT(flat->facts().warnings,
              ElementsAre(folder.path().string() + ": ignored 3 hidden folders."));
  for (const char* file : {"a/1.jpg", "b/2.jpg", "b/.cache/3.jpg"}) write_below(folder / file);
  const auto classes = open_dataset(folder.path());
  EXPECT_EQ(listing_of(*classes), "a,b\na/1.jpg,0\nb/2.jpg,1\n");
  EXPECT_THAT(classes->facts().warnings,
              ElementsAre(folder.path().string() + ": ignored 4 hidden folders.",
                          folder.path().string() + ": ignored 2 images beside the class folders; "
                                                   "move them into one of these."));
}

TEST(ImageFolder, OutlivesAChangeOfTheWorkingFolder) {
  const TemporaryFolder folder;
  write_below(folder / "images/1.jpg", "one");
  write_file(folder / "list.csv", "images/1.jpg,7\n");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const auto images = open_dataset("images");
  const auto list = open_dataset("list.csv");
  fs::current_path(before);
  EXPECT_EQ(images->make_reader()->read(0).text("image"), "one");
  EXPECT_EQ(list->make_reader()->read(0).text("image"), "one");
  EXPECT_EQ(images->name(), "images");
}

TEST(ImageFolder, CirclesOfLinksEnd) {
  const TemporaryFolder folder;
  write_below(folder / "a/b/1.jpg");
  write_below(folder / "c/2.jpg");
  fs::create_directory_symlink("..", folder / "a" / "b" / "up");
  fs::create_directory_symlink(folder.path(), folder / "a" / "top");
  fs::create_directory_symlink("../a", folder / "c" / "other");
  EXPECT_EQ(listing_of(*open_dataset(folder.path())),
            "a,c\na/b/1.jpg,0\nc/2.jpg,1\nc/other/b/1.jpg,1\n");
}

TEST(ImageFolder, LinksThatLeadToTooManyAreRefused) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "class" / "0");
  for (int level = 0; level < 20; ++level) {
    const fs::path next = folder / "class" / std::to_string(level + 1);
    fs::create_directory(next);
    for (const char* link : {"a", "b"})
      fs::create_directory_symlink("../" + std::to_string(level), next / link);
  }
  write_below(folder / "class/0/1.jpg");
  const Error error = thrown_by([&] { (void)open_dataset(folder.path()); });
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("more than 10000 times"));
}

TEST(ImageFolder, AnEmptyClassIsAnError) {
  const TemporaryFolder folder;
  write_below(folder / "a/1.jpg");
  write_below(folder / "b/1.txt");
  write_below(folder / "c/d/1.txt");
  const Error error = thrown_by([&] { (void)open_dataset(folder.path()); });
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("class folders without an image: \"b\", \"c\""));
}

TEST(ImageFolder, WithoutClassFoldersImagesHaveNoClass) {
  const TemporaryFolder folder;
  write_below(folder / "b.jpg");
  write_below(folder / "a.png");
  write_below(folder / "c.txt");
  EXPECT_EQ(listing_of(*open_dataset(folder.path())), "\na.png,-1\nb.jpg,-1\n");
}

TEST(ImageFolder, ThatHasNothingIsNone) {
  const TemporaryFolder folder;
  write_below(folder / "c.txt");
  EXPECT_EQ(thrown_by([&] { (void)open_dataset(folder.path()); }).code(), ErrorCode::corrupt);
  fs::create_directory(folder / "class");
  EXPECT_THAT(thrown_by([&] { (void)open_dataset(folder.path()); }).what(),
              HasSubstr("has no image in its class folders"));
}

TEST(ImageList, HasTheFilesInItsOrder) {
  const TemporaryFolder folder;
  write_below(folder / "x/b.jpg", "b");
  write_below(folder / "x/a,a.jpg", "a");
  write_file(folder / "list.csv", "\nx/b.jpg,7\r\nx/a,a.jpg,-1\n");
  const auto dataset = open_dataset(folder / "list.csv");
  EXPECT_EQ(listing_of(*dataset), "\nx/b.jpg,7\nx/a,a.jpg,-1\n");
  EXPECT_EQ(dataset->facts().format, "image list");
  EXPECT_EQ(dataset->make_reader()->read(1).text("image"), "a");
  write_file(folder / "marked.csv", "\xef\xbb\xbfx/b.jpg,7\n");
  EXPECT_EQ(listing_of(*open_dataset(folder / "marked.csv")), "\nx/b.jpg,7\n")
      << "without the byte order mark";

  write_file(folder / "wrong.csv", "x/b.jpg,7\nx/b.jpg,seven\n");
  EXPECT_THAT(thrown_by([&] { (void)open_dataset(folder / "wrong.csv"); }).what(),
              HasSubstr("wrong.csv:2: label \"seven\" is not a number from -1 up"));
}

TEST(ImageList, ALineThatIsNoneIsCorrupt) {
  const TemporaryFolder folder;
  for (const char* line : {"b.jpg", ",7", "/b.jpg,7", "b.jpg,seven"}) {
    write_file(folder / "list.csv", "a.jpg,1\n" + std::string(line) + "\n");
    const Error error = thrown_by([&] { (void)open_dataset(folder / "list.csv"); });
    EXPECT_EQ(error.code(), ErrorCode::corrupt) << line;
    EXPECT_THAT(error.what(), HasSubstr("list.csv:2: "));
  }
}

TEST(ImageList, AFileThatCannotBeReadIsABadRecord) {
  const TemporaryFolder folder;
  write_below(folder / "image.jpg");
  write_below(folder / "empty.jpg", "");
  fs::create_directory(folder / "folder");
  fs::create_symlink("nowhere", folder / "link");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  write_below(folder / "long.jpg");
  fs::resize_file(folder / "long.jpg", (std::uintmax_t{1} << 30) + 1);
  write_file(folder / "list.csv",
             "gone.jpg,0\nempty.jpg,0\nfolder,0\nlink,0\npipe,0\nimage.jpg/a,0\nlong.jpg,0\n"
             "image.jpg,0\n");
  const auto dataset = open_dataset(folder / "list.csv");
  const auto reader = dataset->make_reader();
  std::vector<std::string> reasons;
  std::vector<std::uint64_t> all;
  for (std::uint64_t index = 0; index < 7; ++index) {
    const Error error = thrown_by([&] { (void)reader->read(index); });
    EXPECT_EQ(error.code(), ErrorCode::bad_record);
    EXPECT_EQ(error.record(), index);
    reasons.push_back(error.reason().substr(folder.path().string().size() + 1));
    all.push_back(index);
  }
  dataset->prefetch(all);
  EXPECT_THAT(
      reasons,
      ElementsAre("gone.jpg cannot be read: No such file or directory", "empty.jpg is empty",
                  "folder is not a regular file", "link cannot be read: No such file or directory",
                  "pipe is not a regular file", "image.jpg/a cannot be read: Not a directory",
                  "long.jpg is 1073741825 bytes long; at most 1 GiB is read"));
  EXPECT_EQ(reader->read(7).text("image"), "image");
}

TEST(ImageList, TooManyOpenFilesEndTheRun) {
#if defined(MILLRACE_ASAN)
  GTEST_SKIP() << "the sanitizer takes an object for none if it gets no handle";
#endif
  const TemporaryFolder folder;
  write_below(folder / "a.jpg");
  write_file(folder / "list.csv", "a.jpg,0\n");
  const auto reader = open_dataset(folder / "list.csv")->make_reader();
  (void)reader->read(0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Error error = thrown_by([&] { (void)reader->read(0); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_THAT(error.what(), HasSubstr("a.jpg cannot be read: Too many open files"));
  (void)reader->read(0);
}

}  // namespace
}  // namespace millrace
