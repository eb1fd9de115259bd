// SPDX-License-Identifier: Apache-2.0
//
// Packing images with the boxes of a COCO file.
#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <vector>

#include "bench/command/dataset/coco_text.h"
#include "command/image/made_image.h"
#include "support/packs.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using namespace testing;

using Result = RunningProgram::Result;

template <typename Value>
std::vector<Value> values_of(const Record& record, const char* field) {
  const std::span<const std::byte> bytes = record[field];
  EXPECT_EQ(bytes.size() % sizeof(Value), 0u);
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::string_view> names_of(const Record& record) {
  std::vector<std::string_view> names;
  for (const RecordField& field : record.fields()) names.push_back(field.name);
  return names;
}

class PackCoco : public ::testing::Test {
 protected:
  PackCoco() {
    write_jpeg(photos_ / "b.jpg", 24, 16);
    write_jpeg(photos_ / "deep" / "a.jpg", 20, 30);
    write_jpeg(photos_ / "c.jpg", 8, 8);
    write_jpeg(photos_ / "of no list.jpg");
  }

  Result pack_text(const std::string& text, std::vector<std::string> more = {}) const {
    write_text(json_, text);
    more.insert(more.end(), {"--coco", json_.string()});
    return pack(photos_, out_, more);
  }

  static constexpr const char* images_ =
      R"({"id":70,"file_name":"b.jpg","width":24,"height":16,"license":3},
         {"id":-2,"file_name":"deep/a.jpg","width":20,"height":30},
         {"id":9007199254740993,"file_name":"c.jpg"})";
  static constexpr const char* categories_ =
      R"({"id":90,"name":"zebra"},{"id":-1,"name":"caf\u00e9"},{"id":18,"name":"dog"})";

  const TemporaryFolder folder_;
  const fs::path photos_ = folder_ / "photos";
  const fs::path json_ = folder_ / "instances.json";
  const fs::path out_ = folder_ / "out.lmdb";
};

