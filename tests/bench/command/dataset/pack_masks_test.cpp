// SPDX-License-Identifier: Apache-2.0
//
// Packing images with their masks.
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>

#include <algorithm>
#include <string>
#include <vector>

#include "augment/orientations.h"
#include "command/image/made_image.h"
#include "support/packs.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

using Result = RunningProgram::Result;

/// A PNG file whose pixels have this value.
std::string png(int width, int height, std::uint8_t value) {
  return cli::png_of(
      {{width, height},
       std::vector<std::uint8_t>(static_cast<std::size_t>(3 * width * height), value)});
}

/// Its header is sound, its pixels are corrupt.
std::string broken_png() {
  std::string bytes = png(20, 20, 1);
  bytes.resize(bytes.size() - 20);
  return bytes;
}

class PackMasks : public ::testing::Test {
 protected:
  PackMasks() {
    write_jpeg(photos_ / "cat" / "1.jpg", 24, 16);
    write_jpeg(photos_ / "cat" / "deep" / "2.x.jpeg", 20, 30);
    write_text(photos_ / "dog" / "3.png", png(8, 9, 50));
    write_text(masks_ / "cat" / "1.png", png(24, 16, 1));
    write_text(masks_ / "cat" / "deep" / "2.x.png", png(20, 30, 2));
    write_text(masks_ / "dog" / "3.png", png(8, 9, 3));
  }

  Result pack_all(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--masks", masks_.string()});
    return pack(photos_, out_, more);
  }

  void expect_masks(const std::vector<std::string>& names) const {
    const auto dataset = open_dataset(out_);
    ASSERT_EQ(dataset->size(), names.size());
    const auto reader = dataset->make_reader();
    for (std::uint64_t index = 0; index < names.size(); ++index) {
      const Record record = reader->read(index);
      ASSERT_EQ(record.fields().size(), 6u);
      EXPECT_EQ(record.fields()[5].name, "mask");
      EXPECT_TRUE(std::ranges::equal(record["mask"], read_file(masks_ / names[index])))
          << names[index];
    }
  }

  const TemporaryFolder folder_;
  const fs::path photos_ = folder_ / "photos";
  const fs::path masks_ = folder_ / "masks";
  const fs::path out_ = folder_ / "out.lmdb";
};

TEST_F(PackMasks, GoInUntouched) {
  const Result result = pack_all();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(contents(out_), ElementsAre("cat/1.jpg 0", "cat/deep/2.x.jpeg 0", "dog/3.png 1"));
  expect_masks({"cat/1.png", "cat/deep/2.x.png", "dog/3.png"});
  const Result inspected = millrace_command({"inspect", out_});
  EXPECT_THAT(inspected.out, ContainsRegex("\n  mask +[0-9]+ bytes +PNG [^\n]*, 24 x 16 pixels\n"));
  const Result shown = millrace_command({"inspect", out_, "--record", "1"});
  EXPECT_THAT(shown.out, ContainsRegex("\n  mask +[0-9]+ bytes +PNG [^\n]*, 20 x 30 pixels\n"));
}

TEST_F(PackMasks, OfAListAndInShards) {
  write_text(folder_ / "list.csv", "dog/3.png,7\ncat/1.jpg,-1\n");
  const Result result =
      pack_all({"--list", folder_ / "list.csv", "--shards", "2", "--workers", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(contents(out_), ElementsAre("dog/3.png 7", "cat/1.jpg -1"));
  expect_masks({"dog/3.png", "cat/1.png"});
}

TEST_F(PackMasks, AreAsLargeAsTheImageIsStored) {
  write_bytes(photos_ / "cat" / "1.jpg", with_orientation(jpeg(24, 16), 6));
  EXPECT_EQ(pack_all().exit_code, 0);
}

TEST_F(PackMasks, AnImageWithoutAFittingOneIsLeftOut) {
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"})
    write_jpeg(photos_ / "cat" / (std::string(name) + ".jpg"), 20, 20);
  const fs::path cats = masks_ / "cat";
  write_text(cats / "b.png", png(10, 10, 1));
  write_bytes(cats / "c.png", jpeg(20, 20));
  write_text(cats / "d.png", "\x89PNG and no more");
  write_text(cats / "e.png", png(20, 20, 1).substr(0, 20));
  write_text(cats / "f.png", "");
  fs::create_directory(cats / "g.png");
  write_text(cats / "h.png", broken_png());
  const Result result = pack_all();
  EXPECT_EQ(result.exit_code, 1);
  const std::string at = cats.string() + "/";
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr("left out 8 files:\n"),
            HasSubstr("  cat/a.jpg: it has no mask: " + at + "a.png does not exist\n"),
            HasSubstr("  cat/b.jpg: its mask " + at + "b.png is 10 x 10, the image 20 x 20\n"),
            HasSubstr("  cat/c.jpg: its mask " + at + "c.png is a JPEG image, and masks are PNG\n"),
            HasSubstr("  cat/d.jpg: its mask " + at + "d.png is not a PNG file\n"),
            HasSubstr("  cat/e.jpg: its mask " + at + "e.png has no sound header: "),
            HasSubstr("  cat/f.jpg: its mask " + at + "f.png is empty\n"),
            HasSubstr("  cat/g.jpg: its mask " + at + "g.png is a folder\n"),
            HasSubstr("  cat/h.jpg: its mask " + at + "h.png does not decode: ")));
  expect_masks({"cat/1.png", "cat/deep/2.x.png", "dog/3.png"});
}

