// SPDX-License-Identifier: Apache-2.0
#include "page/machine_table.h"

#include <fmt/format.h>

namespace millrace::cli {

HtmlTable machine_table(const Machine& machine, std::optional<double> steal) {
  HtmlTable table{.title = "Machine",
                  .rows = {{"Processor", machine.cpu},
                           {"Usable cores", fmt::format("{}", machine.cores)},
                           {"NUMA nodes", fmt::format("{}", machine.numa_nodes)},
                           {"Kernel", machine.kernel},
                           {"Compiler", machine.compiler},
                           {"millrace commit", machine.commit}}};
  if (steal)
    table.rows.push_back({"Time given to other machines", fmt::format("{:.1f}%", 100 * *steal)});
  for (const auto& [name, version] : machine.libraries) table.rows.push_back({name, version});
  return table;
}

}  // namespace millrace::cli
