// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <millrace/detail/json_text.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
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

struct NamedCommand {
  std::string_view name;
  millrace::cli::Command (*add)(CLI::App& millrace);
};
/// All commands, in the order of the help.
constexpr NamedCommand all_commands[] = {
    {"pack", &millrace::cli::add_pack},         {"recode", &millrace::cli::add_recode},
    {"index", &millrace::cli::add_index},       {"inspect", &millrace::cli::add_inspect},
    {"verify", &millrace::cli::add_verify},     {"recipe", &millrace::cli::add_recipe_command},
    {"decode", &millrace::cli::add_decode},     {"view", &millrace::cli::add_view},
    {"bench", &millrace::cli::add_bench},       {"tune", &millrace::cli::add_tune},
    {"diagnose", &millrace::cli::add_diagnose}, {"topology", &millrace::cli::add_topology}};

/// Returns the message for an unknown command.
std::string unknown_command(const std::string& word) {
  std::string names;
  for (const NamedCommand& command : all_commands)
    names += (names.empty() ? "" : ", ") + std::string(command.name);
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

  // Adding a command's options takes longer than parsing them, so the other commands are left out.
  const std::string first = argc > 1 ? argv[1] : "-";
  std::vector<millrace::cli::Command> commands;
  for (const auto& [name, add] : all_commands)
    if (name == first) commands.push_back(add(app));
  if (commands.empty() && !first.starts_with('-')) {
    millrace::cli::print_error_text(unknown_command(first));
    return usage_error;
  }
  if (commands.empty())
    for (const auto& [name, add] : all_commands) commands.push_back(add(app));
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
