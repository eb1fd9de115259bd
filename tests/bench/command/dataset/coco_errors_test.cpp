// SPDX-License-Identifier: Apache-2.0
//
// Texts that are not COCO files: each gives an error with the problem and its place.
#include <gmock/gmock.h>
#include <millrace/error.h>

#include <string>
#include <utility>
#include <vector>

#include "bench/command/dataset/coco_text.h"
#include "command/dataset/annotations/coco.h"
#include "support/packs.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;
using namespace testing;

class CocoErrors : public ::testing::Test {
 protected:
  /// Error message without the file's name; "" if reading succeeds.
  std::string error_of(const std::string& text) const {
    write_text(json_, text);
    try {
      (void)cli::read_coco(json_);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      const std::string message = error.what();
      EXPECT_THAT(message, HasSubstr(json_.string()));
      EXPECT_THAT(message, SizeIs(Le(json_.string().size() + 400)));
      const std::size_t name = message.find(json_.string() + ": ");
      return name == std::string::npos ? message : message.substr(json_.string().size() + 2);
    }
  }

  const TemporaryFolder folder_;
  const fs::path json_ = folder_ / "instances.json";
};

TEST_F(CocoErrors, OfTheWhole) {
  const std::string sound = coco_text(coco_image(), coco_annotation(), coco_category());
  ASSERT_EQ(error_of(sound), "");
  ASSERT_EQ(error_of("\xEF\xBB\xBF" + sound + " \n"), "");
  EXPECT_EQ(error_of("7"), "it is 7, must be an object in { }");
  EXPECT_EQ(error_of("[]"), "it is a list, must be an object in { }");
  EXPECT_EQ(error_of("{}"), "it has no \"images\"");
  EXPECT_EQ(error_of(R"({"images":[],"annotations":[]})"), "it has no \"categories\"");
  EXPECT_EQ(error_of(R"({"images":{}})"), "\"images\" is an object, must be a list");
  EXPECT_EQ(error_of(R"({"annotations":null})"), "\"annotations\" is null, must be a list");
  EXPECT_EQ(error_of(R"({"images":[],"images":[]})"), "\"images\" comes twice");
  EXPECT_EQ(error_of(""), "it is not valid JSON: it goes wrong at byte 1");
  EXPECT_THAT(error_of(sound + "{"), HasSubstr("it is not valid JSON: it goes wrong at byte "));
  EXPECT_THAT(error_of(std::string("\xff\xfe\0", 3) + sound), HasSubstr("it is not valid JSON: "));
}

TEST_F(CocoErrors, OfImages) {
  const auto expect = [&](const std::string& images, const std::string& what) {
    EXPECT_EQ(error_of(coco_text(images, "", "")), what);
  };
  const std::string good = coco_image() + ",";
  expect(good + "5", "images[1] is 5, must be an object");
  expect(good + "[]", "images[1] is a list, must be an object");
  expect(good + R"({"file_name":"a"})", "images[1]: it has no \"id\"");
  expect(good + R"({"id":1})", "images[1]: it has no \"file_name\"");
  expect(R"({"id":"1","file_name":"a"})", "images[0]: \"id\" is \"1\", must be an integer");
  expect(R"({"id":1.0,"file_name":"a"})", "images[0]: \"id\" is 1.0, must be an integer");
  expect(R"({"id":9223372036854775808,"file_name":"a"})",
         "images[0]: \"id\" is 9223372036854775808, must be an integer");
  expect(R"({"id":[1],"file_name":"a"})", "images[0]: \"id\" is a list, must be an integer");
  expect(good + coco_image(), "images[1]: \"id\" is 5, which images[0] has, too");
  expect(R"({"id":1,"id":1,"file_name":"a"})", "images[0]: \"id\" comes twice");
  for (const char* path : {R"("/a.jpg")", R"("../a.jpg")", R"("a/../../b.jpg")", R"("")", R"("a/")",
                           R"("a\u0000.jpg")", "3", "null"})
    expect(std::string(R"({"id":1,"file_name":)") + path + "}",
           std::string("images[0]: \"file_name\" is ") + path +
               ", must be a relative path below the folder of the images");
  expect(coco_image(R"(,"width":0)"), "images[0]: \"width\" is 0, must be an integer from 1 up");
  expect(coco_image(R"(,"height":2.5)"),
         "images[0]: \"height\" is 2.5, must be an integer from 1 up");
  expect(R"({"id":1,"file_name":"/)" + std::string(1000, 'x') + "\"}",
         "images[0]: \"file_name\" is \"/" + std::string(195, 'x') +
             "..., must be a relative path below the folder of the images");
}

