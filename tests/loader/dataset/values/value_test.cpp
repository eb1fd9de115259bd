// SPDX-License-Identifier: Apache-2.0
//
// The accessors of `Values`.
#include "dataset/values/value.h"

#include <gmock/gmock.h>

#include "dataset/values/pickle.h"
#include "loader/dataset/values/rendered.h"

namespace millrace {
namespace {

using testing::bytes_of;

TEST(Value, ADictionaryFindsTextsAndBytesAndTheLastOfTwo) {
  Values values;
  PickleReader reader;
  const std::string pickle = "}(\x8c\x05imageK\x01U\x05labelK\x02\x8c\x05imageK\x03K\x04Nu.";
  ASSERT_EQ(reader.read(bytes_of(pickle), values).reason(), "");
  const Value& root = values.root();
  ASSERT_EQ(values.size(root), 4U);
  EXPECT_EQ(std::get<std::int64_t>(*values.find(root, "image")), 3);
  EXPECT_EQ(std::get<std::int64_t>(*values.find(root, "label")), 2);
  EXPECT_EQ(values.find(root, "imag"), nullptr);
  EXPECT_EQ(values.find(values.entry(root, 0).first, "image"), nullptr);
  EXPECT_TRUE(is_text(values.entry(root, 1).first, "label"));
  EXPECT_FALSE(is_text(values.entry(root, 3).first, "label"));
}

TEST(Value, IsDescribed) {
  Values values;
  PickleReader reader;
  const auto of = [&](std::string_view pickle) {
    return reader.read(bytes_of(pickle), values).is_ok() ? described(values.root()) : "bad";
  };
  EXPECT_EQ(of("N."), "None");
  EXPECT_EQ(of("\x88."), "a bool");
  EXPECT_EQ(of("K\x01."), "an integer");
  EXPECT_EQ(of("F1\n."), "a float");
  EXPECT_EQ(of("C\x01z."), "bytes");
  EXPECT_EQ(of("\x8c\x01z."), "text");
  EXPECT_EQ(of("NN\x86."), "a tuple of 2");
  EXPECT_EQ(of("(NNNl."), "a list of 3");
  EXPECT_EQ(of("(NNd."), "a dictionary of 1");
}

TEST(Value, NamesAreShownWithoutControlCharacters) {
  EXPECT_EQ(shown("a\x1b[1m\xff\n"), "a?[1m??");
  EXPECT_EQ(shown(std::string(300, 'x')), std::string(200, 'x'));
}

TEST(Value, Utf8) {
  for (const char* text :
       {"", "abc", "\xc3\xa9", "\xe6\xbc\xa2", "\xf0\x9f\x8e\xbb", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text : {"\xff", "\xc3", "\xc3(", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                           "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\x80"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

}  // namespace
}  // namespace millrace
