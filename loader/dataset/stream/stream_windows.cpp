// SPDX-License-Identifier: Apache-2.0
#include "dataset/stream/stream_windows.h"

#include <millrace/error.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include "base/exception_text.h"

namespace millrace {
namespace {

/// Stream of a window's random numbers. Samples and batches use streams 0 to 18.
constexpr std::uint32_t window_stream = 19;
/// Number of windows that fit into the memory together. More than one is needed, since a batch may
/// use records of several windows.
constexpr std::size_t windows_in_memory = 4;

std::size_t bytes_of(const StreamWindows::HeldRecord& held) {
  std::size_t bytes = sizeof held + held.record.key.size() + held.why_bad.size();
  for (const StreamRecord::Field& field : held.record.fields)
    bytes += sizeof field + field.name.size() + field.bytes.size();
  return bytes;
}

/// Returns a random permutation of `count` numbers (Fisher and Yates, as Knuth describes it).
std::vector<std::uint32_t> permutation(std::size_t count, std::optional<Random> random) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  if (!random) return order;
  for (std::size_t left = count; left > 1; --left)
    std::swap(order[left - 1], order[static_cast<std::size_t>(random->below(left))]);
  return order;
}

}  // namespace

StreamWindows::StreamWindows(std::shared_ptr<RecordStream> stream, const OnePassOptions& options,
                             const Run& run, std::shared_ptr<std::atomic<bool>> was_read)
    : stream_(std::move(stream)),
      name_(stream_->name()),
      options_(options),
      run_(run),
      was_read_(std::move(was_read)),
      restarts_(was_read_->load()),
      need_{run.epoch, 0, 0, 0} {}

// ---- the reading thread

void StreamWindows::read() noexcept {
  if (run_.epoch >= run_.end_epoch) return;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    reads_ = true;
  }
  stream_->run_ended_ = &ended_;
  read_epochs();
  stream_->run_ended_ = nullptr;
  MutexLock lock(mutex_);
  reads_ = false;
}

void StreamWindows::read_epochs() {
  std::uint64_t epoch = run_.epoch;
  try {
    if (!begin_stream()) return;
    for (std::uint64_t first = run_.first_record; read_epoch(epoch, first); first = 0) {
      if (++epoch == run_.end_epoch) return;
      next_record_ = 0;
      stream_->restart();
    }
  } catch (...) {
    note_failure(epoch);
  }
}

bool StreamWindows::begin_stream() {
  was_read_->store(true);
  if (restarts_) stream_->restart();
  // The restart may clear an interrupt that came before it, so `ended_` is checked. A later
  // interrupt makes `skip` throw.
  if (ended_) return false;
  next_record_ = run_.first_record;
  if (run_.first_record > 0) stream_->skip(run_.first_record);
  return true;
}

bool StreamWindows::read_epoch(std::uint64_t epoch, std::uint64_t first) {
  next_record_ = first;
  for (;;) {
    if (!begin_window(epoch, next_record_)) return false;
    for (bool full = false; !full; ++next_record_) {
      if (!wait_for_memory()) return false;
      std::shared_ptr<const HeldRecord> held = next();
      if (held == nullptr) {
        complete_window(true);
        return true;
      }
      if (next_record_ == stream_epoch_size)
        throw Error(ErrorCode::invalid_argument,
                    "an epoch has at most 2^40 records; end the stream before");
      full = add(std::move(held));
    }
    complete_window(false);
  }
}

std::shared_ptr<const StreamWindows::HeldRecord> StreamWindows::next() {
  const auto began = std::chrono::steady_clock::now();
  auto held = std::make_shared<HeldRecord>();
  try {
    if (!stream_->next(held->record)) held.reset();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_record) throw;
    held->record.fields.clear();
    held->why_bad = error.reason();
  }
  const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - began;
  busy_ns_.fetch_add(taken.count(), std::memory_order_relaxed);
  return held;
}

bool StreamWindows::begin_window(std::uint64_t epoch, std::uint64_t first) {
  MutexLock lock(mutex_);
  // The thread reads at most one window more than the planner needs. It reads only the first window
  // of the next epoch.
  const auto may_begin = [&]() MILLRACE_REQUIRES(mutex_) {
    const bool is_current = epoch == need_.epoch;
    if (!is_current && epoch > need_.epoch + 1) return false;
    const std::uint64_t needed = is_current ? std::max(need_.end, need_.known) : 0;
    return first < needed + options_.window_records;
  };
  while (!closed_ && !may_begin()) reader_condition_.wait(mutex_);
  if (closed_) return false;
  windows_.push_back({.epoch = epoch, .first = first});
  return true;
}

