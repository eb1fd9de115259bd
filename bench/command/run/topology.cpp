// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <millrace/detail/placement.h>
#include <millrace/detail/process_warnings.h>
#include <millrace/detail/vector_checks.h>
#include <millrace/detail/worker_pool.h>
#include <millrace/error.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <iterator>
#include <memory>
#include <string>

#include "command/console/command.h"
#include "command/console/option_checks.h"
#include "command/console/output_file.h"
#include "command/console/streams.h"
#include "command/run/topology_output.h"

namespace millrace::cli {
namespace {

struct TopologyArguments {
  std::string synthetic;
  std::string json;
  RuntimeOptions runtime;
};

std::string synthetic_fault(const std::string& description) {
  try {
    (void)synthetic_topology(description);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

int run(const TopologyArguments& arguments) {
  check_outputs({arguments.json}, {});
  TopologyView view{.options = arguments.runtime};
  view.machine =
      arguments.synthetic.empty() ? read_topology() : synthetic_topology(arguments.synthetic);
  view.options.topology = view.machine;
  view.placement = place_workers(view.machine, view.options);
  view.warnings = view.placement.warnings;
  if (!view.machine.synthetic) {
    const Runtime tried(view.options);
    view.bound = std::ranges::all_of(tried.pools(), [](const auto& pool) { return pool->bound(); });
    view.warnings = tried.warnings();
    view.instructions = checked_instruction_sets();
    std::ranges::move(process_warnings(), std::back_inserter(view.warnings));
  }
  if (arguments.json != "-") print_text(to_text(view));
  if (!arguments.json.empty()) write_text(arguments.json, to_json(view));
  return 0;
}

}  // namespace

Command add_topology(CLI::App& millrace) {
  auto arguments = std::make_shared<TopologyArguments>();
  RuntimeOptions& options = arguments->runtime;
  CLI::App* app = millrace.add_subcommand(
      "topology", "Print the machine's nodes, cores and devices, and where workers would run");
  app->add_option("--workers", options.workers,
                  "Place this many workers; default: one per processor, less those left free")
      ->transform(between(1, 4096));
  app->add_option("--launch-cores", options.launch_cores,
                  "Cores left free for threads that launch kernels; default: one per GPU, where "
                  "there are four cores or more")
      ->transform(between(0, 4096));
  CLI::Option* rank = app->add_option("--local-rank", options.local_rank,
                                      "Place the workers of this rank, from 0, of --local-world")
                          ->transform(between(0, 4095));
  CLI::Option* world =
      app->add_option("--local-world", options.local_world, "Ranks that share this host")
          ->transform(between(1, 4096));
  rank->needs(world);
  world->needs(rank);
  app->add_option("--synthetic", arguments->synthetic,
                  "Use a synthetic machine, in hwloc's syntax, instead of this one")
      ->type_name("TEXT")
      ->check(CLI::Validator(synthetic_fault, ""));
  app->add_option("--json", arguments->json,
                  "Write everything as JSON to a file; - prints it instead of the text")
      ->check(output_check(true));
  app->callback([arguments] {
    const RuntimeOptions& given = arguments->runtime;
    if (given.local_rank >= given.local_world)
      throw CLI::ValidationError(fmt::format("--local-rank {} must be below --local-world {}",
                                             given.local_rank, given.local_world));
  });
  app->footer(
      R"(Shows the processors that this process may use (affinity, control group's cpuset and
quota), and the workers that a pipeline would start, with the reasons. On this machine it also tests
whether workers can be bound, and which instruction sets make the right pixels.

Examples:
  millrace topology
  millrace topology --local-rank 3 --local-world 8
  millrace topology --synthetic 'pack:2 [numa] l3:1 core:16 pu:2'
  millrace topology --json - | jq .placement.workers)");
  return {app, [arguments] { return run(*arguments); }};
}

}  // namespace millrace::cli
