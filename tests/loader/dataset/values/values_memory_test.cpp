// SPDX-License-Identifier: Apache-2.0
//
// Counts allocations: once they have read one input, the readers of values take no memory for the
// next one.
#include <gmock/gmock.h>

#include "dataset/values/caffe2_tensors.h"
#include "dataset/values/caffe_datum.h"
#include "dataset/values/msgpack.h"
#include "dataset/values/pickle.h"
#include "loader/dataset/values/rendered.h"
#include "loader/dataset/values/wire_text.h"
#include "support/counting_malloc.h"

namespace millrace {
namespace {

using testing::bytes_of;
using testing::literal;

/// Reads twice, the second time without any memory to allocate.
template <typename Read>
void expect_no_allocation(const Read& read) {
  MILLRACE_NEEDS_COUNTING_MALLOC();
  EXPECT_TRUE(read());
  const testing::NoMemory none;
  EXPECT_TRUE(read());
}

TEST(ValuesMemory, PicklesTakeNoneTheSecondTime) {
  PickleReader reader;
  Values values;
  const std::string pickle = literal(
      "](K\x01U\x02"
      "abq\x01h\x01S'a\\n'\n\x8c\x01z(NNt}e.");
  expect_no_allocation([&] { return reader.read(bytes_of(pickle), values).is_ok(); });
}

TEST(ValuesMemory, MsgpackTakesNoneTheSecondTime) {
  Values values;
  const std::string bytes = literal(
      "\x93\x01\xa2"
      "ab\x81\xc0\x92\x01\x02");
  expect_no_allocation([&] { return read_msgpack(bytes_of(bytes), values).is_ok(); });
}

TEST(ValuesMemory, CaffesMessagesTakeNoneTheSecondTime) {
  CaffeDatum datum;
  std::string message;
  for (const std::uint32_t size : {1U, 2U, 3U}) message += testing::integer_field(size, 1);
  message += testing::float_field(6, 1);
  expect_no_allocation([&] { return datum.read(bytes_of(message)).is_ok(); });
  Caffe2Tensors tensors;
  const std::string record = testing::bytes_field(1, testing::float_field(3, 1));
  expect_no_allocation([&] { return tensors.read(bytes_of(record)).is_ok(); });
}

}  // namespace
}  // namespace millrace
