// SPDX-License-Identifier: Apache-2.0
#include "dataset/files/path_table.h"

#include <gtest/gtest.h>
#include <millrace/random.h>

#include <string>
#include <vector>

namespace millrace {
namespace {

TEST(PathTable, GivesWhatWasAdded) {
  Random random(3, 0);
  PathTable table;
  std::vector<std::string> paths;
  for (int number = 0; number < 1000; ++number) {
    std::string path = paths.empty() || random.below(10) == 0
                           ? std::string(random.below(5000), 'p')
                           : paths.back().substr(0, random.below(paths.back().size() + 1));
    path += std::to_string(random.below(50));
    table.add(path);
    paths.push_back(std::move(path));
  }
  table.shrink();
  ASSERT_EQ(table.size(), paths.size());
  for (std::size_t number = 0; number < paths.size(); ++number)
    EXPECT_EQ(table[number], paths[number]) << number;
}

TEST(PathTable, TakesLittleForNamesAsImagenetHasThem) {
  PathTable table;
  constexpr std::uint64_t paths = 13'000;
  for (std::uint64_t number = 0; number < paths; ++number) {
    const std::string folder = "n0" + std::to_string(1440764 + number / 1300 * 10'000);
    table.add(folder + "/" + folder + "_" + std::to_string(10'000 + number % 1300 * 7) + ".JPEG");
  }
  table.shrink();
  EXPECT_LT(table.bytes(), 18 * paths);
}

}  // namespace
}  // namespace millrace
