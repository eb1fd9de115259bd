// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/errno_text.h>
#include <millrace/detail/worker_pool.h>
#include <millrace/error.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/pool_workers.h"

namespace millrace {
namespace {

/// Address space that oneTBB takes for an arena and the threads that enter it. If the system
/// refuses it when threads enter the arena, oneTBB aborts. Version 2022.1 instead waits forever for
/// a lock that it holds itself.
constexpr std::size_t arena_bytes = std::size_t{4} << 20;

/// Throws `Error` (`io`) if the system refuses `arena_bytes` of address space.
void check_room_for_arena(unsigned workers) {
  void* const room =
      mmap(nullptr, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room != MAP_FAILED) {
    munmap(room, arena_bytes);
    return;
  }
  const std::string reason = errno_text(errno);
  throw Error(ErrorCode::io, "a pool of " + std::to_string(workers) +
                                 " workers cannot be started: the system refuses " +
                                 std::to_string(arena_bytes) + " bytes of address space: " +
                                 reason + "; take fewer workers, or raise the limit (ulimit -v)");
}

}  // namespace

WorkerPool::WorkerPool(unsigned first_worker, unsigned workers, const std::vector<int>& cpus,
                       std::optional<int> node)
    : first_worker_(first_worker), workers_(workers), node_(node) {
  if (workers == 0)
    throw Error(ErrorCode::invalid_argument, "a worker pool needs at least one worker");
  impl_ = std::make_shared<PoolWorkers>(first_worker, workers, cpus);
  try {
    start_threads();
    // The threads enter the arena only after this. Their stacks take address space, too.
    check_room_for_arena(workers);
  } catch (...) {
    impl_->begin_stop();
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
  impl_->wait_until_started();
}

void WorkerPool::start_threads() try {
  threads_.reserve(workers_);
  for (unsigned number = 0; number < workers_; ++number)
    threads_.emplace_back([impl = impl_, number] { impl->work(number); });
} catch (const std::system_error& error) {
  throw Error(ErrorCode::io,
              "thread " + std::to_string(threads_.size() + 1) + " of " + std::to_string(workers_) +
                  " workers cannot be started: " + error.what() + "; take fewer workers");
}

WorkerPool::~WorkerPool() { stop(Clock::now() + std::chrono::milliseconds(500)); }

void WorkerPool::begin_stop() {
  if (impl_->is_owner_process()) impl_->begin_stop();
}

void WorkerPool::stop(Clock::time_point deadline) {
  if (threads_.empty()) return;
  // A child of fork() has no threads to join.
  if (!impl_->is_owner_process()) return leak(std::exchange(threads_, {}));
  impl_->begin_stop();
  impl_->wait_until_stopped(deadline);
  for (std::size_t number = 0; number < threads_.size(); ++number)
    impl_->has_ended(number) ? threads_[number].join() : threads_[number].detach();
  threads_.clear();
}

void WorkerPool::help_each_other(const std::vector<WorkerPool*>& pools) {
  for (std::size_t pool = 0; pool < pools.size(); ++pool) {
    PoolWorkers::Others others;  // each pool has them in another order
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
