// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/mask_decoder.h>

#include <new>
#include <vector>

#include "decode/png/chunks.h"
#include "support/counting_malloc.h"

namespace millrace {
namespace {

// Lack of memory does not make a mask bad.
TEST(MaskMemory, TooLittleIsAnErrorAndNoBadMask) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  const std::vector<std::uint8_t> rows(301 * 200);
  const testing::Bytes mask =
      testing::png({testing::header(300, 200, 8, 0),
                    testing::chunk("IDAT", testing::deflated(rows)), testing::end_chunk});
  MaskDecoder decoder(std::make_shared<DecodeBudget>());
  MaskView view;
  const auto decode_without = [&](std::size_t bytes) {
    const testing::NoMemory little(bytes);
    return decoder.decode(mask, {300, 200}, view).is_ok();
  };
  EXPECT_THROW((void)decode_without(100'000), std::bad_alloc);  // the values
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(decoder.decode(mask, {300, 200}, view).is_ok());
    EXPECT_THROW((void)decode_without(30'000), std::bad_alloc);  // the history window of zlib
    EXPECT_THROW((void)decode_without(1'000), std::bad_alloc);   // libpng's own
    EXPECT_EQ(view.values, nullptr);
    EXPECT_TRUE(decode_without(100'000));  // the values' memory is kept
  }
}

}  // namespace
}  // namespace millrace
