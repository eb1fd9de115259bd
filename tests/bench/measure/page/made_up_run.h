// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/recipe.h>
#include <millrace/trace.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "measure/bench/bench_output.h"
#include "support/fake_dataset.h"

namespace millrace::testing {

/// A simulated run as a bench measures it: workers make samples in slots, copies follow, a device
/// runs steps.
class MadeUpRun {
 public:
  struct Plan {
    unsigned workers = 6;
    std::uint64_t batches = 120;
    std::size_t batch_size = 32;
    std::size_t prefetch = 4;
    double decode_ms = 5;
    double step_ms = 34;
  };

  explicit MadeUpRun(Plan plan) : plan_(plan) {
    add_lanes();
    play();
    fill_record();
  }

  const cli::BenchRecord& record() const { return record_; }
  cli::BenchRecord& record() { return record_; }
  const Trace& trace() const { return trace_; }

 private:
  Trace::Clock::time_point at(double ms) const {
    return start_ + std::chrono::nanoseconds(static_cast<std::int64_t>(ms * 1e6));
  }

  void add_lanes() {
    const std::size_t pipeline = trace_.add_group("millrace");
    for (unsigned worker = 0; worker < plan_.workers; ++worker)
      workers_.push_back(&trace_.add_lane(pipeline, "worker " + std::to_string(worker)));
    planner_ = &trace_.add_lane(pipeline, "planner");
    upload_thread_ = &trace_.add_lane(pipeline, "upload");
    copies_ = &trace_.add_lane(pipeline, "copies");
    trainer_ = &trace_.add_lane(pipeline, "trainer");
    free_slots_ = &trace_.add_lane(pipeline, "free slots");
    ready_batches_ = &trace_.add_lane(pipeline, "ready batches");
    active_workers_ = &trace_.add_lane(pipeline, "active workers");
    steps_ = &trace_.add_lane(trace_.add_group("trainer"), "device steps");
  }

  void play() {
    std::mt19937 random(7);
    std::lognormal_distribution<double> decode(0, 0.45);
    std::vector<double> worker_free(plan_.workers, 0.0);
    std::vector<double> slot_free(plan_.batches + plan_.prefetch, 0.0);
    std::vector<std::pair<double, int>> made_or_taken;
    std::vector<std::pair<double, int>> slots;
    double copy_free = 0;
    double device_free = 0;
    double trainer_at = 0;
    double fed = 0;
    active_workers_->set(at(0), plan_.workers);
    for (std::uint64_t batch = 0; batch < plan_.batches; ++batch) {
      const double planned = slot_free[batch];
      planner_->add("plan", at(planned), at(planned + 0.02), batch);
      slots.emplace_back(planned, -1);
      double made = planned;
      for (std::size_t sample = 0; sample < plan_.batch_size; ++sample) {
        const auto worker = std::min_element(worker_free.begin(), worker_free.end());
        Trace::Lane& lane = *workers_[static_cast<std::size_t>(worker - worker_free.begin())];
        const std::uint64_t record = random() % 100'000;
        double now = std::max(*worker, planned);
        const auto spend = [&](const char* name, double ms) {
          lane.add(name, at(now), at(now + ms), batch, record);
          now += ms;
          busy_ms_ += ms;
        };
        // A slow period of the disk.
        spend("read", batch % 40 == 17 ? 9 : 0.06);
        spend("decode", plan_.decode_ms * decode(random));
        spend("augment", 1.1);
        *worker = now;
        made = std::max(made, now);
      }
      made_or_taken.emplace_back(made, 1);
      if (made > fed) upload_thread_->add("wait for samples", at(fed), at(made), batch);
      upload_thread_->add("upload", at(made), at(made + 0.05), batch);
      fed = made + 0.05;
      const double copy_begin = std::max(copy_free, fed);
      copy_free = copy_begin + 2.6;
      copies_->add("copy", at(copy_begin), at(copy_free), batch);
      slot_free[batch + plan_.prefetch] = copy_free;
      slots.emplace_back(copy_free, 1);

      const double stall = std::max(0.0, fed - trainer_at);
      if (stall > 0) trainer_->add("stall", at(trainer_at), at(fed), batch);
      trainer_at += stall;
      stalls_ms_.push_back(stall);
      const double step_begin = std::max(device_free, copy_free);
      idle_ms_ += step_begin - device_free;
      device_free = step_begin + plan_.step_ms;
      steps_->add("step", at(step_begin), at(device_free), batch);
      made_or_taken.emplace_back(trainer_at, -1);
      const double ahead_until = device_free - 1.2 * plan_.step_ms;
      if (ahead_until > trainer_at) {
        trainer_->add("ahead", at(trainer_at), at(ahead_until), batch);
        ahead_ms_ += ahead_until - trainer_at;
        trainer_at = ahead_until;
      }
      trainer_at += 0.4;
    }
    end_ms_ = device_free;
    set_counter(*free_slots_, slots, static_cast<int>(plan_.prefetch));
    set_counter(*ready_batches_, made_or_taken, 0);
  }

  void set_counter(Trace::Lane& lane, std::vector<std::pair<double, int>>& changes,
                   int value) const {
    std::stable_sort(changes.begin(), changes.end(),
                     [](auto& a, auto& b) { return a.first < b.first; });
    lane.set(at(0), value);
    for (const auto& [ms, change] : changes) lane.set(at(ms), value += change);
  }

