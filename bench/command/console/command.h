// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace millrace::cli {

/// A sub-command of `millrace`. Each has a source file of the same name with a function that adds
/// it to the command line.
struct Command {
  CLI::App* arguments;
  /// Runs the sub-command with the parsed arguments. Returns the exit code. An exception is printed
  /// and gives exit code 1.
  std::function<int()> run;
};

Command add_bench(CLI::App& millrace);
Command add_decode(CLI::App& millrace);
Command add_diagnose(CLI::App& millrace);
Command add_index(CLI::App& millrace);
Command add_inspect(CLI::App& millrace);
Command add_pack(CLI::App& millrace);
Command add_recode(CLI::App& millrace);
Command add_recipe_command(CLI::App& millrace);
Command add_topology(CLI::App& millrace);
Command add_tune(CLI::App& millrace);
Command add_verify(CLI::App& millrace);
Command add_view(CLI::App& millrace);

}  // namespace millrace::cli
