// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slots/slot_queues.h"

#include <algorithm>
#include <utility>

#include "pipeline/slots/run_error.h"

namespace millrace {
namespace {

template <typename Slot>
Slot* pop(std::deque<Slot*>& queue) {
  Slot* slot = queue.front();
  queue.pop_front();
  return slot;
}

}  // namespace

SlotQueues::SlotQueues(const Run& run, Slots slots, RunMeter meter)
    : run_(run),
      slots_(std::move(slots)),
      out_of_memory_error_(std::make_exception_ptr(
          Error(ErrorCode::internal, "the run failed with no memory left for its error message"))),
      progress_{run.first, run.first, run.first, run.first, run.begin},
      meter_(std::move(meter)) {
  MutexLock lock(mutex_);
  // If a run with `epoch_break` begins at the start of an epoch, `hand_out` calls `open_epoch`.
  if (run_.epoch_break == 0 || run_.first % run_.epoch_break != 0) open_epoch();
  for (const auto& host : slots_.hosts) {
    host->unmade = std::vector<std::atomic<std::size_t>>(run_.micro_batches.count);
    host->packed = std::vector<PackedRoom>(run_.micro_batches.count);
    host->made.resize(run_.micro_batches.count);
    queues_.free.push_back(host.get());
  }
}

SlotQueues::~SlotQueues() { free_when_unused(std::move(slots_)); }

void SlotQueues::add_output(std::unique_ptr<OutputSlot> output) {
  MutexLock lock(mutex_);
  output->slot = slots_.outputs.size();
  if (output->host == nullptr) queues_.free_outputs.push_back(output.get());
  slots_.outputs.push_back(std::move(output));
}

// ---- calls of the plan-recycle thread

HostSlot* SlotQueues::take_free() {
  MutexLock lock(mutex_);
  if (closed() || !may_plan()) return nullptr;
  HostSlot* host = pop(queues_.free);
  change(*host, HostState::free, HostState::planning, "take_free");
  host->plan.number = progress_.planned++;
  note_queue_lengths(Clock::now());
  return host;
}

bool SlotQueues::planned(HostSlot& host, Clock::time_point began, unsigned workers) {
  MutexLock lock(mutex_);
  change(host, HostState::planning, HostState::planned, "planned");
  if (closed()) return false;
  progress_.planned += host.plan.skipped_numbers;
  host.begin_making(run_.micro_batches);
  if (host.micro_batches_unmade == 0) ++progress_.made;
  const Clock::time_point now = Clock::now();
  host.planned_at = began;  // not `now`: planning may have waited long for a record stream
  meter_.planned(began, now, host.plan.number);
  meter_.note_workers(now, workers);
  unbegun_.fetch_add(host.plan.size, std::memory_order_relaxed);
  queues_.planned.push_back(&host);
  note_queue_lengths(now);
  if (host.made.front()) made_condition_.notify_all();  // the first micro-batch has no samples
  return true;
}

bool SlotQueues::wait_for_leaving(std::vector<HostSlot*>& leaving) {
  MutexLock lock(mutex_);
  while (!closed() && queues_.leaving.empty() && !may_plan()) plan_recycle_condition_.wait(mutex_);
  leaving.assign(queues_.leaving.begin(), queues_.leaving.end());
  return !closed();
}

void SlotQueues::free_host(HostSlot& host) {
  MutexLock lock(mutex_);
  change(host, HostState::leaving, HostState::free, "free_host");
  std::erase(queues_.leaving, &host);
  queues_.free.push_back(&host);
  for (const HostSlot::Copy& copy : host.copies)
    if (copy.began_at && copy.ended_at)
      meter_.copied({copy.made_at, *copy.began_at, *copy.ended_at, host.plan.number});
  note_queue_lengths(Clock::now());
}

// ---- calls of the workers

bool SlotQueues::begin_sample(std::size_t samples) {
  if (closed()) return false;
  if (unbegun_.fetch_sub(samples, std::memory_order_relaxed) == samples) {
    MutexLock lock(mutex_);
    note_queue_lengths(Clock::now());
  }
  return true;
}

void SlotQueues::sample_made(HostSlot& host, std::size_t sample, std::size_t samples,
                             const std::function<void()>& finish) {
  const std::size_t number = run_.micro_batches.of(sample);
  const std::size_t before = host.unmade[number].fetch_sub(samples, std::memory_order_acq_rel);
  if (before > samples) return;
  if (finish) finish();
  std::shared_ptr<const void> records;  // released after the mutex
  NotifyAfterUnlock notify;
  MutexLock lock(mutex_);
  require(before == samples && host.state == HostState::planned && !host.made[number], host,
          "sample_made");
  host.made[number] = true;
  if (--host.micro_batches_unmade == 0) {
    ++progress_.made;
    if (!run_.keeps_records) records.swap(host.records_held);
    note_queue_lengths(Clock::now());
  }
  if (queues_.planned.front() == &host && host.next_to_upload == number)
    notify.add(made_condition_);
}

// ---- calls of the upload thread

std::optional<SlotQueues::ReadyMicroBatch> SlotQueues::next_made(Clock::time_point since,
                                                                 Clock::time_point until) {
  MutexLock lock(mutex_);
  while (!closed()) {
    if (!queues_.planned.empty() && queues_.planned.front()->next_is_made()) {
      HostSlot& host = *queues_.planned.front();
      meter_.waited("wait for samples", std::max(since, host.planned_at), Clock::now(),
                    host.plan.number);
      const ReadyMicroBatch made{&host, host.next_to_upload};
      if (++host.next_to_upload == run_.micro_batches.count) queues_.planned.pop_front();
      return made;
    }
    if (!made_condition_.wait_until(mutex_, until)) break;
  }
  return std::nullopt;
}

OutputSlot* SlotQueues::wait_for_output(std::uint64_t batch) {
  const Clock::time_point begin = Clock::now();
  MutexLock lock(mutex_);
  while (!closed() && queues_.free_outputs.empty()) output_condition_.wait(mutex_);
  if (closed()) return nullptr;
  OutputSlot* output = pop(queues_.free_outputs);
  change(*output, OutputSlotState::free, OutputSlotState::filling, "wait_for_output");
  output->slot_wait_begin = begin;
  output->slot_wait_end = Clock::now();
  meter_.waited("wait for device slot", begin, output->slot_wait_end, batch);
  return output;
}

void SlotQueues::begin_filling(OutputSlot& output) {
  MutexLock lock(mutex_);
  change(output, OutputSlotState::free, OutputSlotState::filling, "begin_filling");
}

void SlotQueues::micro_batch_enqueued(OutputSlot& output, const HostSlot& host,
                                      std::size_t micro_batch, Clock::time_point began,
                                      std::size_t bytes) {
  NotifyAfterUnlock notify;
  MutexLock lock(mutex_);
  require(micro_batch < host.next_to_upload, host, "micro_batch_enqueued");
  if (micro_batch == 0) {
    change(output, OutputSlotState::filling, OutputSlotState::ready, "micro_batch_enqueued");
    output.micro_batches_enqueued = 0;
    queues_.ready.push_back(&output);
  }
  require(output.micro_batches_enqueued == micro_batch && output.state >= OutputSlotState::ready,
          output, "micro_batch_enqueued");
  ++output.micro_batches_enqueued;
  meter_.uploaded(began, Clock::now(), host.plan.number, bytes);
  if (output.state == OutputSlotState::returned && all_enqueued(output)) recycle(output, notify);
  notify.add(micro_batch_condition_);
  if (all_enqueued(output)) notify.add(batch_condition_);
}

void SlotQueues::leave(HostSlot& host) {
  NotifyAfterUnlock notify;
  MutexLock lock(mutex_);
  set_leaving(host, "leave", notify);
}

void SlotQueues::set_leaving(HostSlot& host, const char* call, NotifyAfterUnlock& notify) {
  require(host.next_to_upload == run_.micro_batches.count, host, call);
  change(host, HostState::planned, HostState::leaving, call);
  queues_.leaving.push_back(&host);
  notify.add(plan_recycle_condition_);
}

void SlotQueues::converted(const std::vector<RunMeter::StreamWork>& conversions) {
  MutexLock lock(mutex_);
  for (const RunMeter::StreamWork& conversion : conversions) meter_.converted(conversion);
}

// ---- calls of the trainer

OutputSlot* SlotQueues::hand_out(const NextRequest& request) {
  const Clock::time_point asked = Clock::now();
  const Clock::time_point deadline =
      request.timeout ? deadline_after(*request.timeout) : Clock::time_point::max();
  Condition& condition = request.in_micro_batches ? micro_batch_condition_ : batch_condition_;
  MutexLock lock(mutex_);
  for (;;) {
    throw_error();
    if (progress_.handed_out == progress_.plan_end && progress_.plan_end < run_.end) {
      open_epoch();
      plan_recycle_condition_.notify_one();
    }
    if (!queues_.ready.empty() &&
        (request.in_micro_batches || all_enqueued(*queues_.ready.front())))
      break;
    if (queues_.ready.empty() && progress_.handed_out >= run_.end) return nullptr;
    const bool exhausted = queues_.ready.empty() && progress_.live == slots_.outputs.size();
    if ((exhausted && !request.timeout) ||
        (!condition.wait_until(mutex_, deadline) && Clock::now() >= deadline)) {
      meter_.timed_out(Clock::now() - asked);
      refuse_waiting(exhausted, request);
    }
  }
  const Clock::time_point now = Clock::now();
  OutputSlot& output = *pop(queues_.ready);
  change(output, OutputSlotState::ready, OutputSlotState::live, "hand_out");
  ++progress_.live;
  progress_.handed_out += 1 + output.plan.skipped_numbers;
  progress_.skipped += output.plan.skipped_numbers;
  if (progress_.batches_out() >= run_.forbids_blocking_from)
    forbids_blocking_.store(true, std::memory_order_relaxed);
  progress_.position = {output.plan.position_after, output.plan.window_after};
  output.shares.store(1, std::memory_order_relaxed);  // the slot has no other owner yet
  output.stream = request.stream;
  output.micro_batches_taken.store(request.in_micro_batches ? 0 : run_.micro_batches.count,
                                   std::memory_order_relaxed);
  meter_.handed_out({asked, now, output.planned_at, output.slot_wait_begin, output.slot_wait_end,
                     output.plan.number, output.plan.size});
  note_queue_lengths(now);
  return &output;
}

void SlotQueues::refuse_waiting(bool exhausted, const NextRequest& request) const {
  const std::string held =
      std::to_string(progress_.live) + " live batches hold every " + message_words_.kind + " slot";
  if (!request.timeout)
    throw Error(ErrorCode::slots_exhausted,
                held + ", so no further batch can come; release one first, increase " +
                    message_words_.option +
                    ", or call next with a timeout if another thread will release one");
  const auto after = " after " + std::to_string(request.timeout->count() / 1'000'000) + " ms";
  if (exhausted) throw SlotsHeld(held + " still" + after);
  throw Error(ErrorCode::timeout, "the next batch is not made" + after);
}

void SlotQueues::wait_for_micro_batch(const OutputSlot& output, std::size_t micro_batch) {
  MutexLock lock(mutex_);
  require(output.state == OutputSlotState::live, output, "wait_for_micro_batch");
  while (output.micro_batches_enqueued <= micro_batch) {
    throw_error();
    micro_batch_condition_.wait(mutex_);
  }
}

void SlotQueues::micro_batch_taken(OutputSlot& output, std::size_t micro_batch,
                                   Clock::time_point asked, Clock::time_point got) {
  MutexLock lock(mutex_);
  require(output.state == OutputSlotState::live && micro_batch < output.micro_batches_enqueued,
          output, "micro_batch_taken");
  // Another thread has taken the micro-batch meanwhile.
  if (micro_batch < output.micro_batches_taken.load(std::memory_order_relaxed)) return;
  if (micro_batch > 0) meter_.waited_for_micro_batch(asked, got, output.plan.number);
  // When the last micro-batch with samples is taken, the ones without samples count as taken, too.
  const bool is_last = micro_batch + 1 == run_.micro_batches.filled(output.plan.size);
  output.micro_batches_taken.store(is_last ? run_.micro_batches.count : micro_batch + 1,
                                   std::memory_order_release);
}

bool SlotQueues::use(OutputSlot& output, Stream& stream, std::unique_ptr<Event> event) {
  MutexLock lock(mutex_);
  require(output.state == OutputSlotState::live, output, "use");
  if (output.use_on(stream) != nullptr) return true;
  if (output.used == output.uses.size()) {
    if (event == nullptr) return false;
    output.uses.push_back({.stream = nullptr, .done = std::move(event)});
  }
  output.uses[output.used++].stream = &stream;
  return true;
}

void SlotQueues::own_stream(OutputSlot& output, std::shared_ptr<Stream> stream) {
  MutexLock lock(mutex_);
  require(output.state == OutputSlotState::live, output, "own_stream");
  if (OutputSlot::Use* const use = output.use_on(*stream)) use->kept.swap(stream);
}

void SlotQueues::release(OutputSlot& output) {
  NotifyAfterUnlock notify;
  MutexLock lock(mutex_);
  change(output, OutputSlotState::live, OutputSlotState::returned, "release");
  --progress_.live;
  if (all_enqueued(output)) recycle(output, notify);
}

void SlotQueues::recycle(OutputSlot& output, NotifyAfterUnlock& notify) {
  change(output, OutputSlotState::returned, OutputSlotState::free, "recycle");
  if (output.host != nullptr) return set_leaving(*output.host, "release", notify);
  queues_.free_outputs.push_back(&output);
  notify.add(output_condition_);
}

RunPosition SlotQueues::position() const {
  MutexLock lock(mutex_);
  return progress_.position;
}

// ---- closing

void SlotQueues::fail(const char* stage, const Device* device) noexcept {
  std::exception_ptr error = out_of_memory_error_;
  try {
    error = run_error(stage, device);
  } catch (...) {
    // A new error could not be allocated: uses the reserved one.
  }
  close_with(std::move(error));
}

void SlotQueues::fail_and_throw(const char* stage, const Device* device) {
  fail(stage, device);
  throw_if_closed();
  throw Error(ErrorCode::internal, "the run was closed without an error", stage);
}

void SlotQueues::close_with(std::exception_ptr error) noexcept {
  MutexLock lock(mutex_);
  if (closed()) return;
  error_ = std::move(error);
  closed_.store(true, std::memory_order_relaxed);
  for (Condition* condition : {&made_condition_, &output_condition_, &plan_recycle_condition_,
                               &batch_condition_, &micro_batch_condition_})
    condition->notify_all();
}

void SlotQueues::throw_if_closed() const {
  MutexLock lock(mutex_);
  throw_error();
}

void SlotQueues::throw_error() const {
  if (error_) std::rethrow_exception(error_);
  if (closed()) throw Error(ErrorCode::stopped, "the pipeline was stopped");
}

bool SlotQueues::wait_for_uses(Clock::time_point deadline) const {
  std::vector<const OutputSlot*> returned;
  {
    MutexLock lock(mutex_);
    for (const auto& output : slots_.outputs)
      if (output->state == OutputSlotState::free) returned.push_back(output.get());
  }
  return std::ranges::all_of(returned, [=](auto* one) { return one->wait_for_uses(deadline); });
}

std::chrono::nanoseconds SlotQueues::stalled() const {
  MutexLock lock(mutex_);
  return meter_.stalled();
}

void SlotQueues::note_workers(unsigned active) {
  MutexLock lock(mutex_);
  if (!closed()) meter_.note_workers(Clock::now(), active);
}

void SlotQueues::begin_report(WorkerFigures base) {
  MutexLock lock(mutex_);
  note_queue_lengths(Clock::now());
  meter_.begin(Clock::now(), std::move(base));
}

std::pair<RunMeter, SlotQueues::Clock::time_point> SlotQueues::take_report(WorkerFigures base) {
  MutexLock lock(mutex_);
  return meter_.take(std::move(base));
}

void SlotQueues::note_queue_lengths(Clock::time_point now) {
  if (closed()) return;
  meter_.note(now,
              {.free_slots = queues_.free.size(),
               .ready_batches = progress_.made - std::min(progress_.made, progress_.batches_out()),
               .nothing_to_begin = unbegun_.load(std::memory_order_relaxed) == 0});
}

}  // namespace millrace
