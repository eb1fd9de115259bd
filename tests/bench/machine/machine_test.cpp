// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.h"

#include <gmock/gmock.h>
#include <hwloc.h>

namespace millrace::cli {
namespace {

// Its API's version, 2.8.0, is another.
TEST(Machine, NamesTheVersionOfHwlocItself) {
  EXPECT_THAT(describe_machine({}).libraries,
              ::testing::Contains(::testing::Pair("hwloc", HWLOC_VERSION)));
}

}  // namespace
}  // namespace millrace::cli