bool StreamWindows::wait_for_memory() {
  MutexLock lock(mutex_);
  while (!closed_ && held_bytes_ >= options_.memory_bytes) {
    waits_for_memory_ = true;
    planner_condition_.notify_all();
    reader_condition_.wait(mutex_);
  }
  waits_for_memory_ = false;
  return !closed_;
}

bool StreamWindows::add(std::shared_ptr<const HeldRecord> record) {
  const std::size_t bytes = bytes_of(*record);
  NotifyAfterUnlock notify;
  MutexLock lock(mutex_);
  Window& window = windows_.back();
  window.records.push_back(std::move(record));
  window.bytes += bytes;
  held_bytes_ += bytes;
  if (window.epoch == need_.epoch && window.end() == need_.known) notify.add(planner_condition_);
  if (window.records.size() >= options_.window_records) return true;
  const bool ends_early = window.bytes >= options_.memory_bytes / windows_in_memory;
  ended_early_ += ends_early ? 1 : 0;
  return ends_early;
}

void StreamWindows::complete_window(bool last) {
  Window* window = nullptr;
  {
    MutexLock lock(mutex_);
    window = &windows_.back();  // stays valid, since incomplete windows are not freed
  }
  const std::uint64_t position = window->epoch * stream_epoch_size + window->first;
  std::vector<std::uint32_t> order = permutation(
      window->records.size(),
      run_.shuffled ? std::optional(Random(run_.seed, position, window_stream)) : std::nullopt);
  NotifyAfterUnlock notify;
  MutexLock lock(mutex_);
  window->order = std::move(order);
  window->complete = true;
  window->last = last;
  ++completed_;
  notify.add(planner_condition_);
}

void StreamWindows::note_failure(std::uint64_t epoch) {
  const std::string where = name_ + ": record " + std::to_string(next_record_) + " of epoch " +
                            std::to_string(epoch) + " cannot be read: ";
  std::exception_ptr failure;
  try {
    throw;
  } catch (const Error& error) {
    failure = std::make_exception_ptr(error.with_context(where, "read", next_record_));
  } catch (const std::bad_alloc&) {
    failure = std::make_exception_ptr(
        Error(ErrorCode::internal, where + "there is not enough memory", "read", next_record_));
  } catch (...) {
    failure = std::make_exception_ptr(
        Error(ErrorCode::io, where + text_of_exception(), "read", next_record_));
  }
  NotifyAfterUnlock notify;
  MutexLock lock(mutex_);
  failure_ = std::move(failure);
  notify.add(planner_condition_);
}

void StreamWindows::close() noexcept {
  {
    MutexLock lock(mutex_);
    if (closed_ && !reads_) return;  // another run may already read the stream
    closed_ = true;
    ended_ = true;
    ++interrupts_;
    reader_condition_.notify_all();
    planner_condition_.notify_all();
  }
  was_read_->store(true);  // an interrupted stream must be restarted
  stream_->interrupt();
  MutexLock lock(mutex_);
  --interrupts_;
}

bool StreamWindows::is_over() const {
  MutexLock lock(mutex_);
  return closed_ && !reads_ && interrupts_ == 0;
}

// ---- the planner

std::optional<StreamWindows::Extent> StreamWindows::wait_for(const Need& need) {
  MutexLock lock(mutex_);
  while (!closed_ && !begin_epoch(need.epoch)) planner_condition_.wait(mutex_);
  need_ = need;
  while (!closed_) {
    // This also frees windows that precede the position at which the run resumes.
    free_windows();
    reader_condition_.notify_all();
    std::uint64_t complete = 0;
    std::uint64_t known = 0;
    for (const Window& window : windows_) {
      if (window.epoch != need.epoch) break;
      known = window.end();
      if (window.complete) complete = known;
      if (window.last) return Extent{known};
    }
    if (complete >= need.end && known >= need.known) return Extent{};
    if (failure_) std::rethrow_exception(failure_);
    if (waits_for_memory_ && holds_.empty() && held_bytes_ >= options_.memory_bytes)
      throw Error(ErrorCode::invalid_argument,
                  name_ + ": a batch and its windows take more than memory_bytes (" +
                      std::to_string(options_.memory_bytes) +
                      "); set OnePassOptions::memory_bytes higher, or make batches smaller",
                  "plan");
    planner_condition_.wait(mutex_);
  }
  return std::nullopt;
}

