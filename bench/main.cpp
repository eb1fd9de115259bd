// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "command.h"

namespace {

constexpr int usage_error = 2;

/// Opens what is closed of the standard streams. Else a dataset's file would get the number, and
/// what is said to a person would go into it. Writing to standard output stays an error.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      (void)open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

int run(int argc, char** argv) {
  CLI::App app(
      "Keeps a trainer fed: packs images into datasets, checks them and measures how fast they are "
      "made into batches.",
      "millrace");
  app.set_version_flag("--version", "millrace " MILLRACE_VERSION);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer("millrace COMMAND --help says more about a command.");
  app.require_subcommand(0, 1);
  app.failure_message([](const CLI::App* main, const CLI::Error& error) {
    std::string command = "millrace";
    for (const CLI::App* sub : main->get_subcommands({}))
      if (sub->count() > 0) command += " " + sub->get_name();
    return fmt::format("millrace: {}\nSee {} --help.\n", error.what(), command);
  });

  std::vector<millrace::cli::Command> commands;
  commands.push_back(millrace::cli::add_pack(app));
  commands.push_back(millrace::cli::add_inspect(app));
  commands.push_back(millrace::cli::add_verify(app));
  commands.push_back(millrace::cli::add_bench(app));
  commands.push_back(millrace::cli::add_tune(app));
  commands.push_back(millrace::cli::add_diagnose(app));
  commands.push_back(millrace::cli::add_topology(app));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_error;
  }
  for (const millrace::cli::Command& command : commands)
    if (command.arguments->parsed()) return command.run();
  fmt::print(stderr, "{}", app.help());
  return usage_error;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    open_standard_streams();
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "millrace: {}\n", error.what());
    return 1;
  }
}