TEST_F(PackMasks, VerifyDecodesThem) {
  const auto as_bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const std::string sound = png(20, 20, 1), broken = broken_png(), numbers = "no PNG";
  const auto image = jpeg(320, 200);
  DatasetWriter writer(out_);
  for (const std::string& mask : {sound, broken, numbers}) {
    const RecordField fields[] = {{"image", std::as_bytes(std::span(image))},
                                  {"mask", as_bytes(mask)}};
    writer.append(fields);
  }
  writer.finish();
  // A sound index does not make a mask sound.
  ASSERT_EQ(millrace_command({"index", out_}).exit_code, 0);
  for (const char* how : {"--deep", "--limit=20"}) {
    const Result result = millrace_command({"verify", out_, how});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, AllOf(HasSubstr("1 of 3 records"),
                                  ContainsRegex("\n +1  record 1: its mask does not decode: ")));
  }
  EXPECT_EQ(millrace_command({"verify", out_, "--quick"}).exit_code, 0);
}

// A file of the kernel reports a false length.
TEST_F(PackMasks, WhatCannotBeReadEndsThePackAndIsTriedAgain) {
  const fs::path mask = masks_ / "cat" / "deep" / "2.x.png";
  if (!fs::exists("/sys/class/net/lo/mtu"))
    GTEST_SKIP() << "the kernel shows no files of a network's device";
  fs::remove(mask);
  fs::create_symlink("/sys/class/net/lo/mtu", mask);
  const Result ended = pack_all({"--skip-bad", "--commit-bytes", "1000"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr(mask.string() + " cannot be read: it was changed"));
  EXPECT_EQ(refusal(out_), ErrorCode::incomplete);
  fs::remove(mask);
  write_text(mask, png(20, 30, 2));
  const Result result = pack_all({"--resume"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_masks({"cat/1.png", "cat/deep/2.x.png", "dog/3.png"});
}

TEST_F(PackMasks, AnotherFolderOfThemIsAnotherPack) {
  ASSERT_EQ(pack_all().exit_code, 0);
  EXPECT_EQ(pack_all({"--resume"}).exit_code, 0);
  fs::copy(masks_, folder_ / "others", fs::copy_options::recursive);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--masks", folder_ / "others"}}) {
    std::vector<std::string> options = {"--resume"};
    options.insert(options.end(), more.begin(), more.end());
    const Result refused = pack(photos_, out_, options);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr("cannot be resumed: it was begun from "));
  }
}

TEST_F(PackMasks, AreOfAFolderOfImages) {
  TarFile tar;
  tar.add("a.jpg", jpeg(8, 8));
  tar.add("a.cls", "1");
  tar.write(folder_ / "a.tar");
  write_text(folder_ / "list.csv", "a.jpg,1\n");
  ASSERT_EQ(pack(photos_, folder_ / "other.lmdb").exit_code, 0);
  for (const char* input : {"a.tar", "list.csv", "other.lmdb"})
    for (const char* option : {"--masks", "--coco"}) {
      const Result result = pack(folder_ / input, out_, {option, masks_});
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_THAT(result.err, AllOf(HasSubstr(option), HasSubstr("needs one folder of images"),
                                    HasSubstr(input)));
    }
  EXPECT_EQ(
      millrace_command({"pack", folder_ / "a.tar", folder_ / "a.tar", out_, "--masks", masks_})
          .exit_code,
      2);
  EXPECT_EQ(pack_all({"--format", "folder"}).exit_code, 2);
  const Result of_pattern = pack(folder_ / "*.tar", out_, {"--masks", masks_});
  EXPECT_EQ(of_pattern.exit_code, 1);
  EXPECT_THAT(of_pattern.err, HasSubstr("is not a folder of images"));
}

TEST_F(PackMasks, TheirFolderIsThereAndApart) {
  const auto refused = [&](const fs::path& masks, const std::string& why) {
    const Result result = pack(photos_, out_, {"--masks", masks});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err, "millrace: " + masks.string() + why + "\n");
  };
  refused(folder_ / "none", " does not exist");
  refused(masks_ / "dog" / "3.png", " is not a folder; --masks names the folder of the masks");
  for (const fs::path& inside : {photos_, photos_ / "dog"})
    refused(inside,
            " lies in the folder of the images, of which every file is packed; move it elsewhere");
  EXPECT_FALSE(fs::exists(out_));
  // An output is never an input.
  const Result onto = pack(photos_, masks_ / "dog" / "3.png", {"--masks", masks_, "--force"});
  EXPECT_EQ(onto.exit_code, 1);
  EXPECT_EQ(read_file(masks_ / "dog" / "3.png").size(), png(8, 9, 3).size());
}

}  // namespace
}  // namespace millrace