TEST_F(CocoErrors, OfAnnotations) {
  const auto expect = [&](const std::string& annotation, const std::string& what) {
    EXPECT_EQ(
        error_of(coco_text(coco_image(), coco_annotation() + "," + annotation, coco_category())),
        "annotations[1]: " + what);
  };
  const auto with_box = [](const std::string& box) {
    return R"({"image_id":5,"category_id":9,"bbox":)" + box + "}";
  };
  const std::string box = "4 numbers of float32: x, y, width, height";
  expect(R"({"category_id":9,"bbox":[1,2,3,4]})", "it has no \"image_id\"");
  expect(R"({"image_id":5,"bbox":[1,2,3,4]})", "it has no \"category_id\"");
  expect(R"({"image_id":5,"category_id":9})", "it has no \"bbox\"");
  expect(R"({"image_id":6,"category_id":9,"bbox":[1,2,3,4]})",
         "\"image_id\" is 6, must be the \"id\" of an image in \"images\"");
  expect(R"({"image_id":5,"category_id":8,"bbox":[1,2,3,4],"iscrowd":1})",
         "\"category_id\" is 8, must be the \"id\" of a category in \"categories\"");
  expect(with_box("7"), "\"bbox\" is 7, must be " + box);
  expect(with_box("{}"), "\"bbox\" is an object, must be " + box);
  expect(with_box("[1,2,3]"), "\"bbox\" is [1,2,3], must be " + box);
  expect(with_box("[1,2,3,4,5]"), "\"bbox\" has more than 4 numbers, must be " + box);
  expect(with_box("[1,null,3,4]"), "\"bbox[1]\" is null, must be a number");
  expect(with_box("[1,2,[3],4]"), "\"bbox[2]\" is a list, must be a number");
  expect(with_box("[1,2,3,1e39]"), "\"bbox\" is [1,2,3,1e+39], must be " + box);
  expect(with_box("[3e38,2,3e38,1]"), "\"bbox\" is [3e+38,2,3e+38,1], must be " + box);
  expect(coco_annotation(R"(,"iscrowd":2)"), "\"iscrowd\" is 2, must be 0 or 1");
  expect(coco_annotation(R"(,"iscrowd":"1")"), "\"iscrowd\" is \"1\", must be 0 or 1");
  const std::string keypoints = "three numbers of float32 for each keypoint: x, y, visibility";
  expect(coco_annotation(R"(,"keypoints":[1,2])"), "\"keypoints\" is [1,2], must be " + keypoints);
  expect(coco_annotation(R"(,"keypoints":null)"), "\"keypoints\" is null, must be " + keypoints);
  expect(coco_annotation(R"(,"keypoints":[1,2,-1e39])"),
         "\"keypoints\" is [1,2,-1e+39], must be " + keypoints);

  EXPECT_EQ(error_of(coco_text(coco_image(),
                               coco_annotation(R"(,"keypoints":[1,2,0])") + "," +
                                   coco_annotation(R"(,"keypoints":[1,2,0,3,4,0])"),
                               coco_category())),
            "annotations[1]: \"keypoints\" has 2 keypoints, and those before have 1");
  EXPECT_EQ(error_of(coco_text(coco_image(), with_box("[1,2,3,1e999]"), coco_category())),
            "it is not valid JSON: 1e999 is not finite, in annotations[0], \"bbox\"");
  EXPECT_THAT(error_of(coco_text(coco_image(), with_box("[1,2,3,NaN]"), coco_category())),
              HasSubstr(", in annotations[0], \"bbox\""));
}

