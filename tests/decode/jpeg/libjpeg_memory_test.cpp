// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <new>

#include "jpeg/libjpeg.h"
#include "support/counting_malloc.h"

namespace millrace {
namespace {

TEST(LibjpegMemory, IsFreedIfTheConstructorThrows) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  // libjpeg allocates a small object, then larger ones. So each of them fails once.
  int thrown = 0;
  int made = 0;
  std::int64_t leaked = 0;
  for (std::size_t refused_from = 8; refused_from < 4096; refused_from += 8) {
    const std::int64_t before = testing::held_bytes();
    try {
      const testing::NoMemory little(refused_from);
      const Libjpeg libjpeg(1);
      ++made;
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
    leaked += testing::held_bytes() - before;
  }
  EXPECT_GT(thrown, 0);
  EXPECT_GT(made, 0);
  EXPECT_EQ(leaked, 0);
}

}  // namespace
}  // namespace millrace