  static Durations durations(std::vector<double> values_ms) {
    std::sort(values_ms.begin(), values_ms.end());
    const auto share = [&](double part) {
      return values_ms[static_cast<std::size_t>(part * static_cast<double>(values_ms.size() - 1))];
    };
    Durations durations{.count = values_ms.size(),
                        .p50_ms = share(0.5),
                        .p95_ms = share(0.95),
                        .p99_ms = share(0.99),
                        .max_ms = share(1)};
    for (const double value : values_ms) durations.total_ms += value;
    return durations;
  }

  void fill_record() {
    record_.dataset = "/data/imagenet/train-224.lmdb";
    record_.recipe_name = "train";
    record_.settings.dataset = std::make_shared<MemoryDataset>(100'000);
    record_.settings.recipe = Recipe::train(224).to_json();
    record_.settings.pipeline.runtime = make_runtime({.workers = plan_.workers});
    record_.settings.pipeline.batch_size = plan_.batch_size;
    record_.settings.pipeline.slots.prefetch = plan_.prefetch;
    record_.settings.step =
        std::chrono::microseconds(static_cast<std::int64_t>(1e3 * plan_.step_ms));
    record_.settings.warmup = 10;
    cli::Machine& machine = record_.machine;
    machine.cpu = "AMD EPYC 9374F 32-Core Processor";
    machine.cores = 8;
    machine.numa_nodes = 1;
    machine.kernel = "Linux 6.1.0-28-amd64";
    machine.compiler = "GCC 12.2.0";
    machine.commit = "29f4295";
    machine.libraries = {
        {"libjpeg-turbo", "2.1.5"}, {"highway", "1.0.3"}, {"onetbb", "2021.8"}, {"lmdb", "0.9.24"}};
    record_.result.device_idle = idle_ms_ / end_ms_;
    record_.result.cpu_seconds = busy_ms_ / 1e3;
    record_.result.peak_rss_beyond_map = 84'500'000;
    record_.result.steal = 0.004;
    Report& report = record_.result.report;
    report.seconds = end_ms_ / 1e3;
    report.batches = plan_.batches;
    report.samples = report.samples_made = plan_.batches * plan_.batch_size;
    report.encoded_bytes = report.samples * 110'000;
    report.copied_bytes = report.samples * 150'536;
    report.stall = durations(stalls_ms_);
    report.ahead = {.count = plan_.batches,
                    .total_ms = ahead_ms_,
                    .p50_ms = 8.4,
                    .p95_ms = 21,
                    .p99_ms = 26,
                    .max_ms = 27};
    report.first_batch_seconds = 0.046;
    report.workers = plan_.workers;
    report.active_workers = plan_.workers;
    report.cores = 8;
    report.worker_utilization = busy_ms_ / (plan_.workers * end_ms_);
    report.worker_delay = 0.012;
    report.ready_batches = 0.71;
    report.free_slots = 0.22;
    report.memory = {.pinned_bytes = 19'300'000, .device_bytes = 9'650'000};
    const double workers_seconds = plan_.workers * report.seconds;
    const double waits = workers_seconds * (1 - report.worker_utilization);
    const auto stage = [&](const char* name, double lanes, double busy, double input, double output,
                           Durations each) {
      const double all = lanes * report.seconds;
      report.stages.push_back({.name = name,
                               .lanes = lanes,
                               .busy_seconds = busy,
                               .waiting_input_seconds = input,
                               .waiting_output_seconds = output,
                               .occupancy = busy / all,
                               .share = lanes > 1 ? busy / (busy_ms_ / 1e3) : 0,
                               .each = each});
    };
    const double made = busy_ms_ / 1e3;
    stage("read", plan_.workers, 0.04 * made, 0.1 * waits, 0.9 * waits,
          {report.samples, 0, 0.06, 0.07, 9, 9.1});
    stage("decode", plan_.workers, 0.80 * made, 0.1 * waits, 0.9 * waits,
          {report.samples, 0, 5.01, 10.4, 14.2, 31});
    stage("augment", plan_.workers, 0.16 * made, 0.1 * waits, 0.9 * waits,
          {report.samples, 0, 1.1, 1.12, 1.2, 1.9});
    stage("copy", 1, 0.0026 * static_cast<double>(plan_.batches),
          0.9 * (report.seconds - 0.0026 * static_cast<double>(plan_.batches)), 0,
          {report.batches, 0, 2.6, 2.6, 2.7, 2.7});
    stage("trainer", 1, 0.0004 * static_cast<double>(plan_.batches), report.stall.total_ms / 1e3,
          ahead_ms_ / 1e3, {report.batches, 0, 0.4, 0.4, 0.41, 0.5});
    record_.result.verdict = {
        .bound = Bound::transform,
        .stage = "decode",
        .share = 0.8,
        .speedup_limit = 1.12,
        .next_bound = "step",
        .text =
            "decode bounds the run: workers spend 80% of their time in it and the device is idle "
            "11% of the time.",
        .advice = "Give 7 workers instead of 6, or store the images at 448 x 448 pixels."};
  }

  Plan plan_;
  Trace trace_;
  Trace::Clock::time_point start_ = Trace::Clock::now();
  std::vector<Trace::Lane*> workers_;
  Trace::Lane* planner_ = nullptr;
  Trace::Lane* upload_thread_ = nullptr;
  Trace::Lane* copies_ = nullptr;
  Trace::Lane* trainer_ = nullptr;
  Trace::Lane* free_slots_ = nullptr;
  Trace::Lane* ready_batches_ = nullptr;
  Trace::Lane* active_workers_ = nullptr;
  Trace::Lane* steps_ = nullptr;
  std::vector<double> stalls_ms_;
  double busy_ms_ = 0;
  double idle_ms_ = 0;
  double ahead_ms_ = 0;
  double end_ms_ = 0;
  cli::BenchRecord record_;
};

}  // namespace millrace::testing
