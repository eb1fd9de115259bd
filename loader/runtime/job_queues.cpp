// SPDX-License-Identifier: Apache-2.0
#include "runtime/job_queues.h"

#include <algorithm>
#include <utility>

namespace millrace {

void JobQueues::add(const void* owner, std::shared_ptr<Job> job, Help help) {
  auto queue = find(owner);
  if (queue == queues_.end()) {
    // The new queue is served after all others: it is inserted behind the queue that was served
    // last, and `turn_` then refers to the new one.
    if (!queues_.empty()) ++turn_;
    queue =
        queues_.insert(queues_.begin() + static_cast<std::ptrdiff_t>(turn_), Queue{.owner = owner});
  }
  queue->jobs.push_back({std::move(job), help});
}

std::optional<JobQueues::Item> JobQueues::take(bool for_helper) {
  for (std::size_t tried = 0; tried < queues_.size(); ++tried) {
    const std::size_t turn = (turn_ + 1 + tried) % queues_.size();
    Queue& queue = queues_[turn];
    if (queue.jobs.empty() || (for_helper && queue.jobs.front().help == Help::never)) continue;
    turn_ = turn;
    Item item{queue.owner, queue.jobs.front().job, queue.next_item};
    ++queue.running;
    if (++queue.next_item == item.job->items()) {
      item.last = true;
      queue.jobs.pop_front();
      queue.next_item = 0;
    }
    return item;
  }
  return std::nullopt;
}

bool JobQueues::allows_help() const {
  return std::any_of(queues_.begin(), queues_.end(), [](const Queue& queue) {
    return !queue.jobs.empty() && queue.jobs.front().help == Help::allowed;
  });
}

std::size_t JobQueues::count_up_to(std::size_t enough) const {
  std::size_t left = 0;
  for (const Queue& queue : queues_) {
    std::size_t begun = queue.next_item;
    for (const QueuedJob& queued : queue.jobs)
      if ((left += queued.job->items() - std::exchange(begun, 0)) >= enough) return enough;
  }
  return left;
}

void JobQueues::ended(const void* owner) {
  const auto queue = find(owner);
  --queue->running;
  erase_if_idle(queue);
}

unsigned JobQueues::running(const void* owner) const {
  const auto queue = std::ranges::find(queues_, owner, &Queue::owner);
  return queue == queues_.end() ? 0 : queue->running;
}

std::deque<JobQueues::QueuedJob> JobQueues::drop(const void* owner) {
  std::deque<QueuedJob> dropped;
  const auto queue = find(owner);
  if (queue == queues_.end()) return dropped;
  dropped.swap(queue->jobs);
  queue->next_item = 0;
  erase_if_idle(queue);
  return dropped;
}

JobQueues::Queues::iterator JobQueues::find(const void* owner) {
  return std::ranges::find(queues_, owner, &Queue::owner);
}

void JobQueues::erase_if_idle(Queues::iterator queue) {
  if (queue->running > 0 || !queue->jobs.empty()) return;
  const auto place = static_cast<std::size_t>(queue - queues_.begin());
  queues_.erase(queue);
  // `turn_` continues to refer to the queue that was served last. If that queue itself is erased,
  // `turn_` refers to the queue before it. So the next queue to be served stays the same.
  if (place <= turn_) turn_ = turn_ > 0 ? turn_ - 1 : std::max<std::size_t>(queues_.size(), 1) - 1;
}

}  // namespace millrace
