// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/workload.h"

#include <fmt/format.h>
#include <millrace/error.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "measure/device/user_steps.h"

namespace millrace::cli {
namespace {

void check_there(bool is_there, const char* what) {
  if (!is_there)
    throw Error(ErrorCode::invalid_argument, std::string("the workload has no ") + what);
}

/// Returns the description if it is a JSON object, like a recipe; else an empty text.
std::string recipe_in(const std::string& description) {
  const auto json = nlohmann::json::parse(description, nullptr, false);
  return json.is_object() ? description : std::string();
}

}  // namespace

std::shared_ptr<const Transform> fitted(const std::shared_ptr<const Transform>& transform,
                                        const Dataset& dataset) {
  check_there(transform != nullptr, "transform");
  auto found = transform->fitted_to(dataset);
  return found != nullptr ? found : transform;
}

BenchSettings settings_of(const measure::Workload& workload, bool needs_dataset) {
  check_there(!needs_dataset || workload.dataset != nullptr, "dataset");
  check_there(workload.transform != nullptr, "transform");
  check_there(workload.device != nullptr, "device");
  BenchSettings settings;
  settings.dataset = workload.dataset;
  settings.transform = workload.transform;
  if (workload.dataset != nullptr)
    settings.transform = fitted(workload.transform, *workload.dataset);
  settings.recipe = recipe_in(settings.transform->description());
  settings.device = with_user_steps({workload.device, workload.stream, workload.poll});
  settings.user_step = workload.step;
  settings.pipeline = workload.pipeline;
  settings.pipeline.resume = {};
  const Ranks& ranks = settings.pipeline.ranks.this_process;
  if (settings.pipeline.runtime == nullptr)
    settings.pipeline.runtime =
        make_runtime({.local_rank = ranks.local_rank, .local_world = ranks.local_world});
  return settings;
}

void check_option(const char* name, double value, double low, double high) {
  if (value >= low && value <= high) return;  // a NaN does not return here
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is {:.15g}, must be in {:.15g}..{:.15g}", name, value, low, high));
}

void check_count(const char* name, std::uint64_t value, std::uint64_t low) {
  check_option(name, static_cast<double>(value), static_cast<double>(low), 0x1p40);
}

void check_seconds(const char* name, double seconds) { check_option(name, seconds, 0.001, 86400); }

RunSetup setup_of(const measure::Workload& workload, const BenchSettings& settings) {
  return {.dataset = workload.dataset ? workload.dataset->name() : "dataset",
          .recipe_name = "of its own",
          .device = workload.device->name(),
          .machine = describe_machine(settings.pipeline.runtime->topology())};
}

std::chrono::nanoseconds measure_user_step(const BenchSettings& settings) {
  constexpr int warmup = 3;
  constexpr std::size_t fewest = 5;
  constexpr std::size_t most = 100;
  constexpr std::chrono::seconds enough{1};
  using Clock = std::chrono::steady_clock;
  if (!settings.user_step) return {};
  const auto stream = settings.device->make_trainer_stream(settings.step_work());
  const Batch batch = ready_batch(settings, *stream);
  const auto time_one = [&]() -> std::chrono::nanoseconds {
    const Clock::time_point begin = Clock::now();
    stream->step(batch);
    const auto span = stream->finish_oldest();
    return span ? span->end - span->begin : Clock::now() - begin;
  };
  for (int step = 0; step < warmup; ++step) time_one();
  std::vector<std::chrono::nanoseconds> times;
  const Clock::time_point begin = Clock::now();
  while (times.size() < fewest || (times.size() < most && Clock::now() - begin < enough))
    times.push_back(time_one());
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

}  // namespace millrace::cli