TEST_F(PackCoco, TakesBoxesLabelsAndKeypoints) {
  const std::string annotations =
      R"({"image_id":-2,"category_id":90,"bbox":[1.5,2,3,4.25],"iscrowd":0,"id":1,
          "segmentation":[[1,2,3,4]],"keypoints":[1,2,2,0.5,-3e1,0],"num_keypoints":1},
         {"image_id":70,"category_id":18,"bbox":[0,0,24,16],"iscrowd":1,
          "segmentation":{"counts":[1,2],"size":[3,4]},"keypoints":[9,9,9,9,9,9]},
         {"image_id":70,"category_id":-1,"bbox":[0.1,0.2,0.6,0.1],"keypoints":[]},
         {"image_id":-2,"category_id":18,"bbox":[0,0,20,30]},
         {"image_id":70,"category_id":18,"bbox":[1,1,0,5]},
         {"image_id":70,"category_id":18,"bbox":[1,1,5,-1]},
         {"image_id":70,"category_id":18,"bbox":[600,1,1e-9,5]},
         {"bbox":[-1,-2,3,4],"category_id":90,"image_id":70,"keypoints":[7,8,1,5,6,2]})";
  const Result result = pack_text(coco_text(images_, annotations, categories_));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err,
            "millrace: left out, as annotations of crowds (iscrowd 1): 1\n"
            "millrace: left out, as boxes that are not wider and higher than 0: 3\n");
  EXPECT_THAT(result.out, StartsWith("packed 3 records (3 classes of boxes, "));
  EXPECT_THAT(contents(out_), ElementsAre("b.jpg -1", "deep/a.jpg -1", "c.jpg -1"));
  const auto dataset = open_dataset(out_);
  EXPECT_THAT(dataset->classes(), ElementsAre("caf\xc3\xa9", "dog", "zebra"));
  const auto reader = dataset->make_reader();
  {
    const Record record = reader->read(0);
    EXPECT_THAT(names_of(record), ElementsAre("image", "label", "path", "width", "height",
                                              "image_id", "boxes", "labels", "keypoints"));
    EXPECT_EQ(record.integer("image_id"), 70);
    EXPECT_EQ(record.integer("width"), 24);
    // In float32 the sum 0.1 + 0.6 is another number.
    EXPECT_THAT(values_of<float>(record, "boxes"),
                ElementsAre(0.1F, 0.2F, static_cast<float>(0.1 + 0.6), 0.3F, -1, -2, 2, 2));
    EXPECT_THAT(values_of<std::int64_t>(record, "labels"), ElementsAre(0, 2));
    EXPECT_THAT(values_of<float>(record, "keypoints"),
                ElementsAre(0, 0, 0, 0, 0, 0, 7, 8, 1, 5, 6, 2));
  }
  {
    const Record record = reader->read(1);
    EXPECT_EQ(record.integer("image_id"), -2);
    EXPECT_THAT(values_of<float>(record, "boxes"), ElementsAre(1.5, 2, 4.5, 6.25, 0, 0, 20, 30));
    EXPECT_THAT(values_of<std::int64_t>(record, "labels"), ElementsAre(2, 1));
    EXPECT_THAT(values_of<float>(record, "keypoints"),
                ElementsAre(1, 2, 2, 0.5, -30, 0, 0, 0, 0, 0, 0, 0));
  }
  const Record record = reader->read(2);
  EXPECT_EQ(record.integer("image_id"), 9007199254740993);
  for (const char* name : {"boxes", "labels", "keypoints"}) EXPECT_THAT(record[name], IsEmpty());

  const Result first = millrace_command({"inspect", out_});
  EXPECT_THAT(first.out,
              AllOf(ContainsRegex("\n  boxes +32 bytes +2 boxes, the first 0.1 0.2 0.7"),
                    ContainsRegex("\n  labels +16 bytes +2 integers, the first 0\n"),
                    ContainsRegex("\n  keypoints +48 bytes +2 x 2 keypoints, the first 0 0 0\n")));
  // Counts of classes: records with boxes count for the classes of their boxes; one has no box.
  EXPECT_THAT(millrace_command({"inspect", out_}).out,
              AllOf(ContainsRegex("\n  -1 .no class. +1 "), ContainsRegex("\n  dog +1 "),
                    ContainsRegex("\n  zebra +2 "), Not(HasSubstr("missing"))));
  const Result last = millrace_command({"inspect", out_, "--record", "2"});
  EXPECT_THAT(last.out, AllOf(ContainsRegex("\n  boxes +0 bytes +0 boxes\n"),
                              ContainsRegex("\n  labels +0 bytes +0 integers\n"),
                              ContainsRegex("\n  keypoints +0 bytes +0 keypoints\n")));
  EXPECT_EQ(millrace_command({"verify", out_}).exit_code, 0);
}

// The keys of a JSON object have no order.
TEST_F(PackCoco, TakesTheListsInAnyOrderAndNoKeypointsWhereThereAreNone) {
  const Result result = pack_text("{\"categories\":[" + coco_category() + "],\"annotations\":[" +
                                  R"({"category_id":9,"bbox":[1,2,3,4],"image_id":5}],)"
                                  R"("images":[{"id":5,"file_name":"b.jpg"}]})");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  const auto reader = open_dataset(out_)->make_reader();
  const Record record = reader->read(0);
  EXPECT_THAT(names_of(record), ElementsAre("image", "label", "path", "width", "height", "image_id",
                                            "boxes", "labels"));
  EXPECT_THAT(values_of<float>(record, "boxes"), ElementsAre(1, 2, 4, 6));
}

TEST_F(PackCoco, AnImageThatIsNotAsItSaysIsLeftOut) {
  const std::string images =
      R"({"id":1,"file_name":"b.jpg","width":24,"height":17},
         {"id":2,"file_name":"deep/a.jpg","width":30,"height":20},
         {"id":3,"file_name":"none.jpg"},{"id":4,"file_name":"c.jpg","width":8})";
  const Result result = pack_text(coco_text(images, "", ""));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("left out 3 files:\n"),
                    HasSubstr("  b.jpg: is 16 high, and its \"height\" is 17\n"),
                    HasSubstr("  deep/a.jpg: is 20 wide, and its \"width\" is 30\n"),
                    HasSubstr("  none.jpg: cannot be read: No such file or directory\n")));
  EXPECT_THAT(contents(out_), ElementsAre("c.jpg -1"));
  const Result none = pack_text(coco_text("", "", ""), {"--force"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("there is no image to pack in " + json_.string()));
}

