// SPDX-License-Identifier: Apache-2.0
// The keys of every command's JSON, which other programs read: they must not change.
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/jpeg_samples.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using Json = nlohmann::json;

/// Paths of keys that are missing in `json` or unexpected. In `expected`, 0 stands for a value that
/// is not an object, and "*" for anything. The single element of an array stands for each element.
std::vector<std::string> differences(const Json& expected, const Json& json,
                                     const std::string& path) {
  std::vector<std::string> found;
  const auto add = [&](const std::vector<std::string>& further) {
    found.insert(found.end(), further.begin(), further.end());
  };
  if (expected == "*") return {};
  if (expected.is_object() != json.is_object()) return {path + ": another kind of value"};
  if (expected.is_array() && json.empty()) return {path + ": empty"};
  if (expected.is_array())
    for (const Json& element : json) add(differences(expected[0], element, path + "[]"));
  if (!expected.is_object()) return found;
  for (const auto& [key, value] : expected.items())
    if (json.contains(key))
      add(differences(value, json[key], path + "." + key));
    else
      found.push_back(path + "." + key + ": missing");
  for (const auto& [key, value] : json.items())
    if (!expected.contains(key)) found.push_back(path + "." + key + ": not in the list");
  return found;
}

/// An object with these keys.
Json keys(const std::string& names) {
  Json object = Json::object();
  std::istringstream words(names);
  for (std::string name; words >> name;) object[name] = 0;
  return object;
}

/// The same with further members that are objects with keys.
Json keys(const std::string& names, const Json& further) {
  Json object = keys(names);
  object.update(further);
  return object;
}

Json machine_keys(const std::string& names) {
  return keys(
      "cpu cores physical_cores threads_per_core numa_nodes last_level_cache_mb kernel compiler "
      "commit " +
          names,
      {{"libraries", keys("millrace libjpeg-turbo highway onetbb lmdb hwloc xxhash")}});
}

Json option_keys(const std::string& names) {
  return keys(
      "dataset map records recipe device batch_size workers prefetch micro_batches step_ms "
      "step_auto "
      "batches max_seconds seed " +
          names,
      {{"recipe_program", "*"}});
}

const char* const durations = "p50 p95 p99 max total";

class JsonKeys : public ::testing::Test {
 protected:
  void SetUp() override {
    DatasetWriter writer(dataset_);
    for (unsigned index = 0; index < 50; ++index) {
      const auto image = encode(noise(60 + static_cast<int>(index), 90, index), {});
      const std::int64_t label = index % 3;
      const RecordField fields[] = {{"image", image},
                                    {"label", std::as_bytes(std::span(&label, 1))}};
      writer.append(fields);
    }
    writer.finish();
  }

  /// Runs a command and returns the differences of its JSON.
  std::vector<std::string> differences_of(const Json& expected,
                                          std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), MILLRACE_COMMAND);
    arguments.insert(arguments.end(), {"--json", "-"});
    const auto result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return differences(expected, Json::parse(result.out), "");
  }

  const TemporaryFolder folder_;
  const fs::path dataset_ = folder_ / "pictures.lmdb";
};

TEST(KeyDifferences, AreFound) {
  const Json expected = keys("a", {{"b", keys("c")}, {"d", Json::array({keys("e")})}});
  EXPECT_THAT(differences(expected, {{"a", nullptr}, {"b", {{"c", 1}}}, {"d", {{{"e", 1}}}}}, ""),
              ::testing::IsEmpty());
  EXPECT_THAT(
      differences(expected, {{"b", 1}, {"d", {{{"f", 1}}}}, {"g", 1}}, ""),
      ::testing::UnorderedElementsAre(".a: missing", ".b: another kind of value", ".d[].e: missing",
                                      ".d[].f: not in the list", ".g: not in the list"));
}

TEST_F(JsonKeys, OfBenchStay) {
  const Json expected = keys(
      "samples_per_second batches_per_second encoded_mb_per_second seconds batches samples "
      "device_idle_percent idle_by_synthetic_percent device_step_ms h2d_gb_per_second "
      "plain_h2d_gb_per_second h2d_percent_of_plain copy_hidden_percent rss_growth_mb "
      "idle_floor_percent plain_h2d_busy_gb_per_second h2d_percent_of_plain_busy "
      "plain_h2d_malloc_host_gb_per_second h2d_percent_of_plain_malloc_host "
      "plain_h2d_malloc_host_busy_gb_per_second h2d_percent_of_plain_malloc_host_busy "
      "paced_h2d_gb_per_second h2d_percent_of_paced "
      "paced_h2d_busy_gb_per_second h2d_percent_of_paced_busy "
      "paced_h2d_malloc_host_gb_per_second h2d_percent_of_paced_malloc_host "
      "paced_h2d_malloc_host_busy_gb_per_second h2d_percent_of_paced_malloc_host_busy "
      "paced_h2d_under_steps_gb_per_second h2d_percent_of_paced_under_steps "
      "paced_h2d_malloc_host_under_steps_gb_per_second "
      "h2d_percent_of_paced_malloc_host_under_steps "
      "dataset_mb last_level_cache_mb "
      "device_memory_growth_mb first_batch_ms worker_utilization_percent active_workers "
      "workers_bound warnings worker_delay_percent ready_batches free_slots cpu_ms_per_sample "
      "peak_rss_beyond_map_mb pinned_mb device_mb staging_mb index_mb cache_mb cache_hits "
      "cache_misses bad_records ceiling digest reduced epoch_samples_per_second",
      {{"stall_ms", keys(durations)},
       {"ahead_ms", keys(durations)},
       {"consumer_us_per_batch", keys("mean p50 p99")},
       {"first_step_ms", keys("parts whole")},
       {"memory_limit_mb", keys("slots scratch index cache total")},
       {"worker_time_percent", keys("read decode augment")},
       {"made_from", keys("cache recoded hint record")},
       {"made_from_ms", keys("cache recoded hint record")},
       {"ways", keys("millrace")},
       {"way_seconds", keys("millrace")},
       {"nodes", Json::array({keys("node workers workers_bound slots samples samples_by_helpers "
                                   "memory_on_node")})},
       {"stages", Json::array({keys("name lanes busy_seconds waiting_input_seconds "
                                    "waiting_output_seconds occupancy_percent count",
                                    {{"each_ms", keys(durations)}})})},
       {"verdict", keys("stage text advice share_percent speedup_limit next_bound")},
       {"options", option_keys("convert step warmup epochs index_bytes cache_bytes launch_cores")},
       {"machine", machine_keys("steal_percent")}});
  EXPECT_THAT(differences_of(expected, {"bench", dataset_.string(), "--batches", "12", "--warmup",
                                        "0", "--batch-size", "8", "--size", "32", "--step-ms", "1",
                                        "--micro-batches", "2", "--digest"}),
              ::testing::IsEmpty());
}

