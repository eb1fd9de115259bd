// SPDX-License-Identifier: Apache-2.0
#include "runtime/pool_workers.h"

#include <dlfcn.h>
#include <millrace/detail/errno_text.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "runtime/thread_binding.h"

namespace millrace {
namespace {

/// Makes OpenMP use only the calling thread. The setting belongs to this thread, so the rest of the
/// process keeps its own.
void keep_openmp_to_this_thread() {
  // The symbol exists only if another library in the process uses OpenMP. millrace does not link
  // OpenMP.
  if (void* found = dlsym(RTLD_DEFAULT, "omp_set_num_threads"))
    reinterpret_cast<void (*)(int)>(found)(1);
}

}  // namespace

void PoolWorkers::work(unsigned number_in_pool) {
  pthread_setname_np(pthread_self(),
                     ("millrace-w" + std::to_string(first_worker_ + number_in_pool)).c_str());
  const int binding_error = cpus_.empty() ? 0 : bind_this_thread(cpus_);
  keep_openmp_to_this_thread();
  if (!wait_for_all_threads()) return;
  arena_.execute([&] {
    start(binding_error);
    std::optional<Work> work;
    while ((work = next(number_in_pool, std::move(work))))
      work->item.job->run(work->item.number, first_worker_ + number_in_pool);
  });
  MutexLock lock(mutex_);
  gone_[number_in_pool] = 1;
  --started_;
  changed_.notify_all();
}

bool PoolWorkers::wait_for_all_threads() {
  MutexLock lock(mutex_);
  while (!has_all_threads_ && !stopping_) changed_.wait(mutex_);
  return has_all_threads_;
}

void PoolWorkers::wait_until_started() {
  MutexLock lock(mutex_);
  has_all_threads_ = true;
  changed_.notify_all();
  while (started_ < workers_) changed_.wait(mutex_);
}

void PoolWorkers::begin_stop() {
  MutexLock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  parked_workers_.call_all(workers_);
}

void PoolWorkers::wait_until_stopped(Clock::time_point deadline) {
  MutexLock lock(mutex_);
  while (started_ > 0 || helped_ > 0)
    if (!changed_.wait_until(mutex_, deadline)) break;
}

bool PoolWorkers::has_ended(std::size_t number_in_pool) const {
  MutexLock lock(mutex_);
  return gone_[number_in_pool] != 0;
}

void PoolWorkers::help(Others others) {
  MutexLock lock(mutex_);
  others_ = std::make_shared<const Others>(std::move(others));
  ++offers_;
  parked_workers_.call_all(concurrency_);
}

void PoolWorkers::submit(const void* owner, std::shared_ptr<Job> job, Help help) {
  if (job->items() == 0) return;
  ParkedWorkers::Called called;
  Offer offer;
  {
    MutexLock lock(mutex_);
    queues_.add(owner, std::move(job), help);
    called = parked_workers_.call(concurrency_, queues_.count_up_to(ParkedWorkers::at_once));
    offer = offer_now();
  }
  called.wake();
  make(offer);
}

bool PoolWorkers::cancel(const void* owner, std::chrono::nanoseconds timeout) {
  const auto deadline = deadline_after(timeout);
  std::deque<JobQueues::QueuedJob> dropped;  // destroyed after unlocking
  MutexLock lock(mutex_);
  dropped = queues_.drop(owner);
  while (queues_.running(owner) > 0)
    if (!changed_.wait_until(mutex_, deadline)) return queues_.running(owner) == 0;
  return true;
}

void PoolWorkers::set_concurrency(unsigned workers) {
  Offer offer;
  {
    MutexLock lock(mutex_);
    concurrency_ = std::min(workers, workers_);
    ++offers_;
    parked_workers_.call_all(concurrency_);  // the workers called earlier may no longer be active
    offer = offer_now();
  }
  make(offer);
}

unsigned PoolWorkers::concurrency() const {
  MutexLock lock(mutex_);
  return concurrency_;
}

std::optional<std::chrono::nanoseconds> PoolWorkers::delay() const {
  std::vector<pid_t> threads;
  {
    MutexLock lock(mutex_);
    threads = thread_ids_;
  }
  std::chrono::nanoseconds delay{0};
  for (const pid_t thread : threads) {
    // Format: "time on a processor, time waiting for a processor, time slices". Times are in
    // nanoseconds.
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/schedstat");
    std::int64_t ran = 0;
    std::int64_t waited = 0;
    if (!(file >> ran >> waited)) return std::nullopt;
    delay += std::chrono::nanoseconds(waited);
  }
  return delay;
}

bool PoolWorkers::bound() const {
  MutexLock lock(mutex_);
  return !cpus_.empty() && binding_error_ == 0;
}

std::string PoolWorkers::binding_error() const {
  MutexLock lock(mutex_);
  return binding_error_ == 0 ? std::string() : errno_text(binding_error_);
}

void PoolWorkers::start(int binding_error) {
  MutexLock lock(mutex_);
  thread_ids_.push_back(gettid());
  if (binding_error_ == 0) binding_error_ = binding_error;
  ++started_;
  changed_.notify_all();
}

std::optional<PoolWorkers::Work> PoolWorkers::next(unsigned number_in_pool,
                                                   std::optional<Work> finished) {
  const void* ended = finished ? finished->item.owner : nullptr;
  if (finished) {
    finished->item.job.reset();  // this may destroy the job, which must not happen under a lock
    if (finished->helped) finished->helped->help_ended(std::exchange(ended, nullptr));
    finished.reset();
  }
  std::optional<std::uint64_t> offers_seen;
  for (;;) {
    Turn turn = wait_for_turn(number_in_pool, std::exchange(ended, nullptr), offers_seen);
    if (turn.stop) return std::nullopt;
    if (turn.pass_on) pass_on(*turn.pass_on);
    if (turn.own) {
      turn.called.wake();
      make(turn.offer);
      return Work{std::move(*turn.own)};
    }
    if (!turn.others) continue;
    for (const std::weak_ptr<PoolWorkers>& other : *turn.others)
      if (const std::shared_ptr<PoolWorkers> helped = other.lock())
        if (std::optional<JobQueues::Item> item = helped->take_for_helper(turn.waited))
          return Work{std::move(*item), helped};
  }
}

PoolWorkers::Turn PoolWorkers::wait_for_turn(unsigned number_in_pool, const void* ended,
                                             std::optional<std::uint64_t>& offers_seen) {
  MutexLock lock(mutex_);
  if (ended != nullptr) end(ended);
  bool waited = false;
  bool offered = false;
  while (!stopping_) {
    if (number_in_pool < concurrency_) {
      if (std::optional<JobQueues::Item> item = queues_.take(false)) {
        Turn turn{.own = std::move(item)};
        if (waited)
          turn.called =
              parked_workers_.call(concurrency_, queues_.count_up_to(ParkedWorkers::at_once));
        // This pool may want help now (`wants_help`): this worker no longer waits, or the front job
        // has changed.
        if (waited || turn.own->last) turn.offer = offer_now();
        if (offered) turn.pass_on = others_;
        return turn;
      }
      if (others_ && offers_seen != offers_) {
        offers_seen = offers_;
        return {.others = others_, .waited = waited};
      }
    } else if (offered) {
      return {.pass_on = others_};
    }
    offered = parked_workers_.sleep(number_in_pool, mutex_);
    waited = true;
  }
  return {.stop = true};
}

void PoolWorkers::end(const void* owner) {
  queues_.ended(owner);
  changed_.notify_all();
}

std::optional<JobQueues::Item> PoolWorkers::take_for_helper(bool called) {
  std::optional<JobQueues::Item> item;
  Offer offer;
  {
    MutexLock lock(mutex_);
    if (wants_help()) item = queues_.take(true);
    if (!item) return std::nullopt;
    ++helped_;
    if (called) offer = offer_now();
  }
  make(offer);
  return item;
}

void PoolWorkers::help_ended(const void* owner) {
  MutexLock lock(mutex_);
  --helped_;
  end(owner);
}

void PoolWorkers::offer_again() {
  Offer offer;
  {
    MutexLock lock(mutex_);
    offer = offer_now();
  }
  make(offer);
}

void PoolWorkers::make(Offer offer) {
  if (offer.others == nullptr) return;
  for (const std::weak_ptr<PoolWorkers>& one : *offer.others) {
    if (offer.items == 0) return;
    if (const std::shared_ptr<PoolWorkers> other = one.lock())
      offer.items -= other->note_offer(offer.items);
  }
}

void PoolWorkers::pass_on(const Others& others) {
  for (const std::weak_ptr<PoolWorkers>& one : others)
    if (const std::shared_ptr<PoolWorkers> other = one.lock()) other->offer_again();
}

std::size_t PoolWorkers::note_offer(std::size_t items) {
  ParkedWorkers::Called called;
  {
    MutexLock lock(mutex_);
    ++offers_;
    called = parked_workers_.call(concurrency_, items, true);
  }
  called.wake();
  return called.count();
}

}  // namespace millrace
