// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample_workers.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <latch>
#include <map>
#include <string>
#include <utility>

#include "pipeline/blocking_call_scope.h"
#include "runtime/runtime_services.h"

namespace millrace {
namespace {

/// Fewest batches and shortest time between two updates of the number of workers.
constexpr std::uint64_t adapt_batches = 8;
constexpr std::chrono::milliseconds adapt_time{100};

/// A worker takes at most as many samples at once as it makes in about this time, but at least one.
/// Each take costs a call of the pool and two updates of counts that all workers share.
constexpr std::chrono::microseconds take_time{20};
/// Fewest takes per worker and batch, so that the workers end at about the same time.
constexpr std::size_t fewest_takes = 4;
/// Largest number of samples that a worker takes at once when it interleaves samples. The last
/// sample of a take has nothing to be interleaved with.
constexpr std::size_t max_interleaved_take = 16;

double in_seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Returns the counts of `now` minus those of `base`, without zeros.
std::map<std::string, std::uint64_t> counts_since(
    const std::map<std::string, std::uint64_t>& now,
    const std::map<std::string, std::uint64_t>& base) {
  std::map<std::string, std::uint64_t> since;
  for (const auto& [text, count] : now) {
    const auto before = base.find(text);
    const std::uint64_t more = count - (before != base.end() ? before->second : 0);
    if (more > 0) since[text] = more;
  }
  return since;
}

}  // namespace

/// A planned batch as a job of a pool: each item is `at_a_time` samples.
class SampleWorkers::BatchJob final : public Job {
 public:
  BatchJob(std::shared_ptr<SampleWorkers> sample_workers, std::shared_ptr<SlotQueues> queues,
           HostSlot& host, std::size_t at_a_time)
      : sample_workers_(std::move(sample_workers)),
        queues_(std::move(queues)),
        host_(&host),
        samples_(host.plan.size),
        at_a_time_(at_a_time) {}
  std::size_t items() const override { return (samples_ + at_a_time_ - 1) / at_a_time_; }
  void run(std::size_t item, unsigned worker) override {
    const std::size_t first = item * at_a_time_;
    sample_workers_->make_samples(*queues_, *host_, first, std::min(at_a_time_, samples_ - first),
                                  worker);
  }

 private:
  std::shared_ptr<SampleWorkers> sample_workers_;
  std::shared_ptr<SlotQueues> queues_;
  HostSlot* host_;
  std::size_t samples_;
  std::size_t at_a_time_;
};

/// The items of one call of `share`. The calling thread runs items until none is left. Workers run
/// single items between the samples that they make.
class SampleWorkers::SharedJob final : public Job {
 public:
  /// `item` is not used any more once `finish` has returned.
  SharedJob(std::size_t items, const std::function<void(std::size_t)>& item)
      : items_(items), item_(&item), unfinished_(static_cast<std::ptrdiff_t>(items)) {}
  std::size_t items() const override { return items_ - 1; }
  void run(std::size_t, unsigned) override { take_one(); }
  void finish() {
    while (take_one()) continue;
    unfinished_.wait();
  }

 private:
  bool take_one() {
    const std::size_t number = next_.fetch_add(1, std::memory_order_relaxed);
    if (number >= items_) return false;
    (*item_)(number);
    unfinished_.count_down();
    return true;
  }

