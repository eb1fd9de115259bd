// SPDX-License-Identifier: Apache-2.0
//
// Tests of the encoding of labels in other programs' LMDB files.
#include "dataset/lmdb/label_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace millrace {
namespace {

/// Returns a label as raw bytes, in either byte order.
template <typename Integer>
std::string stored(std::int64_t label, bool is_little_endian) {
  const auto number = static_cast<Integer>(label);
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  if (!is_little_endian) std::ranges::reverse(bytes);
  return bytes;
}

/// Returns labels that were stored and read again. The encoding is guessed from all of them.
template <typename Integer>
std::vector<std::int64_t> read_again(const std::vector<std::int64_t>& labels,
                                     bool is_little_endian) {
  std::vector<std::string> values;
  for (const std::int64_t label : labels)
    values.push_back(stored<Integer>(label, is_little_endian));
  const LabelValues parser(values);
  std::vector<std::int64_t> found;
  for (const std::string& value : values) {
    std::int64_t number = 0;
    RecordField field{};
    EXPECT_TRUE(parser.read(std::as_bytes(std::span(value)), number, field).is_ok());
    EXPECT_EQ(field.bytes.size(), sizeof number);
    found.push_back(number);
  }
  return found;
}

TEST(LabelValues, ByteOrderIsThatOfTheMajority) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int32_t>::min();
  const std::vector<std::vector<std::int64_t>> samples = {
      {0, 1, 2, 3, 4, 5, 6, 7},       {3, 1, -100, 4, 1, 5, 9, 2},  // one label means "ignore"
      {-100, -100, -100, 4, 1, -100},                               // most of them do
      {0, 999, 17, 256, 65536, -1},  // the bytes of -1 and 0 are the same in both orders
      {5, 0x01000000, 7, 3},         // a large number that is small in the other order
      {5, most, 7, 3, least, 2, 4}};
  for (const std::vector<std::int64_t>& labels : samples)
    for (const bool is_little_endian : {true, false}) {
      EXPECT_EQ(read_again<std::int32_t>(labels, is_little_endian), labels) << is_little_endian;
      EXPECT_EQ(read_again<std::int64_t>(labels, is_little_endian), labels) << is_little_endian;
    }
  const std::vector<std::int64_t> longest = {3, std::numeric_limits<std::int64_t>::min(), 1, 7};
  for (const bool is_little_endian : {true, false})
    EXPECT_EQ(read_again<std::int64_t>(longest, is_little_endian), longest) << is_little_endian;
}

TEST(LabelValues, NegativeNumbersDifferFromText) {
  for (const std::vector<std::int64_t>& labels :
       {std::vector<std::int64_t>{-1, -1, -1}, {-1}, {-2, -1, -2}})
    for (const bool is_little_endian : {true, false}) {
      EXPECT_EQ(read_again<std::int32_t>(labels, is_little_endian), labels) << is_little_endian;
      EXPECT_EQ(read_again<std::int64_t>(labels, is_little_endian), labels) << is_little_endian;
    }
  const std::vector<std::string> words = {"na\xC3\xAF", "p\xC3\xA9t", "\xF4\x8F\xBF\xBF"};
  const LabelValues parser(words);
  for (const std::string& word : words) {
    std::int64_t number = 0;
    RecordField field{};
    const auto bytes = std::as_bytes(std::span(word));
    EXPECT_TRUE(parser.read(bytes, number, field).is_ok());
    EXPECT_TRUE(std::ranges::equal(field.bytes, bytes)) << word;
  }
}

TEST(LabelValues, ATieIsLittleEndian) {
  EXPECT_EQ(read_again<std::int32_t>({1, 0x01000000}, true),
            (std::vector<std::int64_t>{1, 0x01000000}));
  EXPECT_EQ(read_again<std::int32_t>({0}, false), std::vector<std::int64_t>{0});
}

}  // namespace
}  // namespace millrace
