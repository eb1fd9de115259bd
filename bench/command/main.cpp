// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <millrace/detail/json_text.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "command/console/command.h"
#include "command/console/streams.h"
#include "measure/text/text.h"

namespace {

constexpr int usage_error = 2;

/// Returns the text of a command-line error. CLI11 itself would list unexpected arguments in
/// reverse order.
std::string usage_text(const CLI::App& main, const CLI::Error& error) {
  const std::vector<std::string> arguments = main.remaining(true);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || arguments.empty())
    return error.what();
  return fmt::format("The following argument{} not expected: {}",
                     arguments.size() == 1 ? " was" : "s were", fmt::join(arguments, " "));
}

/// Returns the message for an unknown command; empty if `word` is a command.
std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == word) return {};
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return fmt::format("millrace: unknown command '{}'; commands are: {}\nSee millrace --help.\n",
                     millrace::cli::printable(millrace::cut(word, 100)), names);
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
    return fmt::format("millrace: {}\nSee {} --help.\n",
                       millrace::cli::printable(millrace::cut(usage_text(*main, error), 400)),
                       command);
  });

  std::vector<millrace::cli::Command> commands;
  commands.push_back(millrace::cli::add_pack(app));
  commands.push_back(millrace::cli::add_recode(app));
  commands.push_back(millrace::cli::add_index(app));
  commands.push_back(millrace::cli::add_inspect(app));
  commands.push_back(millrace::cli::add_verify(app));
  commands.push_back(millrace::cli::add_recipe_command(app));
  commands.push_back(millrace::cli::add_decode(app));
  commands.push_back(millrace::cli::add_view(app));
  commands.push_back(millrace::cli::add_bench(app));
  commands.push_back(millrace::cli::add_tune(app));
  commands.push_back(millrace::cli::add_diagnose(app));
  commands.push_back(millrace::cli::add_topology(app));

  const std::string first = argc > 1 ? argv[1] : "-";
  if (const std::string unknown = unknown_command(app, first);
      !first.starts_with('-') && !unknown.empty()) {
    millrace::cli::print_error_text(unknown);
    return usage_error;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = app.exit(error, out, err);
    millrace::cli::print_text(out.str());
    millrace::cli::print_error_text(err.str());
    return code == 0 ? 0 : usage_error;
  }
  for (const millrace::cli::Command& command : commands)
    if (command.arguments->parsed()) return command.run();
  millrace::cli::print_error_text(app.help());
  return usage_error;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    millrace::cli::open_standard_streams();
    const int code = run(argc, argv);
    millrace::cli::check_printed();
    return code;
  } catch (const std::bad_alloc&) {
    millrace::cli::print_note("there is not enough memory for this");
  } catch (const std::filesystem::filesystem_error& error) {
    millrace::cli::print_note(error.path1().string() + ": " + error.code().message());
  } catch (const std::exception& error) {
    millrace::cli::print_note(error.what());
  }
  return 1;
}
