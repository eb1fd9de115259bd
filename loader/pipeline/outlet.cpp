// SPDX-License-Identifier: Apache-2.0
#include "pipeline/outlet.h"

#include <algorithm>
#include <utility>

#include "device/profiler_range.h"
#include "pipeline/batch_path.h"
#include "pipeline/checked_device.h"

namespace millrace {

void Outlet::fill_in(const HostSlot& host, Lease& lease, std::size_t micro_batch) const {
  if (micro_batch == 0) {
    lease.plan = host.plan;
    lease.planned_at = host.planned_at;
    lease.taken.store(0, std::memory_order_relaxed);
    lease.stream = nullptr;
    lease.used = 0;
    lease.records.indices.resize(host.plan.size);
    lease.records.valid.resize(host.plan.size);
  }
  const std::size_t samples = road_->micro_batches().samples_of(micro_batch, host.plan.size);
  const auto first = static_cast<std::ptrdiff_t>(
      std::min(road_->micro_batches().begin(micro_batch), host.plan.size));
  std::copy_n(host.records.indices.begin() + first, samples, lease.records.indices.begin() + first);
  std::copy_n(host.records.valid.begin() + first, samples, lease.records.valid.begin() + first);
}

// ---- in place

InPlaceOutlet::InPlaceOutlet(std::shared_ptr<Road> road, ProfilerRanges* profiler)
    : Outlet(std::move(road), profiler) {
  for (const auto& host : road_->hosts()) {
    auto lease = std::make_unique<Lease>();
    lease->host = host.get();
    lease->base = host->memory.data();
    leases_.push_back(lease.get());
    road_->add_lease(std::move(lease));
  }
}

void InPlaceOutlet::pass_on(HostSlot& host, std::size_t micro_batch) {
  const Clock::time_point began = Clock::now();
  const ProfilerRange range(profiler_, "upload", host.plan.number);
  Lease& lease = *leases_.at(host.number);
  if (micro_batch == 0) road_->fill(lease);
  fill_in(host, lease, micro_batch);
  road_->on_way(lease, host, micro_batch, began, 0);
}

bool InPlaceOutlet::wait_until_left(HostSlot& host, std::chrono::nanoseconds timeout) {
  const Lease& lease = *leases_.at(host.number);
  for (std::size_t use = 0; use < lease.used; ++use)
    if (!lease.uses[use].done->wait(timeout)) return false;
  return true;
}

// ---- copy

CopyOutlet::CopyOutlet(std::shared_ptr<Road> road, Device& device, std::unique_ptr<Upload> upload,
                       std::size_t slots, std::size_t slot_bytes)
    : Outlet(std::move(road), device.profiler()), upload_(std::move(upload)) {
  const std::size_t micro_batches = road_->micro_batches().count;
  for (const auto& host : road_->hosts())
    for (std::size_t number = 0; number < micro_batches; ++number)
      host->copies.push_back({{}, checked_timed_event(device), checked_timed_event(device)});
  for (std::size_t slot = 0; slot < slots; ++slot) {
    auto lease = std::make_unique<Lease>();
    lease->memory = checked_device_memory(device, slot_bytes);
    lease->base = lease->memory.data();
    for (std::size_t number = 0; number < micro_batches; ++number)
      lease->copied.push_back(checked_event(device));
    road_->add_lease(std::move(lease));
  }
  road_->set_words({"device", "device_slots"});
}

void CopyOutlet::pass_on(HostSlot& host, std::size_t micro_batch) {
  host.copies[micro_batch].made_at = Clock::now();
  std::size_t copied = 0;
  if (upload_->staged()) {  // needs no device slot, so it does not wait for one
    const BatchPath path(road_->watched());
    const ProfilerRange range(profiler_, "upload", host.plan.number);
    copied = upload_->copy(host, micro_batch);
    path.check("upload");
  }
  if (micro_batch == 0) lease_ = road_->wait_for_lease(host.plan.number);
  if (lease_ == nullptr) return;
  const Clock::time_point began = Clock::now();
  const BatchPath path(road_->watched());
  const ProfilerRange range(profiler_, "upload", host.plan.number);
  copied += upload_->deliver(host, *lease_, micro_batch);
  fill_in(host, *lease_, micro_batch);
  path.check("upload");
  road_->on_way(*lease_, host, micro_batch, began, copied);
  if (micro_batch + 1 == road_->micro_batches().count) road_->leave(host);
}

CopyOutlet::Clock::time_point CopyOutlet::look() {
  if (!upload_->converting()) return Clock::time_point::max();
  conversions_.clear();
  upload_->take_conversions(conversions_);
  if (!conversions_.empty()) road_->converted(conversions_);
  return Clock::now() + look_around;
}

bool CopyOutlet::wait_until_left(HostSlot& host, std::chrono::nanoseconds timeout) {
  if (!host.copies.back().end->wait(timeout)) return false;
  for (HostSlot::Copy& copy : host.copies) {
    copy.began_at = copy.begin->passed_at();
    copy.ended_at = copy.end->passed_at();
  }
  return true;
}

}  // namespace millrace