bool StreamWindows::begin_epoch(std::uint64_t epoch) {
  if (epoch == need_.epoch) return true;
  if (!holds_.empty()) return false;
  while (!windows_.empty() && windows_.front().epoch < epoch) {
    held_bytes_ -= windows_.front().bytes;
    windows_.pop_front();
  }
  return true;
}

/// Frees the complete windows that precede all needed and held records. The epoch's last window
/// stays, because it determines the length of the epoch.
void StreamWindows::free_windows() {
  const std::uint64_t low = holds_.empty() ? need_.begin : std::min(need_.begin, *holds_.begin());
  bool freed = false;
  while (!windows_.empty()) {
    const Window& window = windows_.front();
    if (window.epoch != need_.epoch || !window.complete || window.last || window.end() > low) break;
    held_bytes_ -= window.bytes;
    windows_.pop_front();
    freed = true;
  }
  if (freed) reader_condition_.notify_all();
}

void StreamWindows::draw(std::span<std::uint64_t> offsets) const {
  MutexLock lock(mutex_);
  for (std::uint64_t& offset : offsets) {
    const Window& window = at(offset);
    offset = window.first + window.order[static_cast<std::size_t>(offset - window.first)];
  }
}

std::uint64_t StreamWindows::window_of(std::uint64_t offset) const {
  MutexLock lock(mutex_);
  std::uint64_t first = offset;  // holds if the window has not begun
  for (const Window& window : windows_)
    if (window.epoch == need_.epoch && window.first <= offset && offset < window.end())
      first = window.first;
  return first;
}

std::shared_ptr<const void> StreamWindows::hold(std::uint64_t begin) {
  {
    MutexLock lock(mutex_);
    holds_.insert(begin);
  }
  // The function holds only a weak pointer to the windows, because a slot may outlive the run.
  const auto release = [windows = weak_from_this(), begin](const void*) {
    if (const auto alive = windows.lock()) alive->release(begin);
  };
  return {static_cast<const void*>(this), release};
}

void StreamWindows::release(std::uint64_t begin) {
  NotifyAfterUnlock notify;
  MutexLock lock(mutex_);
  holds_.erase(holds_.find(begin));
  free_windows();
  notify.add(planner_condition_);
}

// ---- the workers

/// Returns the window of a record of the current epoch.
const StreamWindows::Window& StreamWindows::at(std::uint64_t record) const {
  const auto is_before = [&](const Window& window) MILLRACE_REQUIRES(mutex_) {
    return window.epoch == need_.epoch && window.end() <= record;
  };
  const auto found = std::partition_point(windows_.begin(), windows_.end(), is_before);
  if (found == windows_.end() || found->epoch != need_.epoch || record < found->first)
    throw Error(ErrorCode::invalid_argument,
                name_ + ": record " + std::to_string(record) +
                    " is not in memory; records of a stream are read in a pipeline's order only",
                "", record);
  return *found;
}

std::shared_ptr<const StreamWindows::HeldRecord> StreamWindows::find(std::uint64_t record) const {
  MutexLock lock(mutex_);
  const Window& window = at(record);
  return window.records[static_cast<std::size_t>(record - window.first)];
}

std::uint64_t StreamWindows::replacement(Random& random, std::uint64_t record) const {
  MutexLock lock(mutex_);
  const Window& window = at(record);
  return window.first + random.below(window.records.size());
}

std::vector<std::string> StreamWindows::warnings() const {
  MutexLock lock(mutex_);
  if (ended_early_ == 0) return {};
  return {name_ + ": " + std::to_string(ended_early_) + " of " + std::to_string(completed_) +
          " shuffle windows have fewer than window_records (" +
          std::to_string(options_.window_records) +
          ") records, since their records took a quarter of memory_bytes (" +
          std::to_string(options_.memory_bytes) + "); set OnePassOptions::memory_bytes higher"};
}

}  // namespace millrace
