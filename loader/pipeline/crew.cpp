// SPDX-License-Identifier: Apache-2.0
#include "pipeline/crew.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "pipeline/batch_path.h"

namespace millrace {
namespace {

/// How long the need for workers is watched before their number is chosen anew: at least so many
/// batches and so long.
constexpr std::uint64_t adapt_batches = 8;
constexpr std::chrono::milliseconds adapt_time{100};

double seconds_of(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

/// A planned batch, as work for a pool: one item per sample.
class Crew::BatchJob final : public Job {
 public:
  BatchJob(std::shared_ptr<Crew> crew, std::shared_ptr<Road> road, HostSlot& host)
      : crew_(std::move(crew)), road_(std::move(road)), host_(&host), items_(host.plan.size) {}
  std::size_t items() const override { return items_; }
  void run(std::size_t item, unsigned worker) override {
    crew_->make_sample(*road_, *host_, item, worker);
  }

 private:
  std::shared_ptr<Crew> crew_;
  std::shared_ptr<Road> road_;
  HostSlot* host_;
  std::size_t items_;
};

Crew::Crew(std::unique_ptr<SampleMaker> maker, const BatchFields& fields, const SlotLayout& layout,
           Runtime& runtime, PipelineNodes nodes)
    : maker_(std::move(maker)),
      fields_(fields),
      layout_(layout),
      runtime_(runtime),
      nodes_(std::move(nodes)),
      auto_workers_(nodes_.workers()) {}

void Crew::start() {
  MutexLock lock(mutex_);
  if (!dismissed_) runtime_.need(this, nodes_.workers(), nodes_.pools());
}

void Crew::submit(std::shared_ptr<Road> road, HostSlot& host) {
  auto job = std::make_shared<BatchJob>(shared_from_this(), std::move(road), host);
  MutexLock lock(mutex_);
  if (!dismissed_) nodes_.pool_of(host.number).submit(this, std::move(job), nodes_.help());
}

void Crew::make_sample(Road& road, HostSlot& host, std::size_t sample, unsigned worker) noexcept {
  try {
    if (!road.begin_sample()) return;
    const BatchPath path(road.watched());
    BatchRecords& records = host.records;
    const SampleMaker::Made made = maker_->make({host.memory.data(), sample, host.positions[sample],
                                                 records.indices[sample], host.plan.number},
                                                worker);
    records.indices[sample] = made.record;
    if (!made.valid) records.valid[sample] = 0;
    const auto write = [&](std::size_t field, const auto& value) {
      std::memcpy(layout_.sample(host.memory.data(), field, sample).data, &value, sizeof value);
    };
    if (fields_.index()) write(*fields_.index(), records.indices[sample]);
    if (fields_.valid()) write(*fields_.valid(), records.valid[sample]);
    nodes_.made(host.number, worker);
    path.check("make");
    road.sample_made(host, sample);
  } catch (...) {
    road.fail("make");
  }
}

void Crew::adapt(const Road& road) {
  if (!runtime_.adaptive()) return;
  const Clock::time_point now = Clock::now();
  const std::chrono::nanoseconds stalled = road.stalled();
  MutexLock lock(mutex_);
  if (dismissed_ || ++window_.batches < adapt_batches || now - window_.begin < adapt_time) return;
  const std::chrono::nanoseconds busy = maker_->busy();
  runtime_.need(
      this,
      auto_workers_.update({seconds_of(now - window_.begin), seconds_of(stalled - window_.stalled),
                            seconds_of(busy - window_.busy)}),
      nodes_.pools());
  window_ = {now, 0, busy, stalled};
}

unsigned Crew::concurrency() const {
  MutexLock lock(mutex_);
  return dismissed_ ? 0 : nodes_.concurrency();
}

std::optional<Stuck> Crew::dismiss(Clock::time_point deadline) {
  {
    MutexLock lock(mutex_);
    dismissed_ = true;
  }
  std::optional<Stuck> stuck;
  for (WorkerPool* pool : nodes_.pools()) {
    if (pool->cancel(this, deadline - Clock::now())) continue;
    const std::optional<SampleMaker::Running> running = maker_->longest_running();
    stuck = running ? Stuck{running->stage, running->what}
                    : Stuck{"workers", "a worker does not come back"};
  }
  runtime_.release(this);
  return stuck;
}

CrewFigures Crew::figures() const {
  return {maker_->counts(), nodes_.made_so_far(*maker_), nodes_.delay()};
}

void Crew::fill(Report& report, const CrewFigures& now, const CrewFigures& base) const {
  report.bad_records = maker_->bad_records();
  report.bad_record_list = maker_->bad_record_list();
  report.cores = std::min(runtime_.topology().cores, nodes_.cores());
  report.launch_cores = runtime_.launch_cores();
  report.warnings = runtime_.warnings();
  nodes_.fill(report, now.nodes, base.nodes);
  report.samples_made = now.work.samples - base.work.samples;
  report.encoded_bytes = now.work.encoded_bytes - base.work.encoded_bytes;
  for (std::size_t stage = 0; stage < now.work.stages.size(); ++stage) {
    Histogram since = now.work.stages[stage];
    since.subtract(base.work.stages[stage]);
    report.stages.push_back({.name = maker_->stages()[stage], .each = since.summary()});
    report.stages.back().busy_seconds = report.stages.back().each.total_ms / 1e3;
  }
}

}  // namespace millrace
