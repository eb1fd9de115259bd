// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/host_device.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "pipeline/slots/slot_queues.h"

namespace millrace::testing {

inline SlotQueues::Clock::time_point now() { return SlotQueues::Clock::now(); }

/// Slot queues with two host slots and without threads: the test makes the calls of each thread.
struct SmallQueues {
  static constexpr std::size_t slot_bytes = 256;

  explicit SmallQueues(const SlotQueues::Run& run = {.micro_batches = {4, 2}},
                       std::shared_ptr<Device> on = std::make_shared<HostDevice>())
      : device(std::move(on)) {
    std::vector<std::unique_ptr<HostSlot>> slots;
    for (std::size_t number = 0; number < 2; ++number) {
      slots.push_back(std::make_unique<HostSlot>());
      slots.back()->number = number;
      slots.back()->memory = device->allocate_host(slot_bytes, NumaNode{});
    }
    queues = std::make_shared<SlotQueues>(run, Slots{device, std::move(slots)},
                                          RunMeter(nullptr, 0, {}, now()));
  }

  /// Adds an output slot with device memory, or for a host slot.
  OutputSlot& add_output(HostSlot* host = nullptr) {
    auto output = std::make_unique<OutputSlot>();
    OutputSlot& added = *output;
    output->host = host;
    queues->add_output(std::move(output));
    return added;
  }

  /// Plans the next batch as the plan-recycle thread does.
  HostSlot& plan(std::size_t size = 4) {
    HostSlot* host = queues->take_free();
    if (host == nullptr) throw std::runtime_error("no host slot is free");
    fill_in(*host, size);
    queues->planned(*host, now(), 1);
    return *host;
  }

  static void fill_in(HostSlot& host, std::size_t size) {
    host.plan.size = size;
    host.plan.position_after = (host.plan.number + 1) * size;
    host.positions.assign(size, 0);
    host.records = {std::vector<std::uint64_t>(size), std::vector<std::uint8_t>(size, 1)};
  }

  /// Makes a planned batch's samples [first, end) as workers do.
  void make(HostSlot& host, std::size_t first, std::size_t end) const {
    for (std::size_t sample = first; sample < end; ++sample)
      if (queues->begin_sample()) queues->sample_made(host, sample);
  }

  /// Returns the next made micro-batch; its host is null if none is made.
  SlotQueues::ReadyMicroBatch next_made() const {
    return queues->next_made(now(), now()).value_or(SlotQueues::ReadyMicroBatch{nullptr, 0});
  }

  /// Plans and makes a batch and puts it on its way, like all threads together.
  HostSlot& send(OutputSlot& output, bool leave) {
    HostSlot& host = plan();
    make(host, 0, host.plan.size);
    queues->begin_filling(output);
    output.plan = host.plan;
    for (std::size_t number = 0; number < queues->micro_batches().count; ++number)
      queues->micro_batch_enqueued(output, *next_made().host, number, now(), 0);
    if (leave) queues->leave(host);
    return host;
  }

  std::shared_ptr<Device> device;
  std::shared_ptr<SlotQueues> queues;
};

}  // namespace millrace::testing
