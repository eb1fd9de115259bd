// SPDX-License-Identifier: Apache-2.0
#include "pipeline/options/run_options.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace millrace {
namespace {

constexpr std::uint64_t max_slots = 1024;
constexpr std::uint64_t max_read_ahead = 4096;
constexpr std::uint64_t max_window = std::uint64_t{1} << 32U;
constexpr std::uint64_t max_ranks = std::uint64_t{1} << 32U;
constexpr std::uint64_t max_milliseconds = 3'600'000;

template <typename Value>
struct Named {
  const char* name;
  Value value;
};

constexpr Named<LastBatch> last_batches[] = {
    {"partial", LastBatch::partial}, {"drop", LastBatch::drop}, {"pad", LastBatch::pad}};
constexpr Named<BadRecords> bad_record_policies[] = {
    {"fail", BadRecords::fail}, {"replace", BadRecords::replace}, {"mark", BadRecords::mark}};
constexpr Named<Nodes> node_choices[] = {{"device", Nodes::device}, {"all", Nodes::all}};
constexpr Named<DType> converted_dtypes[] = {{"uint8", DType::uint8},
                                             {"float16", DType::float16},
                                             {"bfloat16", DType::bfloat16},
                                             {"float32", DType::float32}};
constexpr Named<ImageLayout> layouts[] = {{"nchw", ImageLayout::nchw}, {"nhwc", ImageLayout::nhwc}};
enum class NamedOrder { shuffled, sequential, blocks, bucketed };
constexpr Named<NamedOrder> order_modes[] = {{"shuffled", NamedOrder::shuffled},
                                             {"sequential", NamedOrder::sequential},
                                             {"blocks", NamedOrder::blocks},
                                             {"bucketed", NamedOrder::bucketed}};

/// Members of one object, with two more kinds of value: names of a choice, and lists of numbers.
class RunMembers : public Members {
 public:
  RunMembers(const Json& object, const JsonLocation& location,
             std::initializer_list<std::string_view> known)
      : Members(object, location, known), location_(location) {}

  template <typename Value, std::size_t count>
  void choose(const char* key, const Named<Value> (&names)[count], Value& into) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    std::string must_be;
    for (const Named<Value>& one : names) {
      if (*value == one.name) {
        into = one.value;
        return;
      }
      must_be += std::string(must_be.empty() ? "one of \"" : "\", \"") + one.name;
    }
    location_.fail(key, *value, must_be + '"');
  }

  using Members::read;
  void read(const char* key, bool& into) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) location_.fail(key, *value, "true or false");
    into = value->get<bool>();
  }

  /// Reads a number for each channel. Returns their count; 0 if the key is missing.
  std::size_t channels(const char* key, std::array<float, Conversion::max_channels>& into) const {
    const Json* value = find(key);
    if (value == nullptr) return 0;
    bool numbers = value->is_array() && !value->empty() && value->size() <= into.size();
    for (std::size_t k = 0; numbers && k < value->size(); ++k)
      numbers = (*value)[k].is_number() &&
                std::abs((*value)[k].get<double>()) <= std::numeric_limits<float>::max();
    if (!numbers) location_.fail(key, *value, "a list of 1 to 4 numbers, one for each channel");
    for (std::size_t k = 0; k < value->size(); ++k) into[k] = (*value)[k].get<float>();
    return value->size();
  }

 private:
  JsonLocation location_;
};

