// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/worker_pool.h>
#include <pthread.h>
#include <sched.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "mutex.h"

namespace millrace {
namespace {

/// 0, or the number of the error that kept it from being bound.
int bind_this_thread(const std::vector<int>& cpus) {
  const int most = *std::max_element(cpus.begin(), cpus.end()) + 1;
  cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(most));
  if (set == nullptr) return ENOMEM;
  const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
  const int error = pthread_setaffinity_np(pthread_self(), bytes, set);
  CPU_FREE(set);
  return error;
}

}  // namespace

class WorkerPool::Impl {
 public:
  Impl(unsigned first_worker, unsigned workers, std::vector<int> cpus)
      : first_worker_(first_worker),
        workers_(workers),
        cpus_(std::move(cpus)),
        // All places are reserved for our threads; oneTBB is then asked for no workers of its own.
        arena_(static_cast<int>(workers), workers),
        concurrency_(workers) {}

  /// A worker's life. The pool may be gone already when a stuck item returns, so the thread holds this by itself.
  void work(unsigned number_in_pool) {
    pthread_setname_np(pthread_self(), ("millrace-w" + std::to_string(first_worker_ + number_in_pool)).c_str());
    const int binding_error = cpus_.empty() ? 0 : bind_this_thread(cpus_);
    arena_.execute([&] {
      start(binding_error);
      std::optional<Item> item;
      while ((item = next(number_in_pool, std::move(item)))) item->job->run(item->number, first_worker_ + number_in_pool);
    });
    MutexLock lock(mutex_);
    --started_;
    changed_.notify_all();
  }

  /// Every thread then has its place in the arena, so that none enters it while another leaves.
  void wait_until_started() {
    MutexLock lock(mutex_);
    while (started_ < workers_) changed_.wait(mutex_);
  }

  /// False when threads still run after `timeout`.
  bool stop(std::chrono::nanoseconds timeout) {
    const auto deadline = deadline_after(timeout);
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    while (started_ > 0)
      if (!changed_.wait_until(mutex_, deadline)) return started_ == 0;
    return true;
  }

  void submit(const void* owner, std::shared_ptr<Job> job) {
    if (job->items() == 0) return;
    MutexLock lock(mutex_);
    auto queue = find(owner);
    if (queue == queues_.end()) queue = queues_.insert(queues_.end(), Queue{.owner = owner});
    queue->jobs.push_back(std::move(job));
    changed_.notify_all();
  }

  bool cancel(const void* owner, std::chrono::nanoseconds timeout) {
    const auto deadline = deadline_after(timeout);
    std::deque<std::shared_ptr<Job>> dropped;  // ends after the lock
    MutexLock lock(mutex_);
    auto queue = find(owner);
    if (queue == queues_.end()) return true;
    dropped.swap(queue->jobs);
    queue->next_item = 0;
    for (;;) {
      queue = find(owner);
      if (queue == queues_.end() || queue->running == 0) break;
      if (!changed_.wait_until(mutex_, deadline)) {
        queue = find(owner);
        if (queue != queues_.end() && queue->running > 0) return false;
      }
    }
    if (queue != queues_.end() && queue->jobs.empty()) erase(queue);
    return true;
  }

  void set_concurrency(unsigned workers) {
    MutexLock lock(mutex_);
    concurrency_ = std::min(workers, workers_);
    changed_.notify_all();
  }

  unsigned concurrency() const {
    MutexLock lock(mutex_);
    return concurrency_;
  }

  unsigned workers() const { return workers_; }

  std::optional<std::chrono::nanoseconds> delay() const {
    std::vector<pid_t> threads;
    {
      MutexLock lock(mutex_);
      threads = thread_ids_;
    }
    std::chrono::nanoseconds delay{0};
    for (const pid_t thread : threads) {
      // "time on a processor, time waiting for one, slices", the first two in nanoseconds
      std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/schedstat");
      std::int64_t ran = 0;
      std::int64_t waited = 0;
      if (!(file >> ran >> waited)) return std::nullopt;
      delay += std::chrono::nanoseconds(waited);
    }
    return delay;
  }

  bool bound() const {
    MutexLock lock(mutex_);
    return !cpus_.empty() && binding_error_ == 0;
  }

  std::string binding_error() const {
    MutexLock lock(mutex_);
    return binding_error_ == 0 ? std::string() : std::generic_category().message(binding_error_);
  }

