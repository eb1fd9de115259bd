// SPDX-License-Identifier: Apache-2.0
#include <millrace/c_measure.h>
#include <millrace/measure.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "c/calls.h"
#include "c/device.h"
#include "c/handles.h"
#include "c/pipeline_parts.h"
#include "measure/bench/workload.h"

namespace millrace::c {
namespace {

/// Checks the range of a duration and converts it. Values out of range would overflow C++'s type.
template <typename Duration>
Duration duration_of(const char* name, double seconds) {
  cli::check_seconds(name, seconds);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

/// Throws a callback's error if its status is not ok.
void check_callback(const char* name, millrace_status status, millrace_error& error) {
  if (status == MILLRACE_OK) return;
  const Error failed = callback_error(std::string(name) + ": ", status, error);
  // Outside of the pipeline, no policy for bad records applies.
  if (failed.code() == ErrorCode::bad_record) throw Error(ErrorCode::internal, failed.what());
  throw failed;
}

/// Calls the caller's step with a handle of the batch. The step frees the handle.
class CallbackStep {
 public:
  CallbackStep(const millrace_workload& workload, std::shared_ptr<Stream> stream)
      : step_(workload.step),
        user_(workload.user),
        stream_(std::move(stream)),
        number_(workload.stream != 0 || stream_ == nullptr ? workload.stream
                                                           : number_of(*stream_)) {}

  void operator()(const Batch& batch, Stream& /*stream*/) const {
    const auto held = std::make_shared<HeldBatch>();
    held->batch = batch;
    if (stream_ != nullptr) {  // the batch's tensors keep the stream alive
      held->batch.record_stream(stream_);
      held->streams.emplace(number_, stream_);
    }
    millrace_error error{};
    check_callback("step", step_(user_, put<millrace_batch>(held), number_, &error), error);
  }

 private:
  decltype(millrace_workload::step) step_;
  void* user_;
  /// The stream that the step uses; null on the host.
  std::shared_ptr<Stream> stream_;
  std::uintptr_t number_;
};

struct Trainer {
  measure::Workload workload;
  void* user = nullptr;
};

Trainer trainer_of(const millrace_workload* given) {
  const millrace_workload from = copied(given, "workload");
  PipelineParts parts = parts_of(required(from.setup, "workload->setup"));
  Trainer trainer{.workload = {.dataset = std::move(parts.dataset),
                               .transform = std::move(parts.transform),
                               .device = std::move(parts.device),
                               .pipeline = std::move(parts.options)},
                  .user = from.user};
  measure::Workload& workload = trainer.workload;
  workload.stream = stream_of(workload.device->id(), from.stream);
  if (workload.stream == nullptr && workload.device->copies())
    workload.stream = workload.device->make_stream();
  if (from.step != nullptr) workload.step = CallbackStep(from, workload.stream);
  if (from.interrupted != nullptr)
    workload.poll = [from] {
      if (from.interrupted(from.user) != 0)
        throw Error(ErrorCode::stopped, "`interrupted` ended the measurement");
    };
  return trainer;
}

measure::BenchOptions options_of(const millrace_bench_options& from) {
  return {.warmup = from.warmup,
          .batches = from.batches,
          .duration = duration_of<std::chrono::nanoseconds>("duration", from.duration_seconds)};
}

measure::TuneOptions options_of(const millrace_tune_options& from, void* user) {
  measure::TuneOptions options{.max_workers = from.max_workers,
                               .batch_size = from.tune_batch_size != 0,
                               .budget = std::chrono::duration<double>(from.budget_seconds)};
  if (from.p99_ms != 0) options.p99_ms = from.p99_ms;
  if (from.memory_bytes != 0) options.memory_bytes = from.memory_bytes;
  if (from.on_run != nullptr)
    options.on_run = [on_run = from.on_run, user](const measure::Setting& setting) {
      const millrace_setting copy{setting.workers, setting.prefetch, setting.micro_batches,
                                  setting.batch_size};
      millrace_error error{};
      check_callback("on_run", on_run(user, &copy, &error), error);
    };
  return options;
}

measure::DiagnoseOptions options_of(const millrace_diagnose_options& from, void* user) {
  if (from.reserved != 0)
    throw Error(ErrorCode::invalid_argument,
                "reserved is " + std::to_string(from.reserved) + "; it must be 0");
  measure::DiagnoseOptions options{
      .rounds = from.rounds,
      .batches = from.batches,
      .duration = duration_of<std::chrono::nanoseconds>("duration", from.duration_seconds)};
  if (from.open != nullptr)
    options.open = [open = from.open, user] {
      millrace_dataset* opened = nullptr;
      millrace_error error{};
      check_callback("open", open(user, &opened, &error), error);
      const std::unique_ptr<millrace_dataset, decltype(&drop<millrace_dataset>)> handle(
          opened, &drop<millrace_dataset>);
      return get(required(opened, "dataset of `open`"));
    };
  return options;
}

}  // namespace
}  // namespace millrace::c

using namespace millrace::c;
namespace measure = millrace::measure;

millrace_status millrace_bench(const millrace_workload* workload,
                               const millrace_bench_options* options, char** json,
                               millrace_error* error) {
  return guarded(error, [&] {
    char*& text = result_at(json, "json");
    measure::BenchOptions given;
    if (options != nullptr) given = options_of(copied(options, "options"));
    text = text_of(measure::bench(trainer_of(workload).workload, given).json);
  });
}

millrace_status millrace_tune(const millrace_workload* workload,
                              const millrace_tune_options* options, char** json,
                              millrace_error* error) {
  return guarded(error, [&] {
    char*& text = result_at(json, "json");
    const Trainer trainer = trainer_of(workload);
    measure::TuneOptions given;
    if (options != nullptr) given = options_of(copied(options, "options"), trainer.user);
    text = text_of(measure::tune(trainer.workload, given).json);
  });
}

millrace_status millrace_diagnose(const millrace_workload* workload,
                                  const millrace_diagnose_options* options, char** json,
                                  millrace_error* error) {
  return guarded(error, [&] {
    char*& text = result_at(json, "json");
    const Trainer trainer = trainer_of(workload);
    measure::DiagnoseOptions given;
    if (options != nullptr) given = options_of(copied(options, "options"), trainer.user);
    text = text_of(measure::diagnose(trainer.workload, given).json);
  });
}