  const std::size_t items_;
  const std::function<void(std::size_t)>* const item_;
  std::atomic<std::size_t> next_{0};  // a mere counter: orders no other memory
  std::latch unfinished_;
};

SampleWorkers::SampleWorkers(std::unique_ptr<SampleMaker> maker, const BatchFields& fields,
                             const SlotLayout& layout, Runtime& runtime, PipelineNodes nodes)
    : maker_(std::move(maker)),
      fields_(fields),
      layout_(layout),
      runtime_(runtime),
      nodes_(std::move(nodes)),
      auto_workers_(nodes_.workers()) {}

void SampleWorkers::start() {
  MutexLock lock(mutex_);
  if (!dismissed_)
    RuntimeServices::of(runtime_).set_needed_workers(this, nodes_.workers(), nodes_.pools());
}

void SampleWorkers::submit(std::shared_ptr<SlotQueues> queues, HostSlot& host) {
  MutexLock lock(mutex_);
  if (dismissed_) return;
  auto job = std::make_shared<BatchJob>(shared_from_this(), std::move(queues), host,
                                        samples_at_a_time(host.plan.size));
  nodes_.pool_of(host.number).submit(this, std::move(job), nodes_.help());
}

std::size_t SampleWorkers::samples_at_a_time(std::size_t samples) {
  // The totals exclude samples that are made again: `make_again` uses a worker number outside this
  // range and does not count them.
  const std::uint64_t made = maker_->samples_by(0, runtime_.workers());
  const std::chrono::nanoseconds busy = maker_->busy_of(0, runtime_.workers());
  if (made > pace_.samples)
    pace_ = {(busy - pace_.busy) / static_cast<std::int64_t>(made - pace_.samples), made, busy};
  const auto samples_in_take_time =
      static_cast<std::size_t>(take_time / std::max(pace_.each, std::chrono::nanoseconds(1)));
  const std::size_t largest_take = samples / (fewest_takes * nodes_.workers());
  if (maker_->at_once() > 1)
    return std::clamp<std::size_t>(largest_take, samples >= 2 * nodes_.workers() ? 2 : 1,
                                   max_interleaved_take);
  return std::clamp<std::size_t>(largest_take, 1, std::max<std::size_t>(samples_in_take_time, 1));
}

/// Samples [begin, end) of a slot, as tasks.
class SampleWorkers::TaskRange final : public SampleMaker::Tasks {
 public:
  TaskRange(const SampleWorkers& sample_workers, const SlotQueues& queues, HostSlot& host,
            std::size_t begin, std::size_t end, bool again = false)
      : sample_workers_(sample_workers),
        queues_(queues),
        host_(host),
        room_(host.packed[sample_workers.layout_.micro_batches().of(begin)]),
        again_(again),
        next_(begin),
        end_(end),
        unmade_(end - begin) {}
  std::optional<SampleMaker::Task> next() override {
    if (next_ == end_ || queues_.closed()) return std::nullopt;
    const std::size_t sample = next_++;
    return SampleMaker::Task{host_.memory.data(),
                             sample,
                             host_.positions[sample],
                             host_.records.indices[sample],
                             host_.plan.number,
                             host_.sampler.get(),
                             &room_,
                             again_,
                             again_ && host_.records.valid[sample] == 0};
  }
  void made(const SampleMaker::Task& task, const SampleMaker::SampleResult& made) override {
    BatchRecords& records = host_.records;
    records.indices[task.place] = made.record;
    if (!made.valid) records.valid[task.place] = 0;
    const auto write = [&](std::size_t field, const auto& value) {
      std::memcpy(sample_workers_.layout_.place(task.slot, field, task.place), &value,
                  sizeof value);
    };
    if (sample_workers_.fields_.index())
      write(*sample_workers_.fields_.index(), records.indices[task.place]);
    if (sample_workers_.fields_.valid())
      write(*sample_workers_.fields_.valid(), records.valid[task.place]);
    --unmade_;
  }
  bool all_made() const { return unmade_ == 0; }

