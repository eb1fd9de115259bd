// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <millrace/error.h>
#include <millrace/worker_pool.h>
#include <pthread.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "base/mutex.h"
#include "runtime/job_queues.h"
#include "runtime/thread_binding.h"

namespace millrace {
namespace {

/// OpenMP's number of threads belongs to the thread that sets it: the rest of the process keeps its
/// own.
void keep_openmp_to_this_thread() {
  // There only where something else in the process uses OpenMP; millrace links none.
  if (void* found = dlsym(RTLD_DEFAULT, "omp_set_num_threads"))
    reinterpret_cast<void (*)(int)>(found)(1);
}

}  // namespace

/// No pool's mutex is taken while another's is held. A helper sleeps on its own pool's condition
/// only; a pool whose items others may help with from a moment on makes each of them an offer. Who
/// sees its pool's number of offers unchanged since before it looked around has missed none.
class WorkerPool::Impl : public std::enable_shared_from_this<Impl> {
 public:
  using Others = std::vector<std::weak_ptr<Impl>>;

  Impl(unsigned first_worker, unsigned workers, std::vector<int> cpus)
      : first_worker_(first_worker),
        workers_(workers),
        cpus_(std::move(cpus)),
        // All places are reserved for our threads; oneTBB is then asked for no workers of its own.
        arena_(static_cast<int>(workers), workers),
        concurrency_(workers),
        waits_(workers, 0) {}

