// SPDX-License-Identifier: Apache-2.0
#include "pipeline/engine.h"

#include <millrace/detail/process_warnings.h>
#include <millrace/device_stage.h>
#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/checked_device.h"
#include "pipeline/planning/stream_planner.h"
#include "pipeline/record_caches.h"
#include "report/verdict.h"
#include "runtime/memory.h"
#include "runtime/runtime_services.h"

namespace millrace {
namespace {

void require_positive(std::size_t value, const char* option) {
  if (value == 0)
    throw Error(ErrorCode::invalid_argument, std::string(option) + " is 0; it must be at least 1");
}

/// Whether batches are copied into slots of the device.
bool copies(const PipelineOptions& options, const Device& device) {
  return device.copies() || options.conversion;
}

void check(const PipelineOptions& options, const Device& device) {
  require_positive(options.slots.prefetch, "prefetch");
  if (copies(options, device)) require_positive(options.slots.device_slots, "device_slots");
  require_positive(options.slots.micro_batches, "micro_batches");
  if (options.slots.read_ahead > Prefetcher::max_read_ahead)
    throw Error(ErrorCode::invalid_argument,
                "read_ahead is " + std::to_string(options.slots.read_ahead) +
                    " batches; it must be at most " + std::to_string(Prefetcher::max_read_ahead));
  if (options.debug.stop_timeout.count() < 0)
    throw Error(
        ErrorCode::invalid_argument,
        "stop_timeout is " + std::to_string(options.debug.stop_timeout.count()) + " ms, below 0");
}

MicroBatches dealt(const Schedule& schedule, std::size_t micro_batches) {
  const std::size_t size = schedule.largest_batch();
  if (micro_batches > size)
    throw Error(ErrorCode::invalid_argument, "micro_batches is " + std::to_string(micro_batches) +
                                                 ", more than the batch's " + std::to_string(size) +
                                                 " samples");
  return {size, micro_batches};
}

/// Throws `Error` (`invalid_argument`) if samples, batch transform and options do not fit.
BatchFields fields_of(const SampleSpec& samples, const PipelineOptions& options,
                      const BatchTransform* batch_transform) {
  BatchFields fields(
      samples, options.conversion,
      batch_transform != nullptr ? batch_transform->fields(samples) : std::vector<FieldSpec>());
  for (const FieldSpec& field : samples.fields())
    if (!field.device_stages.empty() && options.batch_transform != nullptr)
      throw Error(ErrorCode::invalid_argument,
                  "batch_transform is \"" + options.batch_transform->stage() +
                      "\", which runs on the host, but the device makes \"" + field.name +
                      "\" (stage " + field.device_stages.front()->name() +
                      "); remove batch_transform, or let a worker make the field (in an image's "
                      "recipe: \"decode_on\": \"worker\")");
  if (options.slots.micro_batches > 1 && (batch_transform != nullptr || fields.mix_field()))
    throw Error(ErrorCode::invalid_argument,
                "micro_batches is " + std::to_string(options.slots.micro_batches) +
                    "; it must be 1, since " +
                    (batch_transform != nullptr
                         ? "the batch transform \"" + batch_transform->stage() + "\" needs"
                         : std::string("samples that are mixed need")) +
                    " the whole batch");
  return fields;
}

/// Returns the fingerprint of transform and batch transform; nullopt if one of them has none.
std::optional<std::uint64_t> fingerprint(const Transform& transform,
                                         const BatchTransform* batch_transform) {
  const std::optional<std::uint64_t> samples = transform.fingerprint();
  if (batch_transform == nullptr || !samples) return samples;
  const std::optional<std::uint64_t> batches = batch_transform->fingerprint();
  if (!batches) return std::nullopt;
  const std::uint64_t both[] = {*samples, *batches};
  return XXH3_64bits(both, sizeof both);
}

/// Returns the position at which the run starts: 0, or the one to resume from. Throws `Error`
/// (`invalid_argument`) if the state to resume from belongs to another run than `here`, unless
/// `resume.anyway` is set.
std::uint64_t first_position(const PipelineOptions& options, const State& here,
                             const Dataset& dataset, const std::string& transform) {
  if (!options.resume.from) return 0;
  const std::vector<std::string> differences =
      state_differences(*options.resume.from, here, transform);
  if (differences.empty() || options.resume.anyway) return options.resume.from->position;
  std::string message =
      "the state to resume from belongs to another run than this one over " + dataset.name() + ": ";
  for (const std::string& difference : differences) message += difference + "; ";
  throw Error(ErrorCode::invalid_argument, message + "resume.anyway uses its position nevertheless",
              "plan");
}

std::vector<std::unique_ptr<HostSlot>> make_host_slots(std::size_t count, const SlotLayout& layout,
                                                       Runtime& runtime, Device& device,
                                                       PipelineNodes& nodes) {
  std::vector<std::unique_ptr<HostSlot>> hosts;
  for (std::size_t number = 0; number < count; ++number) {
    auto host = std::make_unique<HostSlot>();
    host->number = number;
    host->memory = checked(
        RuntimeServices::of(runtime).host_memory(device, layout.bytes(), nodes.node_of(number)),
        layout.bytes(), device, "allocate_host()");
    nodes.count_pages(number, host->memory);
    host->records.indices.reserve(layout.micro_batches().samples);
    host->records.valid.reserve(layout.micro_batches().samples);
    host->positions.reserve(layout.micro_batches().samples);
    hosts.push_back(std::move(host));
  }
  return hosts;
}

/// Throws `Error` (`invalid_argument`) with the dataset's file if the dataset is empty.
void check_has_records(const Dataset& dataset) {
  if (dataset.size() > 0) return;
  const std::vector<std::string> files = dataset.facts().files;
  throw Error(ErrorCode::invalid_argument,
              (files.empty() ? "" : files.front() + ": ") +
                  std::string("the dataset is empty (0 records, expected at least 1); open one "
                              "that has records"),
              "plan");
}

}  // namespace

Engine::Engine(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Transform> transform,
               std::shared_ptr<Device> device, const PipelineOptions& options,
               std::shared_ptr<Runtime> runtime)
    : name_(options.name), runtime_(std::move(runtime)), device_(std::move(device)) {
  const SlotQueues::Clock::time_point started = SlotQueues::Clock::now();
  check(options, *device_);
  const bool copying = copies(options, *device_);
  const auto one_pass = std::dynamic_pointer_cast<const StreamDataset>(dataset);
  if (one_pass == nullptr) check_has_records(*dataset);
  sampler_ = one_pass != nullptr
                 ? stream_sampler(*one_pass, options)
                 : std::make_shared<RunSampler>(
                       Sampler(options.order.measured(*dataset), dataset->size(), options.seed));
  const Schedule schedule = one_pass != nullptr
                                ? stream_schedule(*one_pass, options)
                                : Schedule(sampler_->current()->epoch_size(), options);
  const std::shared_ptr<const BatchTransform> batch_transform =
      options.batch_transform != nullptr ? options.batch_transform : transform->batch_transform();
  const BatchFields fields = fields_of(transform->spec(), options, batch_transform.get());
  const MicroBatches micro_batches = dealt(schedule, options.slots.micro_batches);
  const SlotLayout made(fields.made(), {micro_batches.samples, copying ? micro_batches.count : 1});
  const SlotLayout handed_out(fields.converted(), {micro_batches.samples, 1});

  State identity{.seed = options.seed,
                 .position = options.resume.from ? options.resume.from->position : 0,
                 .global_batch = schedule.global_batch(),
                 .dataset = dataset->facts().fingerprint,
                 .recipe = fingerprint(*transform, options.batch_transform.get())};
  sampler_->hashes()->fill(identity);

  const std::string name_in_messages = transform->name_in_messages();
  const std::uint64_t position = first_position(options, identity, *dataset, name_in_messages);
  const RunPosition begin{position, one_pass != nullptr ? first_window(options, identity) : 0};
  if (one_pass != nullptr) windows_ = begin_stream(*one_pass, options, schedule, begin);
  if (options.resume.from && !options.resume.anyway)
    warnings_ = state_not_compared(*options.resume.from, identity, name_in_messages);
  std::ranges::move(dataset->facts().warnings, std::back_inserter(warnings_));
  std::ranges::copy(options.ranks.this_process.warnings, std::back_inserter(warnings_));

  const std::shared_ptr<Trace>& trace = options.debug.trace;
  const std::size_t group = trace != nullptr ? trace->add_group(options.name) : 0;
  PipelineNodes nodes(*runtime_, *device_, options.slots.nodes, options.slots.prefetch);
  RecordCaches caches;
  memory_.scratch_limit_bytes = transform->scratch_limit(runtime_->workers());
  if (one_pass == nullptr) {
    caches.hints = RuntimeServices::of(*runtime_).hints_of(dataset, options.index_bytes);
    add_cache(caches, *runtime_, dataset, *transform, options.cache_bytes, warnings_);
  } else {
    memory_.scratch_limit_bytes += one_pass->options().memory_bytes;
    if (options.cache_bytes > 0)
      warnings_.push_back("cache_bytes has no effect: a one-pass dataset has no cache");
  }
  if (caches.recoded != nullptr) {
    memory_.cache_limit_bytes = caches.recoded->limit();
    memory_.scratch_limit_bytes += runtime_->workers() * transform->recoded_form()->scratch_bytes;
  }
  if (caches.hints != nullptr) memory_.index_limit_bytes = caches.hints->limit();
  if (caches.cache != nullptr) memory_.cache_limit_bytes = caches.cache->limit();
  sample_workers_ = std::make_shared<SampleWorkers>(
      std::make_unique<SampleMaker>(SampleMaker::Setup{.dataset = dataset,
                                                       .transform = std::move(transform),
                                                       .layout = made,
                                                       .seed = options.seed,
                                                       .policy = options.bad_records,
                                                       .workers = runtime_->workers(),
                                                       .trace = trace.get(),
                                                       .trace_group = group,
                                                       .profiler = device_->profiler(),
                                                       .caches = std::move(caches),
                                                       .windows = windows_,
                                                       .batch_transform = batch_transform,
                                                       .poison = options.debug.poison_slots}),
      fields, made, *runtime_, std::move(nodes));

  const std::uint64_t first = schedule.number_at(position);
  if (windows_ != nullptr) {
    planner_ = std::make_shared<StreamPlanner>(sampler_, schedule, windows_);
  } else {
    planner_ = std::make_shared<Planner>(sampler_, schedule);
    prefetcher_ = std::make_shared<Prefetcher>(std::move(dataset), sampler_, schedule, first,
                                               options.slots.read_ahead, options.slots.epoch_break);
  }

  auto upload =
      copying ? std::make_unique<Upload>(device_, made, handed_out, fields, options.conversion,
                                         options.slots.prefetch, sample_workers_, trace != nullptr)
              : nullptr;
  queues_ = std::make_shared<SlotQueues>(
      SlotQueues::Run{
          .micro_batches = micro_batches,
          .first = first,
          .end = schedule.end(),
          .epoch_break = options.slots.epoch_break ? schedule.batches_per_epoch() : 0,
          .begin = begin,
          .forbids_blocking_from = options.debug.forbid_blocking_calls
                                       ? first + options.slots.prefetch + options.slots.device_slots
                                       : UINT64_MAX,
          .keeps_records = made.packed_field().has_value()},
      Slots{device_, make_host_slots(options.slots.prefetch, made, *runtime_, *device_,
                                     sample_workers_->nodes())},
      RunMeter(trace, group, copying ? upload->timed() : std::vector<std::string>(), started));
  if (copying)
    delivery_ = std::make_shared<CopyDelivery>(
        queues_, *device_, std::move(upload), options.slots.device_slots, handed_out.bytes(),
        HostFallback{
            .sample =
                [workers = sample_workers_, queues = queues_.get()](HostSlot& host,
                                                                    std::size_t sample) {
                  return workers->make_again(*queues, host, sample);
                },
            .batch = [workers = sample_workers_, queues = queues_.get()](
                         HostSlot& host) { return workers->finish_batch_again(*queues, host); }});
  else
    delivery_ = std::make_shared<InPlaceDelivery>(queues_, device_->profiler());
  consumer_ = std::make_shared<BatchConsumer>(queues_, device_, handed_out, std::move(identity),
                                              sampler_->hashes());
  max_ahead_ = options.slots.prefetch + (copying ? options.slots.device_slots : 0);

  memory_.pinned_bytes = options.slots.prefetch * made.bytes();
  memory_.staging_bytes = delivery_->staging_bytes();
  if (copying)
    memory_.device_bytes = options.slots.device_slots * handed_out.bytes() + memory_.staging_bytes;
  if (const std::uint64_t usable = usable_memory(); usable > 0 && memory_.limit_bytes() > usable)
    warnings_.push_back("the run may take up to " + std::to_string(memory_.limit_bytes()) +
                        " bytes of memory, more than the " + std::to_string(usable) +
                        " that the process may use");
  queues_->note_workers(sample_workers_->concurrency());
  queues_->begin_report(sample_workers_->figures());
}

Engine::~Engine() {
  // If `stop` failed or was never called, the threads run on without the engine until they see that
  // the queues are closed. They must not use the runtime's pools any more.
  queues_->close();
  close_reading();
  try {
    static_cast<void>(sample_workers_->dismiss(SlotQueues::Clock::now()));
  } catch (...) {
    // Only lack of memory throws here. The pools then keep their numbers of active workers.
  }
}

void Engine::close_reading() {
  if (prefetcher_ != nullptr) prefetcher_->close();
  if (windows_ != nullptr) windows_->close();
}

void Engine::start() {
  const MutexLock starting(stop_mutex_);
  const std::string name = name_.substr(0, 8);  // a thread's name has 15 bytes at most
  upload_thread_.emplace(UploadThread{device_, queues_, delivery_}, name + "-upload");
  try {
    if (windows_ != nullptr)
      reading_ahead_.emplace(StreamBody{windows_}, name + "-read");
    else
      reading_ahead_.emplace(PrefetchBody{queues_, prefetcher_}, name + "-ahead");
    plan_recycle_thread_.emplace(
        PlanRecycleThread{device_, queues_, delivery_, planner_, sample_workers_, prefetcher_,
                          upload_thread_->ended()},
        name + "-plan");
  } catch (...) {
    queues_->close();
    close_reading();
    upload_thread_->end(SlotQueues::Clock::time_point::max());
    throw;
  }
  sample_workers_->start();  // started last, because only `stop` undoes it
}

std::optional<Stuck> Engine::stop(SlotQueues::Clock::time_point deadline) {
  const MutexLock stopping(stop_mutex_);
  queues_->close();
  close_reading();
  const std::string device = device_->name();
  std::optional<Stuck> stuck = sample_workers_->dismiss(deadline);
  if (upload_thread_ && !upload_thread_->end(deadline) && !stuck)
    stuck = {"upload", "a call of device " + device + " does not return"};
  if (plan_recycle_thread_ && !plan_recycle_thread_->end(deadline) && !stuck)
    stuck = {"recycle", "work queued on device " + device + " that uses batches does not end"};
  if (reading_ahead_ && !reading_ahead_->end(deadline) && !stuck)
    stuck = windows_ != nullptr
                ? Stuck{"read", "reading the stream " + windows_->name() + " does not return"}
                : Stuck{"plan", "prefetching from " + prefetcher_->name() + " does not return"};
  return stuck;
}

Batch Engine::next(const NextRequest& request) {
  Batch batch = consumer_->next(request);
  if (batch) sample_workers_->adapt(*queues_);
  return batch;
}

std::uint64_t Engine::set_weights(std::span<const double> weights) {
  return sampler_->set_weights({weights.begin(), weights.end()}, [this] {
    const std::uint64_t first_unplanned = queues_->first_unplanned(max_ahead_);
    const std::uint64_t per_epoch = schedule().batches_per_epoch();
    return first_unplanned / per_epoch + (first_unplanned % per_epoch > 0 ? 1 : 0);
  });
}

Report Engine::report() const {
  queues_->note_workers(sample_workers_->concurrency());
  const RunMeter meter = queues_->meter();  // read before the figures, so these are at least as new
  return report_of(meter, sample_workers_->figures(), SlotQueues::Clock::now());
}

Report Engine::take_report() {
  queues_->note_workers(sample_workers_->concurrency());
  const MutexLock lock(report_mutex_);
  const WorkerFigures figures = sample_workers_->figures();  // the next report begins with these
  const auto [meter, at] = queues_->take_report(figures);
  return report_of(meter, figures, at);
}

MemoryReport Engine::memory() const {
  MemoryReport memory = memory_;
  sample_workers_->fill(memory);
  memory.kept_host_bytes = runtime_->kept_host_bytes();
  return memory;
}

Report Engine::report_of(const RunMeter& meter, const WorkerFigures& figures,
                         SlotQueues::Clock::time_point now) const {
  Report report;
  report.pipeline = name_;
  report.memory = memory();
  sample_workers_->fill(report, figures, meter.base());
  report.warnings.insert(report.warnings.end(), warnings_.begin(), warnings_.end());
  std::ranges::move(windows_ != nullptr ? windows_->warnings() : prefetcher_->warnings(),
                    std::back_inserter(report.warnings));
  std::ranges::move(process_warnings(), std::back_inserter(report.warnings));
  meter.fill(report, figures, now);
  warn_of_delay(report);
  report.verdict = judge(report);
  return report;
}

}  // namespace millrace
