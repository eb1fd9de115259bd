// SPDX-License-Identifier: Apache-2.0
//
// Packing datasets of other formats, and other commands on them.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "loader/dataset/array/npy_files.h"
#include "support/packs.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

class PackDataset : public ::testing::Test {
 protected:
  void write_tars() const {
    for (const char* name : {"0", "1"}) {
      TarFile tar;
      for (int sample = 0; sample < 2; ++sample) {
        const std::string key = std::string(name) + "/" + std::to_string(sample);
        tar.add(key + ".jpg", jpeg(20 + sample, 30));
        tar.add(key + ".cls", std::to_string(sample));
        tar.add(key + ".txt", "caption of " + key);
      }
      tar.write(folder_ / (std::string("s-") + name + ".tar"));
    }
    write_text(folder_ / "tars.txt", "s-0.tar\ns-1.tar\n");
  }
  void write_classes() const {
    write_jpeg(folder_ / "images" / "cat" / "1.jpg", 24, 16);
    write_jpeg(folder_ / "images" / "dog" / "2.jpg", 25, 16);
    write_text(folder_ / "images" / "dog" / "3.jpg", "no image");
  }

  const TemporaryFolder folder_;
  const fs::path out_ = folder_ / "out.lmdb";
};

TEST_F(PackDataset, RecordsOfListedTarsKeepTheirFields) {
  write_tars();
  const auto result = pack(folder_ / "tars.txt", out_);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(contents(out_), ElementsAre("0/0 0", "0/1 1", "1/0 0", "1/1 1"));
  const auto dataset = open_dataset(out_);
  EXPECT_THAT(dataset->facts().fields,
              ElementsAre("image", "label", "path", "width", "height", "text"));
  EXPECT_EQ(dataset->make_reader()->read(3).text("text"), "caption of 1/1");
  EXPECT_EQ(dataset->make_reader()->read(3).integer("width"), 21);
}

TEST_F(PackDataset, AFieldThatTheFirstOneHasNotIsNotDroppedInSilence) {
  TarFile tar;
  for (int sample = 0; sample < 3; ++sample) {
    const std::string key = std::to_string(sample);
    tar.add(key + ".jpg", jpeg(20, 30));
    tar.add(key + ".cls", "1");
    if (sample == 1) tar.add(key + ".txt", "a caption");
  }
  tar.write(folder_ / "s.tar");
  write_text(folder_ / "tars.txt", "s.tar\n");
  const auto result = pack(folder_ / "tars.txt", out_);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("has a field \"text\", which those before it do not have"));
  EXPECT_THAT(contents(out_), ElementsAre("0 1", "2 1"));
}

TEST_F(PackDataset, AnotherArrayIsNotTakenForTheOneThatWasBegun) {
  const fs::path array = folder_ / "rows.npy";
  write_npy(array, "<i4", std::vector<std::int32_t>{1, 2, 3});
  EXPECT_EQ(pack(array, out_).exit_code, 0);
  EXPECT_EQ(pack(array, out_, {"--resume"}).exit_code, 0);
  write_npy(array, "<i4", std::vector<std::int32_t>{1, 2, 4});
  const auto resumed = pack(array, out_, {"--resume"});
  EXPECT_EQ(resumed.exit_code, 1);
  EXPECT_THAT(resumed.err, HasSubstr("cannot be resumed: it was begun from"));
}

