// SPDX-License-Identifier: Apache-2.0
#include "pipeline/engine.h"

#include <algorithm>

#include "report/verdict.h"

namespace millrace {
namespace {

void require_positive(std::size_t value, const char* option) {
  if (value == 0)
    throw Error(ErrorCode::invalid_argument, std::string(option) + " is 0; it must be at least 1");
}

const PipelineOptions& checked(const PipelineOptions& options, const Device& device) {
  require_positive(options.slots.prefetch, "prefetch");
  if (device.copies() || options.conversion)
    require_positive(options.slots.device_slots, "device_slots");
  require_positive(options.slots.micro_batches, "micro_batches");
  if (options.debug.stop_timeout.count() < 0)
    throw Error(
        ErrorCode::invalid_argument,
        "stop_timeout is " + std::to_string(options.debug.stop_timeout.count()) + " ms, below 0");
  return options;
}

/// Samples of a slot.
std::size_t slot_size(const Schedule& schedule, const PipelineOptions& options) {
  const std::size_t size = schedule.largest_batch();
  if (options.slots.micro_batches > size)
    throw Error(ErrorCode::invalid_argument,
                "micro_batches is " + std::to_string(options.slots.micro_batches) +
                    ", more than the batch's " + std::to_string(size) + " samples");
  return size;
}

/// The position to begin at, of a run that `here` describes.
std::uint64_t first_position(const PipelineOptions& options, const State& here,
                             const Dataset& dataset) {
  if (!options.resume.from) return 0;
  const std::vector<std::string> differences = state_differences(*options.resume.from, here);
  if (differences.empty() || options.resume.anyway) return options.resume.from->position;
  std::string message =
      "the state to resume from is of another run than this one over " + dataset.name() + ": ";
  for (const std::string& difference : differences) message += difference + "; ";
  throw Error(ErrorCode::invalid_argument,
              message + "resume.anyway takes its position all the same", "plan");
}

}  // namespace

Engine::Engine(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Transform> transform,
               std::shared_ptr<Device> device, const PipelineOptions& options, Runtime& runtime)
    : dataset_(std::move(dataset)),
      transform_(std::move(transform)),
      device_(std::move(device)),
      options_(checked(options, *device_)),
      sampler_(options_.order, dataset_->size(), options_.seed),
      schedule_(sampler_.epoch_size(), options_),
      copies_(device_->copies() || options_.conversion),
      fields_(transform_->spec(), options_.conversion),
      parts_{slot_size(schedule_, options_), options_.slots.micro_batches},
      host_layout_(fields_.made(), {parts_.samples, copies_ ? parts_.count : 1}),
      batch_layout_(fields_.converted(), {parts_.samples, 1}),
      runtime_(runtime),
      nodes_(runtime, *device_, options_.slots.nodes, options_.slots.prefetch),
      trace_group_(options_.debug.trace ? options_.debug.trace->add_group("millrace") : 0),
      profiler_(device_->profiler()),
      maker_(dataset_, transform_, host_layout_, sampler_, options_.seed, options_.bad_records,
             runtime.workers(), options_.debug.trace.get(), trace_group_, profiler_),
      identity_{.seed = options_.seed,
                .sampler = sampler_.hash(),
                .global_batch = schedule_.global_batch(),
                .dataset = dataset_->facts().fingerprint,
                .recipe = transform_->fingerprint()},
      first_position_(first_position(options_, identity_, *dataset_)),
      next_planned_(schedule_.number_at(first_position_)),
      next_prefetched_(next_planned_),
      next_handed_out_(next_planned_),
      steady_at_(next_planned_ + options_.slots.prefetch + options_.slots.device_slots),
      position_(first_position_),
      made_(next_planned_),
      meter_(options_.debug.trace.get(), trace_group_,
             copies_ && (options_.conversion || options_.slots.micro_batches > 1), Clock::now()),
      auto_workers_(nodes_.workers()) {
  make_host_slots();
  make_leases();
  MutexLock lock(mutex_);
  report_base_ = maker_.counts();
  nodes_base_ = nodes_.made_so_far(maker_);
  delay_base_ = nodes_.delay();
  note_road(Clock::now());
  meter_.begin(Clock::now());
}

void Engine::make_host_slots() {
  MutexLock lock(mutex_);
  for (std::size_t number = 0; number < options_.slots.prefetch; ++number) {
    auto host = std::make_unique<HostSlot>();
    host->number = number;
    host->memory = device_->allocate_host(host_layout_.bytes(), nodes_.node_of(number));
    nodes_.look_at(number, host->memory);
    host->records.indices.reserve(parts_.samples);
    host->records.valid.reserve(parts_.samples);
    host->positions.reserve(parts_.samples);
    host->unmade = std::vector<std::atomic<std::size_t>>(options_.slots.micro_batches);
    for (std::size_t part = 0; copies_ && part < options_.slots.micro_batches; ++part)
      host->copies.push_back({{}, device_->make_timed_event(), device_->make_timed_event()});
    free_hosts_.push_back(host.get());
    hosts_.push_back(std::move(host));
  }
}

void Engine::make_leases() {
  MutexLock lock(mutex_);
  const std::size_t count = copies_ ? options_.slots.device_slots : options_.slots.prefetch;
  for (std::size_t number = 0; number < count; ++number) {
    auto lease = std::make_unique<Lease>();
    lease->slot = number;
    if (copies_) {
      lease->memory = device_->allocate_device(batch_layout_.bytes());
      lease->base = lease->memory.data();
      for (std::size_t part = 0; part < options_.slots.micro_batches; ++part)
        lease->ready.push_back(device_->make_event());
      free_leases_.push_back(lease.get());
    } else {
      lease->host = hosts_[number].get();
      lease->base = lease->host->memory.data();
    }
    leases_.push_back(std::move(lease));
  }
  if (copies_)
    upload_ = std::make_unique<Upload>(device_, host_layout_, batch_layout_, fields_, options_);
}

Engine::~Engine() {
  const auto in_use = [](const std::unique_ptr<Lease>& lease) {
    return !wait_for_uses(*lease, std::chrono::nanoseconds(0));
  };
  if (std::none_of(leases_.begin(), leases_.end(), in_use)) return;
  // What the trainer's streams were given still reads the slots. This may be one of their threads,
  // so another one waits.
  std::thread([device = device_, hosts = std::move(hosts_), leases = std::move(leases_),
               upload = std::move(upload_)]() mutable {
    try {
      device->bind_thread();
    } catch (...) {
      // A device that fails has nothing to be bound to.
    }
    upload.reset();  // which may have work under way if the device failed
    for (const auto& lease : leases)
      while (!wait_for_uses(*lease, std::chrono::milliseconds(100))) continue;
  }).detach();
}

void Engine::start() {
  feeder_ = std::thread([self = shared_from_this()] {
    self->run_thread("upload", &Engine::feed, &Engine::feeder_done_);
  });
  try {
    reaper_ = std::thread([self = shared_from_this()] {
      self->run_thread("plan", &Engine::reap, &Engine::reaper_done_);
    });
  } catch (...) {
    {
      MutexLock lock(mutex_);
      reaper_done_ = true;
      close();
    }
    feeder_.join();
    throw;
  }
  runtime_.need(this, nodes_.workers(), nodes_.pools());  // last, since `stop` alone takes it back
}

std::optional<Engine::Stuck> Engine::stop(std::chrono::nanoseconds timeout) {
  const Clock::time_point deadline = deadline_after(timeout);
  const MutexLock stopping(stop_mutex_);
  {
    MutexLock lock(mutex_);
    close();
  }
  std::optional<Stuck> stuck;
  for (WorkerPool* pool : nodes_.pools())
    if (!pool->cancel(this, deadline - Clock::now())) {
      const std::optional<SampleMaker::Running> running = maker_.longest_running();
      stuck = running ? Stuck{running->stage, running->what}
                      : Stuck{"workers", "a worker does not come back"};
    }

  runtime_.release(this);

  bool feeder_done = false;
  bool reaper_done = false;
  {
    MutexLock lock(mutex_);
    while (!(feeder_done_ && reaper_done_))
      if (!stopper_wakes_.wait_until(mutex_, deadline)) break;
    feeder_done = feeder_done_;
    reaper_done = reaper_done_;
  }
  if (!feeder_done && !stuck)
    stuck = {"upload", "a call of device " + device_->name() + " does not return"};
  if (!reaper_done && !stuck)
    stuck = {"recycle",
             "work queued on device " + device_->name() + " that uses batches does not end"};
  if (feeder_.joinable()) feeder_done ? feeder_.join() : feeder_.detach();
  if (reaper_.joinable()) reaper_done ? reaper_.join() : reaper_.detach();
  return stuck;
}

void Engine::fail(const char* stage) noexcept {
  std::exception_ptr error;
  try {
    throw;
  } catch (const Error&) {
    error = std::current_exception();
  } catch (const std::exception& other) {
    error = std::make_exception_ptr(
        Error(ErrorCode::internal, std::string(stage) + " failed: " + other.what(), stage));
  } catch (...) {
    error = std::make_exception_ptr(
        Error(ErrorCode::internal,
              std::string(stage) + " failed: an exception that is no std::exception", stage));
  }
  MutexLock lock(mutex_);
  if (closed_.load(std::memory_order_relaxed)) return;
  error_ = std::move(error);
  close();
}

void Engine::close() {
  closed_.store(true,
                std::memory_order_relaxed);  // the mutex orders it for all who must not miss it
  feeder_wakes_.notify_all();
  reaper_wakes_.notify_all();
  trainer_wakes_.notify_all();
}

void Engine::throw_if_closed() const {
  if (error_) std::rethrow_exception(error_);
  if (closed_.load(std::memory_order_relaxed))
    throw Error(ErrorCode::stopped, "the pipeline was stopped");
}

State Engine::state() const {
  MutexLock lock(mutex_);
  return state_at(position_);
}

State Engine::state_at(std::uint64_t position) const {
  State state = identity_;
  state.position = position;
  return state;
}

Report Engine::report() const {
  const WorkCounts counts = maker_.counts();
  const std::vector<PipelineNodes::Made> made = nodes_.made_so_far(maker_);
  const std::optional<std::chrono::nanoseconds> delay = nodes_.delay();
  Report report;
  report.bad_records = maker_.bad_records();
  report.bad_record_list = maker_.bad_record_list();
  report.cores = std::min(runtime_.topology().cores, nodes_.cores());
  report.launch_cores = runtime_.launch_cores();
  report.warnings = runtime_.warnings();
  report.memory.pinned_bytes = hosts_.size() * host_layout_.bytes();
  report.memory.staging_bytes = copies_ ? upload_->staging_bytes() : 0;
  report.memory.device_bytes =
      copies_ ? leases_.size() * batch_layout_.bytes() + report.memory.staging_bytes : 0;

  MutexLock lock(mutex_);
  nodes_.fill(report, made, nodes_base_);
  report.samples_made = counts.samples - report_base_.samples;
  report.encoded_bytes = counts.encoded_bytes - report_base_.encoded_bytes;
  for (std::size_t stage = 0; stage < counts.stages.size(); ++stage) {
    Histogram since = counts.stages[stage];
    since.subtract(report_base_.stages[stage]);
    report.stages.push_back({.name = maker_.stages()[stage], .each = since.summary()});
    report.stages.back().busy_seconds = report.stages.back().each.total_ms / 1e3;
  }
  meter_.fill(report, Clock::now());
  const double active_seconds = report.active_workers * report.seconds;
  if (delay && delay_base_ && active_seconds > 0)
    report.worker_delay = std::min(
        std::chrono::duration<double>(*delay - *delay_base_).count() / active_seconds, 1.0);
  warn_of_delay(report);
  report.verdict = judge(report);
  return report;
}

void Engine::restart_report() {
  WorkCounts counts = maker_.counts();
  std::vector<PipelineNodes::Made> made = nodes_.made_so_far(maker_);
  const std::optional<std::chrono::nanoseconds> delay = nodes_.delay();
  MutexLock lock(mutex_);
  meter_.restart(Clock::now());
  report_base_ = std::move(counts);
  nodes_base_ = std::move(made);
  delay_base_ = delay;
  adapt_window_ = {.batches = adapt_window_.batches, .busy = maker_.busy()};
}

void Engine::note_road(Clock::time_point now) {
  if (closed_.load(std::memory_order_relaxed)) return;
  meter_.note(now, {.free_slots = free_hosts_.size(),
                    .ready_batches = made_ > next_handed_out_ ? made_ - next_handed_out_ : 0,
                    .active_workers = nodes_.concurrency(),
                    .nothing_to_begin = unbegun_.load(std::memory_order_relaxed) == 0});
}

}  // namespace millrace