 private:
  struct Item {
    const void* owner;
    std::shared_ptr<Job> job;
    std::size_t number;
  };
  /// The jobs of one owner; the front one's items are being given out.
  struct Queue {
    const void* owner = nullptr;
    std::deque<std::shared_ptr<Job>> jobs = {};
    std::size_t next_item = 0;
    unsigned running = 0;
  };
  using Queues = std::vector<Queue>;

  void start(int binding_error) {
    MutexLock lock(mutex_);
    thread_ids_.push_back(gettid());
    if (binding_error_ == 0) binding_error_ = binding_error;
    ++started_;
    changed_.notify_all();
  }

  /// Says that `finished` is done and gives the worker its next item; none when the pool stops.
  std::optional<Item> next(unsigned number_in_pool, std::optional<Item> finished) {
    const void* owner = finished ? finished->owner : nullptr;
    finished.reset();  // a job may end here, which must not happen under the lock
    MutexLock lock(mutex_);
    if (owner != nullptr) finish(owner);
    while (!stopping_) {
      if (number_in_pool < concurrency_)
        if (std::optional<Item> item = take()) return item;
      changed_.wait(mutex_);
    }
    return std::nullopt;
  }

  std::optional<Item> take() MILLRACE_REQUIRES(mutex_) {
    for (std::size_t tried = 0; tried < queues_.size(); ++tried) {
      turn_ = (turn_ + 1) % queues_.size();
      Queue& queue = queues_[turn_];
      if (queue.jobs.empty()) continue;
      Item item{queue.owner, queue.jobs.front(), queue.next_item};
      ++queue.running;
      if (++queue.next_item == item.job->items()) {
        queue.jobs.pop_front();
        queue.next_item = 0;
      }
      return item;
    }
    return std::nullopt;
  }

  void finish(const void* owner) MILLRACE_REQUIRES(mutex_) {
    const auto queue = find(owner);
    if (--queue->running > 0) return;
    if (queue->jobs.empty()) {
      erase(queue);
      changed_.notify_all();
    }
  }

  Queues::iterator find(const void* owner) MILLRACE_REQUIRES(mutex_) {
    return std::find_if(queues_.begin(), queues_.end(), [owner](const Queue& queue) { return queue.owner == owner; });
  }

  void erase(Queues::iterator queue) MILLRACE_REQUIRES(mutex_) {
    queues_.erase(queue);
    turn_ = 0;
  }

  const unsigned first_worker_;
  const unsigned workers_;
  const std::vector<int> cpus_;
  tbb::task_arena arena_;

  mutable Mutex mutex_;
  Condition changed_;
  Queues queues_ MILLRACE_GUARDED_BY(mutex_);
  std::size_t turn_ MILLRACE_GUARDED_BY(mutex_) = 0;
  unsigned concurrency_ MILLRACE_GUARDED_BY(mutex_);
  unsigned started_ MILLRACE_GUARDED_BY(mutex_) = 0;
  int binding_error_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool stopping_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::vector<pid_t> thread_ids_ MILLRACE_GUARDED_BY(mutex_);
};

WorkerPool::WorkerPool(unsigned first_worker, unsigned workers, const std::vector<int>& cpus) {
  if (workers == 0) throw Error(ErrorCode::invalid_argument, "a worker pool needs at least one worker");
  impl_ = std::make_shared<Impl>(first_worker, workers, cpus);
  for (unsigned number = 0; number < workers; ++number) threads_.emplace_back([impl = impl_, number] { impl->work(number); });
  impl_->wait_until_started();
}

WorkerPool::~WorkerPool() {
  const bool ended = impl_->stop(std::chrono::milliseconds(500));
  for (std::thread& thread : threads_) ended ? thread.join() : thread.detach();
}

void WorkerPool::submit(const void* owner, std::shared_ptr<Job> job) { impl_->submit(owner, std::move(job)); }

bool WorkerPool::cancel(const void* owner, std::chrono::nanoseconds timeout) { return impl_->cancel(owner, timeout); }

void WorkerPool::set_concurrency(unsigned workers) { impl_->set_concurrency(workers); }

unsigned WorkerPool::concurrency() const { return impl_->concurrency(); }

unsigned WorkerPool::workers() const { return impl_->workers(); }

bool WorkerPool::bound() const { return impl_->bound(); }

std::string WorkerPool::binding_error() const { return impl_->binding_error(); }

std::optional<std::chrono::nanoseconds> WorkerPool::delay() const { return impl_->delay(); }

}  // namespace millrace