TEST_F(PackDataset, APackedOneIsPackedAgain) {
  write_classes();
  EXPECT_EQ(pack(folder_ / "images", out_, {"--skip-bad"}).exit_code, 0);
  const auto result = pack(out_, folder_ / "again.lmdb", {"--shards", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(all_bytes(folder_ / "again.lmdb"), all_bytes(out_));
  EXPECT_THAT(open_dataset(folder_ / "again.lmdb")->classes(), ElementsAre("cat", "dog"));
  EXPECT_EQ(open_dataset(folder_ / "again.lmdb")->facts().fingerprint,
            open_dataset(out_)->facts().fingerprint);
  EXPECT_THAT(pack(out_, out_, {"--force"}).err, HasSubstr("the command reads it"));
}

TEST_F(PackDataset, NoIndexIsReplacedByADataset) {
  write_classes();
  const std::string index = (folder_ / "d.lmdb.index").string();
  ASSERT_EQ(pack(folder_ / "images", folder_ / "d.lmdb", {"--skip-bad"}).exit_code, 0);
  const auto before = fs::file_size(index);
  const auto refused = [&](const fs::path& input, const std::string& out) {
    const auto result = pack(input, out, {"--force"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr(out + ": it is the index of a dataset; take another name"));
  };
  refused(folder_ / "d.lmdb", index);
  refused(folder_ / "images", index);
  EXPECT_EQ(fs::file_size(index), before);
  fs::remove(index);
  refused(folder_ / "d.lmdb", index);
  EXPECT_FALSE(fs::exists(index));
  write_tars();
  refused(folder_ / "s-0.tar", (folder_ / "s-0.tar.index").string());
}

TEST_F(PackDataset, WhatDoesNotDecodeIsLeftOut) {
  write_classes();
  write_text(folder_ / "list.csv", "images/cat/1.jpg,4\nimages/dog/3.jpg,5\ngone.jpg,6\n");
  const auto result = pack(folder_ / "list.csv", out_);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("left out 2 records:"), HasSubstr("images/dog/3.jpg: "),
                                HasSubstr("gone.jpg cannot be read: No such file")));
  EXPECT_THAT(contents(out_), ElementsAre("images/cat/1.jpg 4"));
}

// A link to itself is not a missing file: the system refuses to read it.
TEST_F(PackDataset, WhatCannotBeReadEndsItAndIsTriedAgain) {
  write_classes();
  write_text(folder_ / "list.csv", "images/cat/1.jpg,4\nloop.jpg,5\n");
  fs::create_symlink("loop.jpg", folder_ / "loop.jpg");
  const auto ended = pack(folder_ / "list.csv", out_, {"--skip-bad"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("loop.jpg cannot be read: Too many levels of symbolic links"));
  fs::remove(folder_ / "loop.jpg");
  write_jpeg(folder_ / "loop.jpg", 20, 30);
  const auto result = pack(folder_ / "list.csv", out_, {"--skip-bad", "--resume"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(contents(out_), ElementsAre("images/cat/1.jpg 4", "loop.jpg 5"));
}

// A resumed pack does not read the labels of the records that it finds packed.
TEST_F(PackDataset, OnlyAWholePackCountsItsClasses) {
  write_tars();
  EXPECT_THAT(pack(folder_ / "tars.txt", out_).out, HasSubstr("4 records (2 classes, "));
  EXPECT_THAT(pack(folder_ / "tars.txt", out_, {"--resume"}).out,
              HasSubstr("complete already, with 4 records (classes not counted)"));
  write_classes();
  const fs::path named = folder_ / "named.lmdb";
  ASSERT_EQ(pack(folder_ / "images", named, {"--skip-bad"}).exit_code, 0);
  EXPECT_THAT(pack(named, out_, {"--force"}).out, HasSubstr("2 records (2 classes, "));
  EXPECT_THAT(pack(named, out_, {"--resume"}).out, HasSubstr("with 2 records (2 classes)"));
}

TEST_F(PackDataset, AFolderIsInspectedVerifiedAndIndexed) {
  write_classes();
  const std::string images = (folder_ / "images").string();
  const auto inspected = millrace_command({"inspect", images});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("3 records"), HasSubstr("each in a file of its own"),
                                   HasSubstr("dog/3.jpg")));
  const auto record = millrace_command({"inspect", images, "--record", "1"});
  EXPECT_EQ(record.exit_code, 0) << record.err;
  EXPECT_THAT(record.out, AllOf(HasSubstr("1 (dog)"), HasSubstr("none is stored")));
  const auto verified = millrace_command({"verify", images});
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out, HasSubstr("1 of 3 records is bad"));
  const auto indexed = millrace_command({"index", images});
  EXPECT_EQ(indexed.exit_code, verified.exit_code) << indexed.err;
  EXPECT_THAT(indexed.out, HasSubstr("; 1 record is bad\n"));
  EXPECT_TRUE(fs::exists(images + ".index"));
  EXPECT_TRUE(open_dataset(images)->has_stored_hints());
}

TEST_F(PackDataset, TarsAreVerifiedIndexedAndMeasured) {
  write_tars();
  const std::string tars = (folder_ / "s-{0..1}.tar").string();
  const auto verified = millrace_command({"verify", tars});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("all 4 records are sound"));
  const auto indexed = millrace_command({"index", tars});
  EXPECT_EQ(indexed.exit_code, 0) << indexed.err;
  EXPECT_THAT(indexed.out, AllOf(HasSubstr("stored where the samples of 2 tars lie"),
                                 HasSubstr("4 of 4 images")));
  EXPECT_TRUE(fs::exists(folder_ / "s-1.tar.members"));
  EXPECT_EQ(millrace_command({"verify", tars, "--deep"}).exit_code, 0);
  const auto measured = millrace_command(
      {"bench", tars, "--size", "16", "--batch-size", "2", "--batches", "2", "--warmup", "0"});
  EXPECT_EQ(measured.exit_code, 0) << measured.err;
}

}  // namespace
}  // namespace millrace
