// SPDX-License-Identifier: Apache-2.0
#include <millrace/c_order.h>
#include <millrace/options_file.h>
#include <millrace/pipeline.h>
#include <millrace/ranks.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "c/calls.h"
#include "c/device.h"
#include "c/handles.h"
#include "c/pipeline_parts.h"

namespace millrace::c {
namespace {

LoadedOptions options_of(const char* json) {
  return json == nullptr ? LoadedOptions{} : options_from_json(json, "options");
}

std::shared_ptr<Runtime> runtime_of(const LoadedOptions& options) {
  const Ranks& ranks = options.pipeline.ranks.this_process;
  return make_runtime({.workers = options.workers,
                       .local_rank = ranks.local_rank,
                       .local_world = ranks.local_world});
}

std::optional<std::chrono::nanoseconds> timeout_of(double seconds) {
  constexpr double longest = 1e9;  // seconds: 32 years
  if (std::isnan(seconds)) throw_argument("timeout_seconds is not a number");
  if (seconds < 0) return std::nullopt;
  return std::chrono::nanoseconds(std::llround(std::min(seconds, longest) * 1e9));
}

/// Size of the first version of the struct `millrace_pipeline_setup`. Its last member was the
/// state.
constexpr std::size_t oldest_setup = offsetof(millrace_pipeline_setup, order);

}  // namespace

PipelineParts parts_of(const millrace_pipeline_setup* given) {
  const millrace_pipeline_setup setup = copied(given, "setup", oldest_setup);
  PipelineParts parts;
  if (setup.dataset != nullptr) parts.dataset = get(setup.dataset);
  parts.transform = get(required(setup.transform, "setup->transform"));
  LoadedOptions loaded = options_of(setup.options);
  PipelineOptions& options = loaded.pipeline;
  if (setup.order != nullptr) options.order = *get(setup.order);
  if (setup.batch_transform != nullptr) options.batch_transform = get(setup.batch_transform);
  options.runtime = setup.runtime != nullptr ? get(setup.runtime) : runtime_of(loaded);
  if (setup.state != nullptr) options.resume.from = State::from_json(setup.state, "state");
  parts.device = open_device(setup.device);
  parts.options = std::move(options);
  return parts;
}

}  // namespace millrace::c

using namespace millrace::c;

millrace_status millrace_runtime_create(const char* options, millrace_runtime** runtime,
                                        millrace_error* error) {
  return guarded(error, [&] {
    millrace_runtime*& handle = result_at(runtime, "runtime");
    handle = put<millrace_runtime>(runtime_of(options_of(options)));
  });
}

millrace_status millrace_runtime_free_unused_caches(millrace_runtime* runtime,
                                                    millrace_error* error) {
  return guarded(error, [&] { get(required(runtime, "runtime"))->free_unused_caches(); });
}

void millrace_runtime_free(millrace_runtime* runtime) { drop(runtime); }

millrace_status millrace_ranks_json(char** json, millrace_error* error) {
  return guarded(error, [&] {
    char*& text = result_at(json, "json");
    const auto ranks = millrace::Ranks::from_environment();
    const nlohmann::ordered_json members = {
        {"rank", ranks.rank},
        {"world", ranks.world},
        {"local_rank", ranks.local_rank},
        {"local_world", ranks.local_world},
        {"source", ranks.source},
        {"warnings", ranks.warnings},
    };
    text = text_of(members.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  });
}

millrace_status millrace_pipeline_create(const millrace_pipeline_setup* setup,
                                         millrace_pipeline** pipeline, millrace_error* error) {
  return guarded(error, [&] {
    millrace_pipeline*& handle = result_at(pipeline, "pipeline");
    PipelineParts parts = parts_of(setup);
    if (parts.dataset == nullptr) throw_argument("the argument setup->dataset is null");
    handle = put<millrace_pipeline>(
        std::make_shared<millrace::Pipeline>(std::move(parts.dataset), std::move(parts.transform),
                                             std::move(parts.device), std::move(parts.options)));
  });
}

millrace_status millrace_pipeline_next(millrace_pipeline* pipeline, uintptr_t stream,
                                       double timeout_seconds, millrace_batch** batch,
                                       millrace_error* error) {
  return guarded(error, [&]() -> millrace_status {
    millrace_batch*& handle = result_at(batch, "batch");
    const auto held = get(pipeline);
    const auto on = stream_of(held->device(), stream);
    // Allocates before the batch is taken, because a failure afterwards would lose the batch.
    const auto next = std::make_shared<HeldBatch>();
    if (on != nullptr) next->streams.emplace(stream, on);
    std::unique_ptr<millrace_batch, decltype(&drop<millrace_batch>)> made(put<millrace_batch>(next),
                                                                          &drop<millrace_batch>);
    next->batch = held->next({.stream = on.get(), .timeout = timeout_of(timeout_seconds)});
    if (!next->batch) return MILLRACE_END;
    if (on != nullptr) next->batch.record_stream(on);  // the batch keeps the stream's object alive
    handle = made.release();
    return MILLRACE_OK;
  });
}

millrace_status millrace_pipeline_batches_per_epoch(const millrace_pipeline* pipeline,
                                                    uint64_t* batches, millrace_error* error) {
  return guarded(error, [&] {
    std::uint64_t& into = result_at(batches, "batches");
    into = get(pipeline)->batches_per_epoch();
  });
}

millrace_status millrace_pipeline_total_batches(const millrace_pipeline* pipeline,
                                                uint64_t* batches, millrace_error* error) {
  return guarded(error, [&] {
    std::uint64_t& into = result_at(batches, "batches");
    into = get(pipeline)->total_batches().value_or(UINT64_MAX);
  });
}

millrace_status millrace_pipeline_set_weights(millrace_pipeline* pipeline, const double* weights,
                                              size_t n_weights, uint64_t* epoch,
                                              millrace_error* error) {
  return guarded(error, [&] {
    std::uint64_t& into = result_at(epoch, "epoch");
    if (n_weights > 0) required(weights, "weights");
    into = get(pipeline)->set_weights({weights, n_weights});
  });
}

millrace_status millrace_pipeline_state(const millrace_pipeline* pipeline, char** json,
                                        millrace_error* error) {
  return guarded(error, [&] {
    char*& text = result_at(json, "json");
    text = text_of(get(pipeline)->state().to_json());
  });
}

millrace_status millrace_pipeline_report(millrace_pipeline* pipeline, int32_t restart, char** json,
                                         millrace_error* error) {
  return guarded(error, [&] {
    char*& text = result_at(json, "json");
    const auto held = get(pipeline);
    text = text_of(millrace::to_json(restart != 0 ? held->take_report() : held->report()));
  });
}

millrace_status millrace_pipeline_stop(millrace_pipeline* pipeline, millrace_error* error) {
  return guarded(error, [&] { get(pipeline)->stop(); });
}

void millrace_pipeline_free(millrace_pipeline* pipeline) { drop(pipeline); }
