// SPDX-License-Identifier: Apache-2.0
//
// The entropy stage's tables and bytes, compared with a plain form of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/random.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "jpeg/huffman.h"
#include "jpeg/scan_bytes.h"

namespace millrace::jpeg {
namespace {

int below(Random& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

/// Returns a code of symbols that a table of AC coefficients may have, with codes of any length.
HuffmanCode any_code(Random& random, bool for_dc) {
  HuffmanCode code;
  unsigned free = 2;  // free codes at this length
  std::size_t number = 0;
  for (std::size_t length = 0; length < 16 && free > 0; ++length, free *= 2) {
    // The last code stays free, for longer ones.
    const auto wanted = static_cast<unsigned>(below(random, length < 3 ? 2 : 20));
    const unsigned count = std::min({wanted, free - 1, 250U - static_cast<unsigned>(number)});
    code.counts[length] = static_cast<std::uint8_t>(count);
    for (unsigned n = 0; n < count; ++n)
      code.symbols[number++] = static_cast<std::uint8_t>(
          for_dc ? below(random, 12)
                 : below(random, 16) << 4 | (below(random, 8) == 0 ? 0 : 1 + below(random, 11)));
    free -= count;
  }
  return code;
}

/// A symbol read bit by bit (T.81, F.16).
struct PlainSymbol {
  int symbol = -1;
  int length = 0;
};
PlainSymbol read_symbol(const HuffmanCode& code, std::uint64_t bits) {
  int value = 0;
  int first = 0;
  std::size_t number = 0;
  for (int length = 1; length <= 16; ++length) {
    const int count = code.counts[static_cast<std::size_t>(length - 1)];
    value = value * 2 + static_cast<int>(bits >> (64 - length) & 1);
    if (value - first < count)
      return {code.symbols[number + static_cast<std::size_t>(value - first)], length};
    number += static_cast<std::size_t>(count);
    first = (first + count) * 2;
  }
  return {};
}

int plain_value(std::uint64_t bits, int length) {
  if (length == 0) return 0;
  const auto stored = static_cast<int>(bits >> (64 - length));
  return stored < 1 << (length - 1) ? stored - (1 << length) + 1 : stored;
}

TEST(HuffmanTables, LongCodesAreFound) {
  Random random(1, 0);
  auto table = std::make_unique<DcTable>();
  for (int n = 0; n < 200; ++n) {
    const HuffmanCode code = any_code(random, true);
    ASSERT_TRUE(table->set(code));
    for (int draw = 0; draw < 500; ++draw) {
      const std::uint64_t bits = std::uint64_t{random()} << 32 | random();
      const PlainSymbol plain = read_symbol(code, bits);
      int length = 0;
      ASSERT_EQ(table->long_codes.find(bits, 1, length), plain.symbol);
      if (plain.symbol < 0) continue;
      ASSERT_EQ(length, plain.length);
      ASSERT_EQ(table->long_codes.find(bits, plain.length, length), plain.symbol);
      const std::uint32_t entry = table->entries[bits >> (64 - DcTable::index_bits)];
      if (plain.length > DcTable::index_bits)
        ASSERT_EQ(entry, 0U);
      else
        ASSERT_EQ(entry, static_cast<unsigned>(plain.symbol << 8 | (plain.length + plain.symbol)));
    }
  }
}

TEST(HuffmanTables, AnEntryOfCoefficientsIsWhatTheirBitsSay) {
  Random random(2, 0);
  auto table = std::make_unique<AcTable>();
  for (int n = 0; n < 100; ++n) {
    const HuffmanCode code = any_code(random, false);
    ASSERT_TRUE(table->set(code));
    for (std::uint64_t index = 0; index < table->entries.size(); ++index) {
      const std::uint64_t bits = index << (64 - AcTable::index_bits);
      const PlainSymbol plain = read_symbol(code, bits);
      const std::uint32_t entry = table->entries[index];
      const int value_bits = plain.symbol & 15;
      const auto taken = static_cast<unsigned>(plain.length + value_bits);
      const auto moved = static_cast<unsigned>(plain.symbol >> 4) + 1;
      if (plain.symbol < 0 || plain.length > AcTable::index_bits) {
        ASSERT_EQ(entry, AcTable::long_code);
      } else if (plain.symbol == 0) {
        ASSERT_EQ(entry, AcTable::end << 8 | taken);
      } else if (value_bits > 10 || (value_bits == 0 && plain.symbol != sixteen_zeros)) {
        ASSERT_EQ(entry, AcTable::unsound);
      } else if (taken > AcTable::index_bits) {
        ASSERT_EQ(entry,
                  static_cast<unsigned>(value_bits) << 16 | (AcTable::other + moved) << 8 | taken);
      } else {
        ASSERT_EQ(static_cast<std::int16_t>(entry >> 16),
                  plain_value(bits << plain.length, value_bits));
        ASSERT_EQ(entry & 0xFFFF, moved << 8 | taken);
      }
    }
  }
}

/// Returns the possible entries of a `SkipTable` at an index: with one symbol, with two, and so on,
/// as far as they fit.
std::vector<std::uint32_t> plain_skips(const HuffmanCode& code, std::uint64_t index) {
  std::vector<std::uint32_t> entries;
  constexpr int index_bits = SkipTable::index_bits;
  unsigned place = 0;
  for (int taken = 0; taken < index_bits && place < SkipTable::end;) {
    const PlainSymbol plain = read_symbol(code, index << (64 - index_bits + taken));
    if (plain.symbol < 0 || taken + plain.length > index_bits) break;
    const int value_bits = plain.symbol & 15;
    const bool ends = plain.symbol == 0;
    if (!ends && plain.symbol != 0xF0 && (value_bits == 0 || value_bits > 10)) break;
    taken += plain.length + value_bits;
    place += ends ? SkipTable::end : static_cast<unsigned>(plain.symbol >> 4) + 1;
    if (taken > SkipTable::max_bits || (place >= SkipTable::end && !ends)) break;
    entries.push_back(place << 8 | static_cast<unsigned>(taken));
  }
  return entries;
}

TEST(HuffmanTables, AnEntryOfSkippedSymbolsIsSomeOfThem) {
  Random random(3, 0);
  auto skip = std::make_unique<SkipTable>();
  // Eleven times sixteen zeros are more coefficients than a block has.
  HuffmanCode dense;
  dense.counts[0] = 1;
  dense.symbols[0] = 0xF0;
  int entries = 0;
  int of_all = 0;
  int of_several = 0;
  for (int n = 0; n < 100; ++n) {
    const HuffmanCode code = n == 0 ? dense : any_code(random, false);
    skip->set(code);
    for (std::uint64_t index = 0; index < skip->entries.size(); ++index) {
      const std::vector<std::uint32_t> plain = plain_skips(code, index);
      const std::uint32_t entry = skip->entries[index];
      if (plain.empty()) {
        ASSERT_EQ(entry, SkipTable::other << 8);
        continue;
      }
      ASSERT_THAT(plain, ::testing::Contains(entry)) << index;
      ++entries;
      of_all += entry == plain.back() ? 1 : 0;
      of_several += entry != plain.front() ? 1 : 0;
    }
  }
  // The other entries are those whose next complete symbol does not fit.
  EXPECT_GT(of_all, entries * 9 / 10);
  EXPECT_GT(of_several, entries / 5);
}

TEST(HuffmanTables, WhatIsNoCodeIsRefused) {
  auto dc = std::make_unique<DcTable>();
  auto ac = std::make_unique<AcTable>();
  for (const int codes : {2, 3}) {  // one of two codes is all ones
    HuffmanCode of_one_bit;
    of_one_bit.counts[0] = static_cast<std::uint8_t>(codes);
    EXPECT_FALSE(dc->set(of_one_bit));
    EXPECT_FALSE(ac->set(of_one_bit));
  }
  HuffmanCode wide_difference;
  wide_difference.counts[3] = 1;
  wide_difference.symbols[0] = 12;
  EXPECT_FALSE(dc->set(wide_difference));
  EXPECT_TRUE(ac->set(wide_difference));
}

TEST(ScanBytes, AreTheFilesWithoutStuffing) {
  Random random(4, 0);
  ScanBytes bytes;
  for (const std::size_t length : {0U, 1U, 7U, 8191U, 8192U, 8193U, 60'000U}) {
    for (const int one_in : {2, 50}) {
      std::vector<std::uint8_t> plain(length);
      std::vector<std::uint8_t> stuffed;
      for (std::uint8_t& byte : plain) {
        byte = static_cast<std::uint8_t>(below(random, one_in) == 0 ? 0xFF : below(random, 255));
        stuffed.push_back(byte);
        if (byte == 0xFF) stuffed.push_back(0);
      }
      stuffed.insert(stuffed.end(), {0xFF, 0xD9});
      bytes.begin(stuffed);
      const std::uint8_t* next = bytes.first();
      for (std::size_t at = 0; at < length; ++at) {
        ASSERT_TRUE(bytes.ensure(next));
        ASSERT_EQ(*next++, plain[at]) << at << " of " << length;
      }
      ASSERT_TRUE(bytes.ensure(next));
      EXPECT_EQ(bytes.bits_left(next), 0);
      EXPECT_EQ(bytes.stray_before(0xD9, next, 0), std::size_t{0});
      EXPECT_EQ(bytes.stray_before(0xD9, next, 7), std::size_t{0});
      if (length > 0) {
        EXPECT_EQ(bytes.stray_before(0xD9, next, 8), std::size_t{1});
      }
      if (length > 1) {
        EXPECT_EQ(bytes.stray_before(0xD9, next, 17), std::size_t{2});
      }
      EXPECT_EQ(bytes.stray_before(0xD0, next, 0), std::nullopt);
      EXPECT_EQ(bytes.stray_before(0xD9, next + 1, 7), std::nullopt);
      next += 9;
      EXPECT_FALSE(bytes.ensure(next));
    }
  }
}

TEST(ScanBytes, ShowNoEarlierScanAfterTheEnd) {
  const std::vector<std::uint8_t> earlier(3 * ScanBytes::window_bytes, 0xA5);
  const std::vector<std::uint8_t> scan(1000, 0x5A);
  ScanBytes bytes;
  const std::uint8_t* next = nullptr;
  bytes.begin(earlier);
  next = bytes.limit();
  ASSERT_TRUE(bytes.ensure(next));
  bytes.begin(scan);
  const std::uint8_t* const end = bytes.first() + scan.size();
  next = end + ScanBytes::past_end;
  ASSERT_TRUE(bytes.ensure(next));
  EXPECT_EQ(std::count(end, next + ScanBytes::reach, 0),
            static_cast<std::ptrdiff_t>(ScanBytes::past_end + ScanBytes::reach));
  ++next;
  EXPECT_FALSE(bytes.ensure(next));
}

TEST(ScanBytes, GoOnBehindAMarker) {
  const std::vector<std::uint8_t> scan{1, 2, 0xFF, 0xD0, 3, 0xFF};
  ScanBytes bytes;
  bytes.begin(scan);
  EXPECT_EQ(bytes.stray_before(0xD0, bytes.first() + 2, 0), std::size_t{0});
  bytes.pass_marker();
  EXPECT_EQ(*bytes.first(), 3);
  EXPECT_EQ(bytes.stray_before(0xD9, bytes.first() + 1, 0),
            std::nullopt);  // the end of the file is not a marker
}

}  // namespace
}  // namespace millrace::jpeg