 private:
  const SampleWorkers& sample_workers_;
  const SlotQueues& queues_;
  HostSlot& host_;
  PackedRoom& room_;
  const bool again_;
  std::size_t next_;
  const std::size_t end_;
  std::size_t unmade_;
};

void SampleWorkers::make_samples(SlotQueues& queues, HostSlot& host, std::size_t first,
                                 std::size_t count, unsigned worker) noexcept {
  try {
    if (!queues.begin_sample(count)) return;
    const MicroBatches& micro_batches = queues.micro_batches();
    const auto finish = [&] { finish_batch(queues, host, worker); };
    const std::function<void()> at_end =
        maker_->finishes_batches() ? std::function<void()>(std::ref(finish)) : nullptr;
    for (const std::size_t end = first + count; first < end;) {
      const BlockingCallScope scope(queues.forbids_blocking());
      const std::size_t part_end = std::min(end, micro_batches.begin(micro_batches.of(first) + 1));
      TaskRange part(*this, queues, host, first, part_end);
      maker_->make(part, worker);
      if (!part.all_made()) {
        if (queues.closed()) return;
        throw Error(
            ErrorCode::transform,
            "make failed: the transform's make_interleaved() returned before all its samples "
            "were made; it must go on until SampleSource::next() returns null and none is "
            "in the making",
            "make");
      }
      nodes_.made(host.number, worker, part_end - first);
      scope.check("make");
      queues.sample_made(host, first, part_end - first, at_end);
      first = part_end;
    }
  } catch (...) {
    queues.fail("make");
  }
}

const std::byte* SampleWorkers::make_again(SlotQueues& queues, HostSlot& host,
                                           std::size_t sample) noexcept {
  try {
    TaskRange task(*this, queues, host, sample, sample + 1, true);
    const std::byte* const made = maker_->make_again(task);
    return task.all_made() ? made : nullptr;
  } catch (...) {
    queues.fail("make");
  }
  return nullptr;
}

bool SampleWorkers::finish_batch_again(SlotQueues& queues, HostSlot& host) noexcept {
  try {
    if (maker_->finishes_batches()) finish_batch(queues, host, maker_->again_worker());
    return true;
  } catch (...) {
    queues.fail("make");
  }
  return false;
}

void SampleWorkers::finish_batch(SlotQueues& queues, HostSlot& host, unsigned worker) {
  const BlockingCallScope scope(queues.forbids_blocking());
  maker_->finish_batch({host.memory.data(), host.positions.front(), host.plan.number,
                        std::span(host.records.indices), std::span(host.records.valid)},
                       worker);
  scope.check("make");
}

void SampleWorkers::share(std::size_t items,
                          const std::function<void(std::size_t)>& item) noexcept {
  if (items == 0) return;
  std::shared_ptr<SharedJob> job;
  try {
    job = std::make_shared<SharedJob>(items, item);
    MutexLock lock(mutex_);
    // The pool has a queue per owner and serves the owners in turn. With another owner than the
    // planned batches (`&pace_` instead of `this`), the job does not wait behind them.
    if (!dismissed_) nodes_.pool_of(0).submit(&pace_, job, nodes_.help());
  } catch (...) {
    // The job could not be allocated: the calling thread runs all items.
  }
  if (job != nullptr) return job->finish();
  for (std::size_t number = 0; number < items; ++number) item(number);
}

void SampleWorkers::adapt(const SlotQueues& queues) {
  if (!runtime_.adaptive()) return;
  const Clock::time_point now = Clock::now();
  const std::chrono::nanoseconds stalled = queues.stalled();
  MutexLock lock(mutex_);
  if (dismissed_ || ++since_adapted_.batches < adapt_batches ||
      now - since_adapted_.begin < adapt_time)
    return;
  const std::chrono::nanoseconds busy = maker_->busy_of(0, runtime_.workers());
  RuntimeServices::of(runtime_).set_needed_workers(
      this,
      auto_workers_.update({in_seconds(now - since_adapted_.begin),
                            in_seconds(stalled - since_adapted_.stalled),
                            in_seconds(busy - since_adapted_.busy)}),
      nodes_.pools());
  since_adapted_ = {now, 0, busy, stalled};
}

unsigned SampleWorkers::concurrency() const {
  MutexLock lock(mutex_);
  return dismissed_ ? 0 : nodes_.concurrency();
}

std::optional<Stuck> SampleWorkers::dismiss(Clock::time_point deadline) {
  {
    MutexLock lock(mutex_);
    dismissed_ = true;
  }
  std::optional<Stuck> stuck;
  for (WorkerPool* pool : nodes_.pools()) {
    // The caller of `share` runs the remaining items.
    pool->cancel(&pace_, std::chrono::nanoseconds(0));
    if (pool->cancel(this, deadline - Clock::now())) continue;
    const std::optional<SampleMaker::Running> running = maker_->longest_running();
    stuck = running ? Stuck{running->stage, running->what}
                    : Stuck{"workers", "a worker does not return"};
  }
  RuntimeServices::of(runtime_).release(this, stuck.has_value());
  return stuck;
}

WorkerFigures SampleWorkers::figures() const {
  return {maker_->counts(), nodes_.made_so_far(*maker_), nodes_.delay(), maker_->stream_busy()};
}

void SampleWorkers::fill(MemoryReport& memory) const {
  memory.index_bytes = maker_->hint_bytes();
  memory.cache_bytes = maker_->cache_bytes();
}

void SampleWorkers::fill(Report& report, const WorkerFigures& now,
                         const WorkerFigures& base) const {
  maker_->fill_bad_records(report);
  report.cores = std::min(runtime_.topology().usable_cpus, nodes_.cores());
  report.launch_cores = runtime_.launch_cores();
  report.warnings = runtime_.warnings();
  std::ranges::move(maker_->warnings(), std::back_inserter(report.warnings));
  nodes_.fill(report, now.nodes, base.nodes);
  report.samples_made = now.work.samples - base.work.samples;
  report.encoded_bytes = now.work.encoded_bytes - base.work.encoded_bytes;
  report.transform = maker_->description();
  report.cache = maker_->cache_report(now.work, base.work);
  report.decoders = counts_since(now.work.decoders, base.work.decoders);
  report.decoder_seconds.clear();
  for (const auto& [decoder_name, ns] : counts_since(now.work.decoder_ns, base.work.decoder_ns))
    report.decoder_seconds[decoder_name] = static_cast<double>(ns) / 1e9;
  for (std::size_t stage = 0; stage < now.work.stages.size(); ++stage) {
    Histogram since = now.work.stages[stage];
    since.subtract(base.work.stages[stage]);
    report.stages.push_back({.name = maker_->stages()[stage], .each = since.summary()});
    report.stages.back().busy_seconds = report.stages.back().each.total_ms / 1e3;
  }
}

}  // namespace millrace