  /// A worker's life. The pool may be gone already when a stuck item returns, so the thread holds
  /// this by itself.
  void work(unsigned number_in_pool) {
    pthread_setname_np(pthread_self(),
                       ("millrace-w" + std::to_string(first_worker_ + number_in_pool)).c_str());
    const int binding_error = cpus_.empty() ? 0 : bind_this_thread(cpus_);
    keep_openmp_to_this_thread();
    arena_.execute([&] {
      start(binding_error);
      std::optional<Work> work;
      while ((work = next(number_in_pool, std::move(work))))
        work->item.job->run(work->item.number, first_worker_ + number_in_pool);
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

  /// False when own threads still run after `timeout`.
  bool stop(std::chrono::nanoseconds timeout) {
    const auto deadline = deadline_after(timeout);
    MutexLock lock(mutex_);
    stopping_ = true;
    work_.notify_all();
    while (started_ > 0 || helped_ > 0)
      if (!changed_.wait_until(mutex_, deadline)) break;
    return started_ == 0;
  }

  void help(Others others) {
    MutexLock lock(mutex_);
    others_ = std::make_shared<const Others>(std::move(others));
    work_.notify_all();
  }

  void submit(const void* owner, std::shared_ptr<Job> job, Help help) {
    if (job->items() == 0) return;
    std::shared_ptr<const Others> offer;
    {
      MutexLock lock(mutex_);
      queues_.add(owner, std::move(job), help);
      work_.notify_all();
      offer = offer_now();
    }
    make_offer(offer);
  }

  bool cancel(const void* owner, std::chrono::nanoseconds timeout) {
    const auto deadline = deadline_after(timeout);
    std::deque<JobQueues::QueuedJob> dropped;  // ends after the lock
    MutexLock lock(mutex_);
    dropped = queues_.drop(owner);
    while (queues_.running(owner) > 0)
      if (!changed_.wait_until(mutex_, deadline)) return queues_.running(owner) == 0;
    return true;
  }

  void set_concurrency(unsigned workers) {
    std::shared_ptr<const Others> offer;
    {
      MutexLock lock(mutex_);
      concurrency_ = std::min(workers, workers_);
      work_.notify_all();
      offer = offer_now();
    }
    make_offer(offer);
  }

  unsigned concurrency() const {
    MutexLock lock(mutex_);
    return concurrency_;
  }

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
  struct Work {
    JobQueues::Item item{};
    /// Whose item it is, where that is another pool, which may end meanwhile.
    std::shared_ptr<Impl> helped{};
  };

  /// What a worker does next: an item of its own pool, after which an offer may be due, or a look
  /// at the others.
  struct Turn {
    bool stop = false;
    std::optional<JobQueues::Item> own{};
    std::shared_ptr<const Others> others{};
  };

  void start(int binding_error) {
    MutexLock lock(mutex_);
    thread_ids_.push_back(gettid());
    if (binding_error_ == 0) binding_error_ = binding_error;
    ++started_;
    changed_.notify_all();
  }

  /// Says that `finished` is done and gives the worker its next item, its own pool's first; none
  /// when the pool stops.
  std::optional<Work> next(unsigned number_in_pool, std::optional<Work> finished) {
    const void* ended = finished ? finished->item.owner : nullptr;
    if (finished) {
      finished->item.job.reset();  // a job may end here, which must not happen under a lock
      if (finished->helped) finished->helped->help_ended(std::exchange(ended, nullptr));
      finished.reset();
    }
    std::optional<std::uint64_t> offers_seen;
    for (;;) {
      Turn turn = wait_for_turn(number_in_pool, std::exchange(ended, nullptr), offers_seen);
      if (turn.stop) return std::nullopt;
      if (turn.own) {
        make_offer(turn.others);
        return Work{std::move(*turn.own)};
      }
      for (const std::weak_ptr<Impl>& other : *turn.others)
        if (const std::shared_ptr<Impl> helped = other.lock())
          if (std::optional<JobQueues::Item> item = helped->take_for_helper())
            return Work{std::move(*item), helped};
    }
  }

  Turn wait_for_turn(unsigned number_in_pool, const void* ended,
                     std::optional<std::uint64_t>& offers_seen) {
    MutexLock lock(mutex_);
    if (ended != nullptr) end(ended);
    for (bool waited = false; !stopping_; waited = true) {
      if (number_in_pool < concurrency_) {
        if (std::optional<JobQueues::Item> item = queues_.take(false)) {
          // Help was not wanted while this worker waited, or with the job that all of has begun
          // now.
          const bool may_be_news = waited || item->last;
          return {.own = std::move(item), .others = may_be_news ? offer_now() : nullptr};
        }
        if (others_ && offers_seen != offers_) {
          offers_seen = offers_;
          return {.others = others_};
        }
      }
      waits_[number_in_pool] = 1;
      work_.wait(mutex_);
      waits_[number_in_pool] = 0;
    }
    return {.stop = true};
  }

  void end(const void* owner) MILLRACE_REQUIRES(mutex_) {
    queues_.ended(owner);
    changed_.notify_all();
  }

  /// An item for another pool's worker.
  std::optional<JobQueues::Item> take_for_helper() {
    MutexLock lock(mutex_);
    if (!wants_help()) return std::nullopt;
    ++helped_;
    return queues_.take(true);
  }

  void help_ended(const void* owner) {
    MutexLock lock(mutex_);
    --helped_;
    end(owner);
  }

  /// There are items for others, and no worker here that waits for them. It may become true in
  /// `submit`, in `set_concurrency` and when a worker here begins an item: these make an offer.
  bool wants_help() const MILLRACE_REQUIRES(mutex_) {
    const auto active = waits_.begin() + static_cast<std::ptrdiff_t>(concurrency_);
    return !stopping_ && std::find(waits_.begin(), active, 1) == active && queues_.allows_help();
  }

  /// Whom to make an offer to, without the lock; null = nobody.
  std::shared_ptr<const Others> offer_now() const MILLRACE_REQUIRES(mutex_) {
    return others_ && wants_help() ? others_ : nullptr;
  }

  static void make_offer(const std::shared_ptr<const Others>& others) {
    if (others == nullptr) return;
    for (const std::weak_ptr<Impl>& one : *others)
      if (const std::shared_ptr<Impl> other = one.lock()) other->note_offer();
  }

  void note_offer() {
    MutexLock lock(mutex_);
    ++offers_;
    work_.notify_all();
  }

  const unsigned first_worker_;
  const unsigned workers_;
  const std::vector<int> cpus_;
  tbb::task_arena arena_;

  mutable Mutex mutex_;
  /// Wakes workers.
  Condition work_;
  /// Wakes those who wait for workers.
  Condition changed_;
  JobQueues queues_ MILLRACE_GUARDED_BY(mutex_);
  /// The pools that it helps, and that help it.
  std::shared_ptr<const Others> others_ MILLRACE_GUARDED_BY(mutex_);
  /// How often one of them made an offer.
  std::uint64_t offers_ MILLRACE_GUARDED_BY(mutex_) = 0;
  /// Items of this pool that workers of others run.
  unsigned helped_ MILLRACE_GUARDED_BY(mutex_) = 0;
  unsigned concurrency_ MILLRACE_GUARDED_BY(mutex_);
  /// Per worker: whether it waits for something to do.
  std::vector<char> waits_ MILLRACE_GUARDED_BY(mutex_);
  unsigned started_ MILLRACE_GUARDED_BY(mutex_) = 0;
  int binding_error_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool stopping_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::vector<pid_t> thread_ids_ MILLRACE_GUARDED_BY(mutex_);
};

WorkerPool::WorkerPool(unsigned first_worker, unsigned workers, const std::vector<int>& cpus,
                       std::optional<int> node)
    : first_worker_(first_worker), workers_(workers), node_(node) {
  if (workers == 0)
    throw Error(ErrorCode::invalid_argument, "a worker pool needs at least one worker");
  impl_ = std::make_shared<Impl>(first_worker, workers, cpus);
  try {
    for (unsigned number = 0; number < workers; ++number)
      threads_.emplace_back([impl = impl_, number] { impl->work(number); });
  } catch (const std::system_error& error) {
    impl_->stop(std::chrono::nanoseconds(0));
    for (std::thread& thread : threads_) thread.join();
    throw Error(ErrorCode::io,
                "thread " + std::to_string(threads_.size() + 1) + " of " + std::to_string(workers) +
                    " workers cannot be started: " + error.what() + "; take fewer workers");
  }
  impl_->wait_until_started();
}

WorkerPool::~WorkerPool() {
  const bool ended = impl_->stop(std::chrono::milliseconds(500));
  for (std::thread& thread : threads_) ended ? thread.join() : thread.detach();
}

void WorkerPool::help_each_other(const std::vector<WorkerPool*>& pools) {
  for (std::size_t pool = 0; pool < pools.size(); ++pool) {
    Impl::Others others;  // each looks at another one first
    for (std::size_t step = 1; step < pools.size(); ++step)
      others.push_back(pools[(pool + step) % pools.size()]->impl_);
    if (!others.empty()) pools[pool]->impl_->help(std::move(others));
  }
}

void WorkerPool::submit(const void* owner, std::shared_ptr<Job> job, Help help) {
  impl_->submit(owner, std::move(job), help);
}

bool WorkerPool::cancel(const void* owner, std::chrono::nanoseconds timeout) {
  return impl_->cancel(owner, timeout);
}

void WorkerPool::set_concurrency(unsigned workers) { impl_->set_concurrency(workers); }
unsigned WorkerPool::concurrency() const { return impl_->concurrency(); }
bool WorkerPool::bound() const { return impl_->bound(); }
std::string WorkerPool::binding_error() const { return impl_->binding_error(); }
std::optional<std::chrono::nanoseconds> WorkerPool::delay() const { return impl_->delay(); }

}  // namespace millrace
