// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/errno_text.h>
#include <millrace/detail/interrupted.h>
#include <millrace/detail/json_text.h>
#include <millrace/detail/replace_file.h>
#include <millrace/error.h>
#include <millrace/options_file.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <string_view>

#include "base/json_members.h"
#include "pipeline/options/run_options.h"

namespace millrace {
namespace {

constexpr std::uint64_t newest_format = 1;
/// Largest integer that every JSON reader keeps exact.
constexpr std::uint64_t largest_count = 1ULL << 53U;

/// A numeric option: key, range, getter and setter.
struct NumberOption {
  const char* key;
  std::uint64_t low;
  std::uint64_t high;
  std::uint64_t (*get)(const SavedOptions&);
  void (*set)(SavedOptions&, std::uint64_t);
};

constexpr NumberOption number_options[] = {
    {"workers", 0, 4096, [](const SavedOptions& from) -> std::uint64_t { return from.workers; },
     [](SavedOptions& to, std::uint64_t value) { to.workers = static_cast<unsigned>(value); }},
    {"batch_size", 1, 1 << 20,
     [](const SavedOptions& from) -> std::uint64_t { return from.pipeline.batch_size; },
     [](SavedOptions& to, std::uint64_t value) { to.pipeline.batch_size = value; }},
    {"prefetch", 1, 1024,
     [](const SavedOptions& from) -> std::uint64_t { return from.pipeline.slots.prefetch; },
     [](SavedOptions& to, std::uint64_t value) { to.pipeline.slots.prefetch = value; }},
    {"micro_batches", 1, 1 << 20,
     [](const SavedOptions& from) -> std::uint64_t { return from.pipeline.slots.micro_batches; },
     [](SavedOptions& to, std::uint64_t value) { to.pipeline.slots.micro_batches = value; }},
};

std::string read_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw Error(ErrorCode::not_found,
                path.string() +
                    ": no such file; `millrace tune DATASET --out FILE` writes an options file");
  if (std::filesystem::is_directory(path, ignored))
    throw Error(ErrorCode::io, path.string() + ": is a folder, not an options file");
  auto file = open_stream<std::ifstream>(path, std::ios::in);
  std::string text = read_text(file);
  if (!file.is_open() || file.bad())
    throw Error(ErrorCode::io, path.string() + ": cannot be read: " + errno_text(errno));
  return text;
}

void check_parts(const SavedOptions& options, const JsonLocation& location) {
  if (options.pipeline.slots.micro_batches > options.pipeline.batch_size)
    location.fail(location.name("micro_batches") + " is " +
                  std::to_string(options.pipeline.slots.micro_batches) + ", more than " +
                  location.name("batch_size") + ", " + std::to_string(options.pipeline.batch_size));
}

void read_options(const Json& json, const std::string& source, SavedOptions& into) {
  const JsonLocation location(source, "options");
  const Members options(json, location, {"workers", "batch_size", "prefetch", "micro_batches"});
  for (const NumberOption& option : number_options) {
    std::uint64_t value = option.get(into);
    options.read(option.key, option.low, option.high, value);
    option.set(into, value);
  }
  check_parts(into, location);
}

void read_tuned_for(const Json& json, const std::string& source, TunedFor& into) {
  const Members members(json, JsonLocation(source, "tuned_for"),
                        {"dataset", "records", "recipe", "step_ms"});
  members.read("dataset", into.dataset);
  members.read("records", 0, largest_count, into.records);
  members.read_milliseconds("step_ms", into.step_ms);
  if (const Json* recipe = members.object("recipe")) into.recipe = recipe->dump();
}

void read_machine(const Json& json, const std::string& source, MachineIdentity& into) {
  const Members members(json, JsonLocation(source, "machine"),
                        {"cpu", "cores", "numa_nodes", "memory_bytes"});
  members.read("cpu", into.cpu);
  members.read("cores", 1, 1 << 20, into.cores);
  members.read("numa_nodes", 1, 1 << 20, into.numa_nodes);
  members.read("memory_bytes", 0, largest_count, into.memory_bytes);
}

void check_numbers(const SavedOptions& options, const std::filesystem::path& path) {
  const JsonLocation location(path.string(), "options");
  for (const NumberOption& option : number_options)
    if (const std::uint64_t value = option.get(options); value < option.low || value > option.high)
      location.fail(option.key, value, range_text(option.low, option.high));
  check_parts(options, location);
  if (!(options.tuned_for.step_ms >= 0 && std::isfinite(options.tuned_for.step_ms)))
    location.fail("\"tuned_for.step_ms\" is " + std::to_string(options.tuned_for.step_ms) +
                  ", must be 0 or more");
}

Json recipe_json(const std::string& recipe, const std::filesystem::path& path) {
  Json json = json_problem(recipe).empty() ? Json::parse(recipe) : Json();
  if (!json.is_object())
    throw Error(ErrorCode::invalid_argument, path.string() + ": \"tuned_for.recipe\" is " +
                                                 cut(recipe) + ", must be a JSON object");
  return json;
}

}  // namespace

LoadedOptions options_from_json(std::string_view text, const std::string& source) {
  const JsonLocation location(source, "");
  if (const std::string problem = json_problem(text); !problem.empty()) location.fail(problem);
  const Json json = Json::parse(text);
  if (!json.is_object())
    location.fail("is not an options file of millrace: it must hold an object in { }");
  check_format(json, location, newest_format, "an options file");
  const Members members(json, location,
                        {"format", "options", "run", "why", "tuned_for", "machine"});
  LoadedOptions loaded;
  members.read("why", loaded.why);
  const Json* options = members.object("options");
  if (options == nullptr)
    location.fail("\"options\" is missing; `millrace tune DATASET --out FILE` writes a whole file");
  read_options(*options, source, loaded);
  if (const Json* run = members.object("run")) read_run_options(*run, source, loaded.pipeline);
  if (const Json* tuned_for = members.object("tuned_for"))
    read_tuned_for(*tuned_for, source, loaded.tuned_for);
  if (const Json* machine = members.object("machine")) {
    const MachineIdentity here = identify_machine();
    // Members that the file lacks keep this machine's values, so they do not count as differences.
    loaded.machine = here;
    read_machine(*machine, source, loaded.machine);
    loaded.machine_differences = machine_differences(loaded.machine, here);
  }
  return loaded;
}

LoadedOptions load_options(const std::filesystem::path& path) {
  return options_from_json(read_file(path), path.string());
}

void save_options(const std::filesystem::path& path, const SavedOptions& options) {
  check_numbers(options, path);
  Json numbers = Json::object();
  for (const NumberOption& option : number_options) numbers[option.key] = option.get(options);
  Json tuned_for = {{"dataset", options.tuned_for.dataset}, {"records", options.tuned_for.records}};
  if (!options.tuned_for.recipe.empty())
    tuned_for["recipe"] = recipe_json(options.tuned_for.recipe, path);
  tuned_for["step_ms"] = options.tuned_for.step_ms;
  Json json = {{"format", newest_format},
               {"options", numbers},
               {"why", options.why},
               {"tuned_for", tuned_for}};
  const MachineIdentity& machine = options.machine;
  if (machine != MachineIdentity{})
    json["machine"] = {{"cpu", machine.cpu},
                       {"cores", machine.cores},
                       {"numa_nodes", machine.numa_nodes},
                       {"memory_bytes", machine.memory_bytes}};
  replace_file(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
}

}  // namespace millrace
