// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/json_text.h>
#include <millrace/state.h>

#include <algorithm>
#include <set>

#include "base/json_members.h"
#include "dataset/fingerprint.h"

namespace millrace {
namespace {

constexpr std::uint64_t newest_state_format = 1;

/// A member of a state that identifies the run, apart from its position.
struct Fact {
  const char* key;
  /// Its name in messages.
  const char* what;
  std::optional<std::uint64_t> State::*value;
  bool is_hash;
};
constexpr Fact facts[] = {
    {"sampler",
     "the order of records (its mode, parameters, weights in this epoch and number of records)",
     &State::sampler, true},
    {"global_batch", "the number of samples in a batch over all ranks", &State::global_batch,
     false},
    {"dataset", "the dataset's fingerprint", &State::dataset, true},
    {"recipe", "'s fingerprint", &State::recipe, true},
};

std::string name_of(const Fact& fact, const std::string& transform) {
  return fact.value == &State::recipe ? "the " + transform + fact.what : fact.what;
}

std::string text_of(const Fact& fact, std::uint64_t value) {
  return fact.is_hash ? hex16(value) : std::to_string(value);
}

std::uint64_t hash_in(const Json& value, const char* key, const JsonLocation& location) {
  const auto is_digit = [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
  };
  const std::string digits = value.is_string() ? value.get<std::string>() : std::string();
  if (digits.size() != 16 || !std::all_of(digits.begin(), digits.end(), is_digit))
    location.fail(key, value, "a text of 16 hexadecimal digits");
  return parse_hex16(digits);
}

std::vector<State::NewWeights> new_weights_in(const Json& value, const JsonLocation& location,
                                              const std::string& name) {
  constexpr const char* must_be = "a list of objects, one for each later change of the weights";
  if (!value.is_array() || value.empty()) location.fail("new_weights", value, must_be);
  std::vector<State::NewWeights> list;
  for (const Json& object : value) {
    if (!object.is_object()) location.fail("new_weights", value, must_be);
    const JsonLocation inside(name, "new_weights[" + std::to_string(list.size()) + "]");
    const Members members(object, inside, {"epoch", "sampler"});
    for (const char* key : {"epoch", "sampler"})
      if (members.find(key) == nullptr) inside.fail(inside.name(key) + " is missing");
    State::NewWeights& one = list.emplace_back();
    members.read("epoch", list.size() == 1 ? 1 : list[list.size() - 2].epoch + 1, UINT64_MAX,
                 one.epoch);
    one.sampler = hash_in(*members.find("sampler"), "sampler", inside);
  }
  return list;
}

/// Adds the differences between the later weights of two states.
void compare_new_weights(const State& then, const State& now,
                         std::vector<std::string>& differences) {
  const auto hash_at = [](const State& state, std::uint64_t epoch) {
    const auto found = std::ranges::find(state.new_weights, epoch, &State::NewWeights::epoch);
    return found == state.new_weights.end() ? std::string("not set") : hex16(found->sampler);
  };
  std::set<std::uint64_t> epochs;
  for (const State* state : {&then, &now})
    for (const State::NewWeights& one : state->new_weights) epochs.insert(one.epoch);
  for (const std::uint64_t epoch : epochs) {
    const std::string was = hash_at(then, epoch);
    const std::string is = hash_at(now, epoch);
    if (was != is)
      differences.push_back("the order with the new weights of epoch " + std::to_string(epoch) +
                            " (Order::reweighted) was " + was + ", here it is " + is);
  }
}

}  // namespace

std::string State::to_json() const {
  Json json = {{"format", newest_state_format}, {"seed", seed}, {"position", position}};
  if (window) json["window"] = *window;
  for (const Fact& fact : facts)
    if (const auto& value = this->*fact.value)
      json[fact.key] = fact.is_hash ? Json(hex16(*value)) : Json(*value);
  for (const NewWeights& one : new_weights)
    json["new_weights"].push_back(Json{{"epoch", one.epoch}, {"sampler", hex16(one.sampler)}});
  return json.dump();
}

State State::from_json(std::string_view text, std::string_view name) {
  const JsonLocation location(std::string(name), "");
  if (const std::string problem = json_problem(text); !problem.empty()) location.fail(problem);
  const Json json = Json::parse(text);
  if (!json.is_object()) location.fail("is not a state of millrace: it must hold an object in { }");
  check_format(json, location, newest_state_format, "a state");
  const Members members(json, location,
                        {"format", "seed", "position", "window", "sampler", "global_batch",
                         "dataset", "recipe", "new_weights"});
  State state;
  for (const char* key : {"seed", "position"})
    if (members.find(key) == nullptr) location.fail(location.name(key) + " is missing");
  members.read("seed", 0, UINT64_MAX, state.seed);
  members.read("position", 0, UINT64_MAX, state.position);
  if (members.find("window") != nullptr)
    members.read("window", 1, UINT64_MAX, state.window.emplace());
  for (const Fact& fact : facts) {
    const Json* value = members.find(fact.key);
    if (value == nullptr) continue;
    std::optional<std::uint64_t>& into = state.*fact.value;
    if (fact.is_hash) {
      into = hash_in(*value, fact.key, location);
    } else {
      members.read(fact.key, 1, UINT64_MAX, into.emplace());
    }
  }
  if (const Json* value = members.find("new_weights"))
    state.new_weights = new_weights_in(*value, location, std::string(name));
  return state;
}

std::vector<std::string> state_differences(const State& then, const State& now,
                                           const std::string& transform) {
  std::vector<std::string> differences;
  const auto differs = [&](const std::string& what, const std::string& was, const std::string& is) {
    differences.push_back(what + " was " + was + ", here it is " + is);
  };
  if (then.seed != now.seed)
    differs("the seed", std::to_string(then.seed), std::to_string(now.seed));
  for (const Fact& fact : facts) {
    const auto& was = then.*fact.value;
    const auto& is = now.*fact.value;
    if (was && is && *was != *is)
      differs(name_of(fact, transform), text_of(fact, *was), text_of(fact, *is));
  }
  if (then.sampler && now.sampler) compare_new_weights(then, now, differences);
  return differences;
}

std::vector<std::string> state_not_compared(const State& then, const State& now,
                                            const std::string& transform) {
  std::vector<std::string> skipped;
  for (const Fact& fact : facts) {
    const bool was = (then.*fact.value).has_value();
    if (was && now.*fact.value) continue;
    skipped.push_back("the run was resumed without a look at " + name_of(fact, transform) + ": " +
                      (was ? "this run" : "the state") + " has none");
  }
  return skipped;
}

}  // namespace millrace
