// SPDX-License-Identifier: Apache-2.0
//
// Batches have the same bytes on one node and on two.
#include <gmock/gmock.h>

#include <set>
#include <sstream>
#include <string>

#include "numa/hash_batches.h"
#include "numa/restricted.h"
#include "numa/two_nodes.h"

namespace millrace {
namespace {

using testing::ControlGroup;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_self;
using ::testing::SizeIs;

class SameBatches : public testing::OnTwoNodes {};

TEST_F(SameBatches, OnOneNodeAndOnTwoForAnyWorkersPrefetchWorldAndResume) {
  const std::string two_nodes = testing::hash_batches();
  const ControlGroup group("one_node", {{"cpuset.cpus", "2-3"}, {"cpuset.mems", "1"}});
  const std::string one_node = run_self(group.enter(), "--batches");
  EXPECT_THAT(two_nodes, HasSubstr(" 2 pools, 4 workers, prefetch 4, world 4\n"));
  EXPECT_THAT(one_node, HasSubstr(" 1 pools, 4 workers, prefetch 4, world 4\n"));
  EXPECT_THAT(one_node, Not(HasSubstr(" 2 pools")));

  std::set<std::string> hashes;
  std::istringstream lines(two_nodes + one_node);
  for (std::string line; std::getline(lines, line);) hashes.insert(line.substr(0, line.find(' ')));
  EXPECT_THAT(hashes, SizeIs(1)) << two_nodes << one_node;
}

}  // namespace
}  // namespace millrace
