// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/detail/numa_memory.h>
#include <millrace/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace millrace {
namespace {

/// Pages of the range that the process holds in memory.
std::size_t resident_pages(const Memory& memory) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((memory.bytes() + page - 1) / page);
  EXPECT_EQ(mincore(memory.data(), memory.bytes(), resident.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(resident.begin(), resident.end(), [](unsigned char one) { return one & 1; }));
}

/// Whether a mapping begins at this address.
bool is_mapped(const std::byte* data) {
  unsigned char resident = 0;
  return mincore(const_cast<std::byte*>(data), 1, &resident) == 0;
}

TEST(NumaMemory, HasAllItsPagesInPlaceZeroedAndWritable) {
  const NumaNode node = read_topology().nodes.front();
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4096}, std::size_t{100'001}, std::size_t{9} << 20}) {
    const Memory memory = allocate_on_node(bytes, node);
    ASSERT_EQ(memory.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 4096, 0U);
    EXPECT_EQ(resident_pages(memory), (bytes + 4095) / 4096) << bytes;
    EXPECT_TRUE(std::all_of(memory.data(), memory.data() + bytes,
                            [](std::byte byte) { return byte == std::byte{0}; }));
    std::memset(memory.data(), 1, bytes);
  }
}

TEST(NumaMemory, LiesOnItsNodeWhereTheSystemTells) {
  for (const NumaNode& node : read_topology().nodes) {
    const Memory memory = allocate_on_node(300'000, node);
    const std::optional<std::size_t> elsewhere = pages_elsewhere(memory, node.number);
    if (!elsewhere) GTEST_SKIP() << "this system does not tell where pages lie";
    EXPECT_EQ(elsewhere, 0U) << "node " << node.number;
    EXPECT_EQ(pages_elsewhere(memory, node.number + 1), (300'000U + 4095) / 4096)
        << "all of it lies elsewhere for another node";
  }
}

TEST(NumaMemory, ANodeThatDoesNotExistIsNoError) {
  const Memory memory = allocate_on_node(5000, {.number = 1000, .cpus = {100'000}});
  EXPECT_EQ(resident_pages(memory), 2U);
  const std::optional<std::size_t> elsewhere = pages_elsewhere(memory, 1000);
  if (elsewhere) {
    EXPECT_EQ(elsewhere, 2U);
  }
}

TEST(NumaMemory, IsNotKnownBeforeItWasWritten) {
  const Memory memory = allocate_pages(10'000);
  EXPECT_EQ(pages_elsewhere(memory, 0), std::nullopt);
}

TEST(NumaMemory, FreesItself) {
  const std::byte* data = nullptr;
  {
    const Memory memory = allocate_on_node(std::size_t{64} << 20, read_topology().nodes.front());
    data = memory.data();
    EXPECT_TRUE(is_mapped(data));
  }
  EXPECT_FALSE(is_mapped(data));
}

TEST(NumaMemory, NoBytesAreNoMemory) {
  EXPECT_EQ(allocate_on_node(0, read_topology().nodes.front()).bytes(), 0U);
  EXPECT_EQ(pages_elsewhere(Memory(), 0), 0U);
}

TEST(NumaMemory, SaysWhenThereIsNoMemory) {
  try {
    (void)allocate_on_node(std::size_t{1} << 60, read_topology().nodes.front());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("1152921504606846976 bytes"));
  }
}

}  // namespace
}  // namespace millrace