TEST_F(PackCoco, GoesWithMasksAndShards) {
  for (const auto& [name, width, height] :
       {std::tuple{"b.png", 24, 16}, {"deep/a.png", 20, 30}, {"c.png", 8, 8}})
    write_text(
        folder_ / "masks" / name,
        cli::png_of({{width, height},
                     std::vector<std::uint8_t>(static_cast<std::size_t>(3 * width * height), 7)}));
  const std::string annotations = R"({"image_id":-2,"category_id":90,"bbox":[1,2,3,4]})";
  const Result result = pack_text(coco_text(images_, annotations, categories_),
                                  {"--masks", folder_ / "masks", "--shards", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto reader = open_dataset(out_)->make_reader();
  const Record record = reader->read(1);
  EXPECT_THAT(names_of(record), ElementsAre("image", "label", "path", "width", "height", "image_id",
                                            "boxes", "labels", "mask"));
  EXPECT_THAT(values_of<float>(record, "boxes"), ElementsAre(1, 2, 4, 6));
  EXPECT_TRUE(std::ranges::equal(record["mask"], read_file(folder_ / "masks" / "deep" / "a.png")));
}

TEST_F(PackCoco, IsTheSameWhenItGoesOn) {
  if (!fs::exists("/sys/class/net/lo/mtu"))
    GTEST_SKIP() << "the kernel shows no files of a network's device";
  const std::string annotations =
      R"({"image_id":70,"category_id":18,"bbox":[1,2,3,4]},
         {"image_id":9007199254740993,"category_id":90,"bbox":[1,2,3,5]})";
  const std::string text = coco_text(images_, annotations, categories_);
  ASSERT_EQ(pack_text(text).exit_code, 0);
  const std::vector<std::string> whole = all_bytes(out_);
  fs::remove(out_);
  // This file's length is not its real length, so that reading fails with a system error.
  fs::remove(photos_ / "c.jpg");
  fs::create_symlink("/sys/class/net/lo/mtu", photos_ / "c.jpg");
  EXPECT_THAT(pack_text(text, {"--commit-bytes", "1000"}).err, HasSubstr("c.jpg cannot be read: "));
  EXPECT_EQ(refusal(out_), ErrorCode::incomplete);
  fs::remove(photos_ / "c.jpg");
  write_jpeg(photos_ / "c.jpg", 8, 8);
  // A box with a minimal change.
  std::string changed = text;
  changed.replace(changed.find("2,3,5]"), 6, "2,3,6]");
  EXPECT_THAT(pack_text(changed, {"--resume"}).err,
              HasSubstr("cannot be resumed: it was begun from "));
  const Result resumed = pack_text(text, {"--resume"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("going on behind "));
  EXPECT_EQ(all_bytes(out_), whole);
  EXPECT_THAT(pack_text(text, {"--resume"}).out, HasSubstr("is complete already, with 3 records"));
}

TEST_F(PackCoco, IsNoOutputAndGoesWithNoList) {
  write_text(folder_ / "list.csv", "b.jpg,1\n");
  const std::string text = coco_text(images_, "", "");
  const Result listed = pack_text(text, {"--list", folder_ / "list.csv"});
  EXPECT_EQ(listed.exit_code, 2);
  EXPECT_THAT(listed.err, AllOf(HasSubstr("--coco"), HasSubstr("--list")));
  EXPECT_EQ(pack_text(text, {"--labels", "x"}).exit_code, 2);
  const Result onto = pack(photos_, json_, {"--coco", json_, "--force"});
  EXPECT_EQ(onto.exit_code, 1);
  EXPECT_EQ(fs::file_size(json_), text.size());
  const Result missing = pack(photos_, out_, {"--coco", folder_ / "none.json"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.err, "millrace: " + (folder_ / "none.json").string() +
                             " cannot be read: No such file or directory\n");
  EXPECT_THAT(pack(photos_, out_, {"--coco", photos_}).err,
              HasSubstr(photos_.string() + " cannot be read: Is a directory"));
  EXPECT_FALSE(fs::exists(out_));
}

}  // namespace
}  // namespace millrace