TEST_F(JsonKeys, OfDiagnoseStay) {
  const Json part = keys(
      "ms_per_batch percent seconds_per_epoch measured_ms deviation_ms noise_ms within_noise "
      "unsure");
  const Json expected = keys(
      "warm_storage_bytes device_idle_percent sampled_records pass_batches passes_per_round "
      "device_stages warnings",
      {{"epoch", keys("ms_per_batch batches seconds waiting_percent")},
       {"parts",
        {{"compute", part},
         {"trainer", part},
         {"copy", part},
         {"preparation", part},
         {"fetch", "*"}}},  // null if the page cache cannot be emptied
       {"rounds_ms_per_batch", keys("step ready_batch copies loader warm_pass cold_pass")},
       {"cold_cache", keys("measured missing kept_percent storage_bytes seconds")},
       {"verdict", keys("stage percent speedup_limit next_bound text advice")},
       {"options", option_keys("dataset_bytes rounds")},
       {"machine", machine_keys("")}});
  EXPECT_THAT(
      differences_of(expected, {"diagnose", dataset_.string(), "--step-ms", "2", "--size", "32",
                                "--batch-size", "8", "--batches", "3", "--rounds", "2"}),
      ::testing::IsEmpty());
}

TEST_F(JsonKeys, OfTopologyStay) {
  const Json expected = keys(
      "synthetic machine_cpus cpuset_cpus affinity_cpus quota cores instruction_set "
      "wrong_instruction_sets gpus nics",
      {{"nodes", Json::array({keys("number cpus physical_cores memory_bytes",
                                   {{"caches", Json::array({keys("level bytes count cpus")})}})})},
       {"placement", keys("local_rank local_world cores launch_cores workers bound reasons "
                          "warnings",
                          {{"nodes", Json::array({keys("number cpus workers")})}})}});
  EXPECT_THAT(
      differences_of(expected, {"topology", "--synthetic", "pack:2 [numa] l3:1 core:2 pu:2"}),
      ::testing::IsEmpty());
}

TEST_F(JsonKeys, OfInspectAndVerifyStay) {
  const std::string distribution = "count mean min p5 median p95 max";
  const Json histogram = {{"histogram", Json::array({keys("from below records")})}};
  const Json dataset = keys(
      "dataset created_by fingerprint format format_reason bytes records fields images interrupted "
      "looked_at seconds unread",
      {{"sample", keys("index key missing", {{"fields", Json::array({keys("name bytes holds")})}})},
       {"files", Json::array({keys("path bytes")})},
       {"classes", Json::array({keys("label name records")})},
       {"image_bytes", keys(distribution, histogram)},
       {"width", keys(distribution)},
       {"height", keys(distribution)},
       {"pixels", keys(distribution)},
       {"shorter_side", keys(distribution, histogram)},
       {"quality", keys(distribution + " not_known", histogram)},
       {"chroma", keys("4:2:0")},
       {"scan_type", keys("baseline")},
       {"decoder", keys("millrace")},
       {"exif_orientation", keys("none")}});
  EXPECT_THAT(differences_of(dataset, {"inspect", dataset_.string()}), ::testing::IsEmpty());

  const Json record =
      keys("checksum dataset fault file index key label stored_bytes",
           {{"fields", Json::array({keys("name bytes")})},
            {"image", keys("bits_per_sample chroma components exif_orientation header_bytes height "
                           "quality restart_interval scan_type width")}});
  EXPECT_THAT(differences_of(record, {"inspect", dataset_.string(), "--record", "3"}),
              ::testing::IsEmpty());

  const Json verified = keys(
      "bad bad_records bytes checked damaged_index_tables dataset deep fingerprint "
      "files_restored fingerprint_found images_decoded images_repaired indices_proved interrupted "
      "quick records seconds sound");
  EXPECT_THAT(differences_of(verified, {"verify", dataset_.string()}), ::testing::IsEmpty());
}

}  // namespace
}  // namespace millrace
