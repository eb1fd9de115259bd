// SPDX-License-Identifier: Apache-2.0
// Prints the usable cores and workers that this process sees, for runtime_test to run with fewer
// processors.
#include <millrace/runtime.h>

#include <cstdio>

int main() {
  const millrace::Topology topology = millrace::read_topology();
  std::size_t cpus = 0;
  for (const millrace::NumaNode& node : topology.nodes) cpus += node.cpus.size();
  std::printf("%u %zu %u\n", topology.usable_cpus, cpus, millrace::Runtime().workers());
}
