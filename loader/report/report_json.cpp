// SPDX-License-Identifier: Apache-2.0
#include <millrace/report.h>

#include <nlohmann/json.hpp>

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Durations& times) {
  return {{"count", times.count},   {"total_ms", times.total_ms}, {"p50_ms", times.p50_ms},
          {"p95_ms", times.p95_ms}, {"p99_ms", times.p99_ms},     {"max_ms", times.max_ms}};
}

Json json_of(const StageReport& stage) {
  return {{"name", stage.name},
          {"lanes", stage.lanes},
          {"busy_seconds", stage.busy_seconds},
          {"waiting_input_seconds", stage.waiting_input_seconds},
          {"waiting_output_seconds", stage.waiting_output_seconds},
          {"occupancy", stage.occupancy},
          {"share", stage.share},
          {"each", json_of(stage.each)},
          {"on_device", stage.on_device}};
}

Json json_of(const NodeReport& node) {
  return {{"node", node.node},
          {"workers", node.workers},
          {"workers_bound", node.workers_bound},
          {"slots", node.slots},
          {"samples", node.samples},
          {"samples_by_helpers", node.samples_by_helpers},
          {"memory_on_node", node.memory_on_node ? Json(*node.memory_on_node) : Json()}};
}

Json json_of(const BadRecord& record) {
  return {{"index", record.index}, {"key", record.key}, {"reason", record.reason}};
}

const char* name_of(Bound bound) {
  switch (bound) {
    case Bound::step:
      return "step";
    case Bound::trainer:
      return "trainer";
    case Bound::storage:
      return "storage";
    case Bound::transform:
      return "transform";
    case Bound::copy:
      return "copy";
    case Bound::convert:
      return "convert";
    case Bound::cores:
      return "cores";
    case Bound::prefetch:
      return "prefetch";
  }
  return "unknown";
}

Json json_of(const Verdict& verdict) {
  return {{"bound", name_of(verdict.bound)},  {"stage", verdict.stage},
          {"share", verdict.share},           {"speedup_limit", verdict.speedup_limit},
          {"next_bound", verdict.next_bound}, {"text", verdict.text},
          {"advice", verdict.advice}};
}

Json json_of(const MemoryReport& memory) {
  return {{"pinned_bytes", memory.pinned_bytes},
          {"device_bytes", memory.device_bytes},
          {"staging_bytes", memory.staging_bytes},
          {"index_bytes", memory.index_bytes},
          {"cache_bytes", memory.cache_bytes},
          {"kept_host_bytes", memory.kept_host_bytes},
          {"scratch_limit_bytes", memory.scratch_limit_bytes},
          {"index_limit_bytes", memory.index_limit_bytes},
          {"cache_limit_bytes", memory.cache_limit_bytes}};
}

Json json_of(const SampleTime& time) {
  return {{"samples", time.samples}, {"seconds", time.seconds}};
}

Json json_of(const CacheReport& cache) {
  return {{"hits", cache.hits},
          {"misses", cache.misses},
          {"hit_seconds", cache.hit_seconds},
          {"recoded", json_of(cache.recoded)},
          {"hinted", json_of(cache.hinted)},
          {"plain", json_of(cache.plain)}};
}

template <typename Member>
Json list_of(const std::vector<Member>& members) {
  Json list = Json::array();
  for (const Member& member : members) list.push_back(json_of(member));
  return list;
}

}  // namespace

std::string to_json(const Report& report) {
  const Json json = {{"pipeline", report.pipeline},
                     {"transform", report.transform},
                     {"seconds", report.seconds},
                     {"batches", report.batches},
                     {"samples", report.samples},
                     {"samples_made", report.samples_made},
                     {"encoded_bytes", report.encoded_bytes},
                     {"ways", report.decoders},
                     {"way_seconds", report.decoder_seconds},
                     {"copied_bytes", report.copied_bytes},
                     {"stall", json_of(report.stall)},
                     {"start_stall_ms", report.start_stall_ms},
                     {"ahead", json_of(report.ahead)},
                     {"first_batch_seconds", report.first_batch_seconds},
                     {"stages", list_of(report.stages)},
                     {"workers", report.workers},
                     {"active_workers", report.active_workers},
                     {"cores", report.cores},
                     {"launch_cores", report.launch_cores},
                     {"worker_utilization", report.worker_utilization},
                     {"worker_delay", report.worker_delay ? Json(*report.worker_delay) : Json()},
                     {"ready_batches", report.ready_batches},
                     {"free_slots", report.free_slots},
                     {"workers_bound", report.workers_bound},
                     {"nodes", list_of(report.nodes)},
                     {"warnings", report.warnings},
                     {"bad_records", report.bad_records},
                     {"bad_record_list", list_of(report.bad_record_list)},
                     {"memory", json_of(report.memory)},
                     {"cache", json_of(report.cache)},
                     {"verdict", json_of(report.verdict)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace millrace
