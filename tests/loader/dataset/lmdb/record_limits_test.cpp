// SPDX-License-Identifier: Apache-2.0
//
// Entries of an LMDB that refer to a value many times, or have many values.
#include <gmock/gmock.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/lmdb/lmdb_schema.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

std::string little_endian(std::size_t number) {
  std::string bytes;
  for (int n = 0; n < 4; ++n) bytes.push_back(static_cast<char>(number >> 8 * n & 255));
  return bytes;
}

/// A pickled list that refers to the same bytes `count` times.
std::string shared_list(std::size_t bytes, std::size_t count) {
  std::string pickle("\x80\x03](B", 5);
  pickle += little_endian(bytes) + std::string(bytes, 'x') + std::string("q\0", 2);
  for (std::size_t n = 1; n < count; ++n) pickle += std::string("h\0", 2);
  return pickle + "e.";
}

/// A MessagePack array of small integers.
std::string integers(std::size_t count) {
  std::string array = "\xdd";
  const std::string size = little_endian(count);
  array.append(size.rbegin(), size.rend());
  return array + std::string(count, '\x01');
}

std::string refusal(EntryParser& parser, std::string_view entry) {
  std::vector<RecordField> fields;
  return parser.parse("key", std::as_bytes(std::span(entry)), fields).reason();
}

TEST(RecordLimits, SharedBytesCountEachTime) {
  const auto parser = tuples()->make_parser();
  EXPECT_EQ(refusal(*parser, shared_list(300'000, 1)), "");
  EXPECT_EQ(refusal(*parser, shared_list(300'000, 16)), "");
  EXPECT_EQ(refusal(*parser, shared_list(100, 4000)), "");  // less than 1 MiB
  EXPECT_THAT(refusal(*parser, shared_list(300'000, 17)),
              HasSubstr("its fields have 5100000 bytes in all, of 300"));
  EXPECT_THAT(refusal(*parser, shared_list(700'000, 4000)),
              HasSubstr("at most 16 times as many are read"));
}

TEST(RecordLimits, FieldsAreFew) {
  const auto parser = tuples()->make_parser();
  EXPECT_EQ(refusal(*parser, integers(4096)), "");
  EXPECT_EQ(refusal(*parser, integers(4097)),
            "it is a list of 4097; a record has at most 4096 fields");
  EXPECT_EQ(refusal(*parser, integers(16'000'000)),
            "it is a list of 16000000; a record has at most 4096 fields");
  EXPECT_EQ(refusal(*parser, shared_list(700'000, 5000)),
            "it is a list of 5000; a record has at most 4096 fields");
}

TEST(RecordLimits, NumbersInAFieldMayBeMany) {
  const auto parser = tuples()->make_parser();
  // Two fields, of which each has 8 times the bytes of its bools.
  std::string entry = "\x92";
  for (int field = 0; field < 2; ++field) {
    std::string bools = integers(2'000'000);
    std::fill(bools.begin() + 5, bools.end(), '\xc3');
    entry += bools;
  }
  std::vector<RecordField> fields;
  ASSERT_EQ(
      parser->parse("key", std::as_bytes(std::span(std::string_view(entry))), fields).reason(), "");
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields[1].bytes.size(), 16'000'000U);
}

}  // namespace
}  // namespace millrace