TEST_F(CocoErrors, OfCategories) {
  const auto expect = [&](const std::string& categories, const std::string& what) {
    EXPECT_EQ(error_of(coco_text("", "", categories)), what);
  };
  expect(R"({"id":1})", "categories[0]: it has no \"name\"");
  expect(R"({"id":1,"name":2})", "categories[0]: \"name\" is 2, must be a text");
  expect(coco_category() + "," + coco_category(),
         "categories[1]: \"id\" is 9, which another category has, too");
}

// A few bytes of JSON must not take much memory.
TEST_F(CocoErrors, WhatWouldTakeMuchMemory) {
  std::string numbers = "[0";
  for (int number = 1; number < 3000; ++number) numbers += ",0";
  const std::string most = coco_annotation(",\"keypoints\":" + numbers + "]");
  EXPECT_THAT(error_of(coco_text(coco_image(), coco_annotation(",\"keypoints\":" + numbers + ",0]"),
                                 coco_category())),
              HasSubstr("annotations[0]: \"keypoints\" has more than 3000 numbers, "));
  const auto of_boxes = [&](int count) {
    std::string annotations = most;
    for (int box = 1; box < count; ++box) annotations += "," + coco_annotation();
    return error_of(coco_text(coco_image(), annotations, coco_category()));
  };
  // 64 MiB hold 5581 boxes of 12,024 bytes.
  EXPECT_EQ(of_boxes(5581), "");
  EXPECT_EQ(of_boxes(5582), "images[0]: its boxes with 1000 keypoints each take more than 64 MiB");
  EXPECT_THAT(error_of("{\"info\":\"" + std::string(std::size_t{5} << 20, 'x') + "\"}"),
              HasSubstr(" has a value of more than 4 MiB"));
}

TEST_F(CocoErrors, ATextThatIsCutShortAnywhere) {
  const std::string sound =
      coco_text(coco_image(R"(,"width":24)"), coco_annotation(R"(,"keypoints":[1,-2,3e1])"),
                coco_category(R"(,"supercategory":"\u00e9")"));
  for (std::size_t bytes = 0; bytes < sound.size(); ++bytes)
    EXPECT_THAT(error_of(sound.substr(0, bytes)), HasSubstr("it is not valid JSON: "))
        << sound.substr(0, bytes);
}

TEST_F(CocoErrors, WhatIsNestedDeeply) {
  constexpr int levels = 100'000;
  const auto nested = [](const std::string& text, const std::string& more) {
    std::string all;
    for (int level = 0; level < levels; ++level) all += text;
    return all + more;
  };
  for (const std::string& value :
       {nested("[", ""), nested("{\"images\":", ""), nested("[{\"bbox\":", ""),
        nested("[", std::string(levels, ']'))}) {
    for (const std::string& text :
         {value, "{\"info\":" + value, "{\"images\":" + value, "{\"annotations\":[" + value,
          R"({"annotations":[{"segmentation":)" + value, R"({"annotations":[{"bbox":)" + value,
          R"({"annotations":[{"bbox":[)" + value})
      EXPECT_NE(error_of(text), "") << text.substr(0, 60);
  }
  EXPECT_EQ(error_of(R"({"annotations":[{"segmentation":)" + nested("[", "")),
            "it is nested in more than 64 levels");
  // The maximal depth.
  EXPECT_EQ(error_of("{\"info\":" + std::string(63, '[') + std::string(63, ']') + "," +
                     coco_text(coco_image(), "", "").substr(1)),
            "");
}

}  // namespace
}  // namespace millrace
