// SPDX-License-Identifier: Apache-2.0
//
// Randomly damaged values of each format, read by the parsers of all formats. The fuzzer
// values_fuzz does the same for longer.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "loader/dataset/values/read_anything.h"
#include "loader/dataset/values/rendered.h"
#include "loader/dataset/values/wire_text.h"

namespace millrace {
namespace {

using testing::bytes_field;
using testing::literal;

const std::vector<std::string>& samples() {
  static const std::vector<std::string> all = {
      literal("\x80\x05\x95\x0d\0\0\0\0\0\0\0C\x05\xff\xd8"
              "abc\x94K\x05\x86\x94."),
      literal("(dp0\nS'image'\np1\nS'a\\x00'\np2\nsV\\u6f22\np3\nL5L\nsF1.5\nI01\ns."),
      literal("\x82\xa5image\xc5\0\x03"
              "abc\xa5label\x93\xd2\xff\xff\xff\xfe\xca\0\0\0\0\xc3"),
      literal("\x08\1\x10\1\x18\2\x22\2ab\x28\7\x38\0"),
      literal("\x08\1\x10\1\x18\2\x32\4\0\0\0\0\x35\0\0\x80?\x28\7"),
      bytes_field(1, literal("\x08\1\x10\4\x32\1a")) + bytes_field(1, literal("\x10\2\x20\7"))};
  return all;
}

TEST(DamagedValues, AreReadWithinTheirLimitsOrRefused) {
  std::mt19937 random(11);
  testing::AnyReader reader;
  for (int n = 0; n < 60'000; ++n) {
    std::string damaged = samples()[random() % samples().size()];
    for (auto damages = 1 + random() % 4; damages > 0; --damages) {
      const std::size_t at = random() % damaged.size();
      const auto byte = static_cast<char>(random());
      if (random() % 2 == 0) {
        damaged[at] = byte;
      } else {
        damaged.insert(at, 1, byte);
      }
    }
    const auto kind = static_cast<std::uint8_t>(random() % testing::AnyReader::kinds);
    ASSERT_NO_THROW(reader.read(kind, testing::bytes_of(damaged)))
        << int{kind} << " " << testing::hexadecimal(damaged);
  }
}

}  // namespace
}  // namespace millrace
