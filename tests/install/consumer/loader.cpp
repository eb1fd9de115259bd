// SPDX-License-Identifier: Apache-2.0
#include <millrace/runtime.h>
#include <millrace/sampler.h>

#include <set>

int main() {
  const millrace::Sampler sampler(millrace::Order::shuffled(), 100, 7);
  std::set<std::uint64_t> epoch;
  for (std::uint64_t position = 0; position < 100; ++position) epoch.insert(sampler(position));
  return epoch.size() == 100 && millrace::make_runtime({.workers = 2})->workers() == 2 ? 0 : 1;
}