void read_order(const RunMembers& run, const JsonLocation& location, Order& into) {
  NamedOrder mode = NamedOrder::shuffled;
  run.choose("order", order_modes, mode);
  /// Throws if the object has one of the members `keys`, which belong to `order`, but chooses
  /// another order.
  const auto only_of = [&](NamedOrder order, const char* name,
                           std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (mode != order && run.find(key) != nullptr)
        location.fail(location.name(key) + " is set, but " + location.name("order") + " is not \"" +
                      name + "\"");
  };
  only_of(NamedOrder::blocks, "blocks", {"block_records", "window_blocks"});
  only_of(NamedOrder::bucketed, "bucketed", {"length_field", "window_records", "group_records"});
  if (mode == NamedOrder::sequential) into = Order::sequential();
  if (mode == NamedOrder::blocks) {
    Order::Blocks blocks;
    run.read("block_records", 1, UINT64_MAX, blocks.block_records);
    run.read("window_blocks", 1, UINT64_MAX, blocks.window_blocks);
    into = Order::blocks(blocks);
  }
  if (mode == NamedOrder::bucketed) {
    for (const char* key : {"length_field", "group_records"})
      if (run.find(key) == nullptr)
        location.fail(location.name(key) + " is missing, but " + location.name("order") +
                      " is \"bucketed\"");
    std::string field;
    Order::Buckets buckets;
    run.read("length_field", field);
    if (field.empty())
      location.fail(location.name("length_field") + " is empty, must name a field");
    run.read("window_records", 1, max_window, buckets.window_records);
    run.read("group_records", 1, buckets.window_records, buckets.group_records);
    into = Order::bucketed_by(std::move(field), buckets);
  }
}

void read_conversion(const Json& json, const std::string& source, PipelineOptions& into) {
  const RunMembers members(json, JsonLocation(source, "run.conversion"),
                           {"field", "dtype", "layout", "mean", "std"});
  Conversion conversion;
  members.read("field", conversion.field);
  members.choose("dtype", converted_dtypes, conversion.dtype);
  members.choose("layout", layouts, conversion.layout);
  conversion.mean_values = members.channels("mean", conversion.mean);
  conversion.std_values = members.channels("std", conversion.std);
  into.conversion = conversion;
}

void read_ranks(const RunMembers& run, const JsonLocation& location, RankOptions& into) {
  Ranks& ranks = into.this_process;
  run.read("world", 1, max_ranks - 1, ranks.world);
  run.read("rank", 0, ranks.world - 1, ranks.rank);
  run.read("local_world", 1, ranks.world, ranks.local_world);
  run.read("local_rank", 0, ranks.local_world - 1, ranks.local_rank);
  run.read("global_batch_size", 1, max_ranks, into.global_batch_size);
  if (ranks.world > 1 && run.find("rank") == nullptr)
    location.fail(location.name("rank") + " is missing, but " + location.name("world") + " is " +
                  std::to_string(ranks.world));
}

}  // namespace

void read_run_options(const Json& json, const std::string& source, PipelineOptions& into) {
  const JsonLocation location(source, "run");
  const RunMembers run(json, location, {"name",           "seed",
                                        "epochs",         "order",
                                        "block_records",  "window_blocks",
                                        "length_field",   "window_records",
                                        "group_records",  "last_batch",
                                        "bad_records",    "conversion",
                                        "index_bytes",    "cache_bytes",
                                        "device_slots",   "read_ahead",
                                        "nodes",          "rank",
                                        "world",          "local_rank",
                                        "local_world",    "global_batch_size",
                                        "epoch_break",    "resume_anyway",
                                        "stop_timeout_ms"});
  run.read("name", into.name);
  run.read("seed", 0, UINT64_MAX, into.seed);
  run.read("epochs", 0, UINT64_MAX, into.epochs);
  read_order(run, location, into.order);
  run.choose("last_batch", last_batches, into.last_batch);
  run.choose("bad_records", bad_record_policies, into.bad_records);
  if (const Json* conversion = run.object("conversion")) read_conversion(*conversion, source, into);
  if (run.find("index_bytes") != nullptr)
    run.read("index_bytes", 0, UINT64_MAX, into.index_bytes.emplace());
  run.read("cache_bytes", 0, UINT64_MAX, into.cache_bytes);
  run.read("device_slots", 1, max_slots, into.slots.device_slots);
  run.read("read_ahead", 0, max_read_ahead, into.slots.read_ahead);
  run.choose("nodes", node_choices, into.slots.nodes);
  run.read("epoch_break", into.slots.epoch_break);
  read_ranks(run, location, into.ranks);
  run.read("resume_anyway", into.resume.anyway);
  std::uint64_t stop_timeout_ms = static_cast<std::uint64_t>(into.debug.stop_timeout.count());
  run.read("stop_timeout_ms", 0, max_milliseconds, stop_timeout_ms);
  into.debug.stop_timeout = std::chrono::milliseconds(stop_timeout_ms);
}

}  // namespace millrace
