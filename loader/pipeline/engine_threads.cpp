// SPDX-License-Identifier: Apache-2.0
//
// The engine's threads: what moves slots along the road.
#include <algorithm>
#include <cstring>

#include "device/profiler_range.h"
#include "pipeline/batch_path.h"
#include "pipeline/engine.h"

namespace millrace {
namespace {

/// How long the reaper waits for a device before it looks around again.
constexpr std::chrono::milliseconds look_around{5};

}  // namespace

/// A planned batch, as work for a pool: one item per sample.
class Engine::BatchJob final : public Job {
 public:
  BatchJob(std::shared_ptr<Engine> engine, HostSlot& host)
      : engine_(std::move(engine)), host_(&host), items_(host.plan.size) {}
  std::size_t items() const override { return items_; }
  void run(std::size_t item, unsigned worker) override {
    engine_->make_sample(*host_, item, worker);
  }

 private:
  std::shared_ptr<Engine> engine_;
  HostSlot* host_;
  std::size_t items_;
};

void Engine::run_thread(const char* stage, void (Engine::*body)(), bool Engine::*done) noexcept {
  try {
    device_->bind_thread();
    (this->*body)();
  } catch (...) {
    fail(stage);
  }
  if (done == &Engine::reaper_done_) {
    try {
      drain();
    } catch (...) {
      // A device that fails while it is left has nothing under way any more.
    }
  }
  MutexLock lock(mutex_);
  this->*done = true;
  stopper_wakes_.notify_all();
}

// ---- feeder: made samples -> device, in plan order

void Engine::feed() {
  while (HostSlot* host = wait_for_planned()) {
    if (!upload_batch(*host)) return;
    note_conversions();
    if (!copies_) continue;
    MutexLock lock(mutex_);
    copying_.push_back(host);
    reaper_wakes_.notify_all();
  }
}

/// False when the road was closed.
bool Engine::upload_batch(HostSlot& host) {
  const bool staged = copies_ && upload_->staged();
  Lease* lease = nullptr;
  for (std::size_t part = 0; part < options_.slots.micro_batches; ++part) {
    if (!wait_for_part(host, part)) return false;
    if (copies_) host.copies[part].made_at = Clock::now();
    std::size_t copied = 0;
    if (staged) {  // needs no device slot, so does not wait for one
      const BatchPath path(watched());
      const ProfilerRange range(profiler_, "upload", host.plan.number);
      copied = upload_->copy(host, part);
      path.check("upload");
    }
    if (lease == nullptr) {
      lease = copies_ ? wait_for_lease(host.plan.number) : leases_[host.number].get();
      if (lease == nullptr) return false;
    }
    upload_part(host, *lease, part, copied);
  }
  return true;
}

HostSlot* Engine::wait_for_planned() {
  for (;;) {
    const bool converting = copies_ && upload_->converting();
    if (converting) note_conversions();
    MutexLock lock(mutex_);
    if (closed_.load(std::memory_order_relaxed)) return nullptr;
    if (!planned_.empty()) {
      HostSlot* host = planned_.front();
      planned_.pop_front();
      return host;
    }
    if (converting)
      feeder_wakes_.wait_until(mutex_, Clock::now() + look_around);
    else
      feeder_wakes_.wait(mutex_);
  }
}

bool Engine::wait_for_part(const HostSlot& host, std::size_t part) {
  const Clock::time_point begin = Clock::now();
  MutexLock lock(mutex_);
  while (!closed_.load(std::memory_order_relaxed)) {
    if (host.unmade[part].load(std::memory_order_acquire) == 0) {
      meter_.waited_for_samples(begin, Clock::now(), host.plan.number);
      return true;
    }
    feeder_wakes_.wait(mutex_);
  }
  return false;
}

Lease* Engine::wait_for_lease(std::uint64_t batch) {
  const Clock::time_point begin = Clock::now();
  MutexLock lock(mutex_);
  while (!closed_.load(std::memory_order_relaxed)) {
    if (!free_leases_.empty()) {
      Lease* lease = free_leases_.front();
      free_leases_.pop_front();
      lease->slot_wait_begin = begin;
      lease->slot_wait_end = Clock::now();
      meter_.waited_for_device_slot(begin, lease->slot_wait_end, batch);
      return lease;
    }
    feeder_wakes_.wait(mutex_);
  }
  return nullptr;
}

/// Of it, `copied` bytes are on their way already.
void Engine::upload_part(HostSlot& host, Lease& lease, std::size_t part, std::size_t copied) {
  const Clock::time_point began = Clock::now();
  const BatchPath path(watched());
  const ProfilerRange range(profiler_, "upload", host.plan.number);
  const std::size_t begin = std::min(part_begin(part), host.plan.size);
  const std::size_t end = std::min(part_begin(part + 1), host.plan.size);
  if (part == 0) {
    lease.plan = host.plan;
    lease.planned_at = host.planned_at;
    lease.parts_taken.store(0, std::memory_order_relaxed);
    lease.stream = nullptr;
    lease.records.indices.resize(host.plan.size);
    lease.records.valid.resize(host.plan.size);
  }
  if (copies_) copied += upload_->deliver(host, lease, part);
  if (part == 0) lease.used = 0;
  std::copy_n(host.records.indices.begin() + static_cast<std::ptrdiff_t>(begin), end - begin,
              lease.records.indices.begin() + static_cast<std::ptrdiff_t>(begin));
  std::copy_n(host.records.valid.begin() + static_cast<std::ptrdiff_t>(begin), end - begin,
              lease.records.valid.begin() + static_cast<std::ptrdiff_t>(begin));
  path.check("upload");

  MutexLock lock(mutex_);
  meter_.uploaded(began, Clock::now(), host.plan.number, copied);
  lease.parts_ready = part + 1;
  if (part == 0) {
    lease.released_early = false;
    ready_.push_back(&lease);
  }
  if (lease.released_early && lease.parts_ready == options_.slots.micro_batches) recycle(lease);
  trainer_wakes_.notify_all();
}

void Engine::note_conversions() {
  if (!copies_) return;
  conversions_.clear();
  upload_->take_conversions(conversions_);
  if (conversions_.empty()) return;
  MutexLock lock(mutex_);
  for (const RoadMeter::StreamWork& conversion : conversions_) meter_.converted(conversion);
}

// ---- reaper: free host slots -> plans for the workers

void Engine::reap() {
  for (;;) {
    if (HostSlot* host = take_free_host()) {
      plan(*host);
    } else if (!return_one_host()) {
      return;
    }
  }
}

HostSlot* Engine::take_free_host() {
  MutexLock lock(mutex_);
  if (closed_.load(std::memory_order_relaxed) || free_hosts_.empty() ||
      !schedule_.batch(next_planned_))
    return nullptr;
  HostSlot* host = free_hosts_.front();
  free_hosts_.pop_front();
  note_road(Clock::now());
  return host;
}

/// Sleeps until there may be something to plan; returns the next host slot that streams have let
/// go. False when the run is closed.
bool Engine::return_one_host() {
  HostSlot* copying = nullptr;
  Lease* releasing = nullptr;
  {
    MutexLock lock(mutex_);
    if (closed_.load(std::memory_order_relaxed)) return false;
    if (!copying_.empty()) {
      copying = copying_.front();
    } else if (!releasing_.empty()) {
      releasing = releasing_.front();
      releasing_.pop_front();
    } else {
      if (free_hosts_.empty() || !schedule_.batch(next_planned_)) reaper_wakes_.wait(mutex_);
      return !closed_.load(std::memory_order_relaxed);
    }
  }
  const BatchPath path(watched());
  if (copying != nullptr) {
    if (!copying->copies.back().end->wait(look_around)) return true;
    for (HostSlot::PartCopy& part : copying->copies) {
      part.began_at = part.begin->passed_at();
      part.ended_at = part.end->passed_at();
    }
    path.check("recycle");
    MutexLock lock(mutex_);
    note_copies(*copying);
    copying_.pop_front();
    free_hosts_.push_back(copying);
    note_road(Clock::now());
    return true;
  }
  bool free = true;
  for (std::size_t use = 0; use < releasing->used && free; ++use)
    free = releasing->uses[use].done->wait(look_around);
  path.check("recycle");
  MutexLock lock(mutex_);
  if (free) {
    free_hosts_.push_back(releasing->host);
    note_road(Clock::now());
  } else {
    releasing_.push_back(releasing);
  }
  return true;
}

void Engine::note_copies(const HostSlot& host) {
  for (const HostSlot::PartCopy& part : host.copies)
    if (part.began_at && part.ended_at)
      meter_.copied({part.made_at, *part.began_at, *part.ended_at, host.plan.number});
}

void Engine::plan(HostSlot& host) {
  const Clock::time_point began = Clock::now();
  const BatchPath path(watched());
  const ProfilerRange range(profiler_, "plan", next_planned_);
  host.plan = *schedule_.batch(next_planned_);
  const std::size_t size = host.plan.size;
  host.positions.resize(size);
  host.records.indices.resize(size);
  host.records.valid.resize(size);
  for (std::size_t sample = 0; sample < size; ++sample) {
    host.positions[sample] = schedule_.position(host.plan, sample);
    host.records.valid[sample] = schedule_.is_padding(host.plan, sample) ? 0 : 1;
  }
  sampler_.draw(host.positions, host.records.indices);
  for (std::size_t part = 0; part < options_.slots.micro_batches; ++part)
    host.unmade[part].store(std::min(part_begin(part + 1), size) - std::min(part_begin(part), size),
                            std::memory_order_relaxed);
  prefetch_records(next_planned_ + options_.slots.read_ahead);
  ++next_planned_;
  path.check("plan");

  auto job = std::make_shared<BatchJob>(shared_from_this(), host);
  MutexLock lock(mutex_);
  if (closed_.load(std::memory_order_relaxed)) return;  // the pools may be gone
  host.planned_at = Clock::now();
  meter_.planned(began, host.planned_at, host.plan.number);
  host.parts_unmade = 0;
  for (const std::atomic<std::size_t>& part : host.unmade)
    host.parts_unmade += part.load(std::memory_order_relaxed) > 0 ? 1 : 0;
  if (host.parts_unmade == 0) ++made_;
  unbegun_.fetch_add(size, std::memory_order_relaxed);
  planned_.push_back(&host);
  note_road(host.planned_at);
  feeder_wakes_.notify_all();
  nodes_.pool_of(host.number).submit(this, std::move(job), nodes_.help());
}

void Engine::prefetch_records(std::uint64_t last) {
  for (; next_prefetched_ <= last; ++next_prefetched_) {
    const std::optional<BatchPlan> plan = schedule_.batch(next_prefetched_);
    if (!plan) return;
    prefetch_indices_.resize(plan->size);
    for (std::size_t sample = 0; sample < plan->size; ++sample)
      prefetch_indices_[sample] = schedule_.position(*plan, sample);
    sampler_.draw(prefetch_indices_, prefetch_indices_);
    dataset_->prefetch(prefetch_indices_);
  }
}

/// Waits until nothing reads or writes the slots any more that this pipeline or its streams' users
/// have queued.
void Engine::drain() {
  {
    MutexLock lock(mutex_);
    while (!feeder_done_) stopper_wakes_.wait(mutex_);
  }
  if (copies_) upload_->drain();
  std::vector<const Lease*> returned;
  {
    MutexLock lock(mutex_);
    returned.assign(free_leases_.begin(), free_leases_.end());
    returned.insert(returned.end(), releasing_.begin(), releasing_.end());
  }
  for (const Lease* lease : returned)
    while (!wait_for_uses(*lease, look_around)) continue;
}

// ---- workers

void Engine::make_sample(HostSlot& host, std::size_t sample, unsigned worker) noexcept {
  if (closed_.load(std::memory_order_relaxed)) return;
  if (unbegun_.fetch_sub(1, std::memory_order_relaxed) == 1) {
    MutexLock lock(mutex_);
    note_road(Clock::now());
  }
  try {
    const BatchPath path(watched());
    const SampleMaker::Made made = maker_.make({host.memory.data(), sample, host.positions[sample],
                                                host.records.indices[sample], host.plan.number},
                                               worker);
    host.records.indices[sample] = made.record;
    if (!made.valid) host.records.valid[sample] = 0;
    const auto write = [&](std::size_t field, const auto& value) {
      std::memcpy(host_layout_.sample(host.memory.data(), field, sample).data, &value,
                  sizeof value);
    };
    if (fields_.index()) write(*fields_.index(), host.records.indices[sample]);
    if (fields_.valid()) write(*fields_.valid(), host.records.valid[sample]);
    nodes_.made(host.number, worker);
    path.check("make");
  } catch (...) {
    fail("make");
    return;
  }
  if (host.unmade[parts_.of(sample)].fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  MutexLock lock(mutex_);
  if (--host.parts_unmade == 0) {
    ++made_;
    note_road(Clock::now());
  }
  feeder_wakes_.notify_all();
}

}  // namespace millrace
