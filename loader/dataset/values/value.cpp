// SPDX-License-Identifier: Apache-2.0
#include "dataset/values/value.h"

#include <utf8.h>

#include <algorithm>
#include <array>
#include <limits>

#include "dataset/values/byte_cursor.h"

namespace millrace {
std::string described(const Value& value) {
  static constexpr std::array<const char*, 6> scalars = {"None",    "a bool", "an integer",
                                                         "a float", "bytes",  "text"};
  const auto* items = std::get_if<Items>(&value);
  if (items == nullptr) return scalars[value.index()];
  switch (items->kind) {
    case Collection::tuple:
      return "a tuple of " + std::to_string(items->count);
    case Collection::list:
      return "a list of " + std::to_string(items->count);
    case Collection::dictionary:
      break;
  }
  return "a dictionary of " + std::to_string(items->count / 2);
}

bool is_text(const Value& value, std::string_view text) {
  if (const auto* own = std::get_if<std::string_view>(&value)) return *own == text;
  const auto* bytes = std::get_if<std::span<const std::byte>>(&value);
  return bytes != nullptr && as_text(*bytes) == text;
}

bool is_utf8(std::string_view text) { return utf8::is_valid(text.begin(), text.end()); }

std::string shown(std::string_view name) {
  std::string shown(name.substr(0, 200));
  std::ranges::replace_if(
      shown, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return shown;
}

std::size_t Values::size(const Value& value) const {
  const auto* items = std::get_if<Items>(&value);
  if (items == nullptr) return 0;
  return items->kind == Collection::dictionary ? items->count / 2 : items->count;
}

const Value& Values::item(const Value& collection, std::size_t n) const {
  return values_[items_[std::get<Items>(collection).first + n]];
}

std::pair<const Value&, const Value&> Values::entry(const Value& dictionary, std::size_t n) const {
  return {item(dictionary, 2 * n), item(dictionary, 2 * n + 1)};
}

const Value* Values::find(const Value& dictionary, std::string_view key) const {
  const auto* items = std::get_if<Items>(&dictionary);
  if (items == nullptr || items->kind != Collection::dictionary) return nullptr;
  for (std::size_t n = size(dictionary); n-- > 0;) {
    const auto [name, value] = entry(dictionary, n);
    if (is_text(name, key)) return &value;
  }
  return nullptr;
}

void Values::start(std::size_t input_bytes) {
  values_.assign({None{}, false, true});
  edges_.clear();
  unescaped_.clear();
  input_bytes_ = input_bytes;
}

std::uint32_t Values::add(const Value& value) {
  values_.push_back(value);
  return static_cast<std::uint32_t>(values_.size() - 1);
}

void Values::append(std::uint32_t collection, std::uint32_t item) {
  edges_.push_back({collection, item});
}

std::string& Values::unescaped() {
  // Reserves the maximum at once, so that the buffer never moves.
  unescaped_.reserve(2 * input_bytes_);
  return unescaped_;
}

Status Values::finish(std::uint32_t root) {
  if (too_many()) return Status::bad("it has more than " + std::to_string(max_values) + " values");
  root_ = root;
  gather_items();
  return is_collection(root) ? measure(root) : Status::ok();
}

bool Values::is_collection(std::uint32_t number) const {
  return std::holds_alternative<Items>(values_[number]);
}

/// Sorts the items by collection. Within a collection, items keep the order of append().
void Values::gather_items() {
  for (const Edge& edge : edges_) ++std::get<Items>(values_[edge.collection]).count;
  std::uint32_t first = 0;
  for (Value& value : values_) {
    if (auto* items = std::get_if<Items>(&value)) {
      items->first = first;
      first += items->count;
      items->count = 0;
    }
  }
  items_.resize(edges_.size());
  for (const Edge& edge : edges_) {
    Items& items = std::get<Items>(values_[edge.collection]);
    items_[items.first + items.count++] = edge.item;
  }
}

/// Measures each collection once, even if several others contain it, from the innermost outwards.
Status Values::measure(std::uint32_t root) {
  struct Step {
    std::uint32_t collection = 0;
    std::uint32_t next = 0;
  };
  const std::uint64_t most = std::min<std::uint64_t>(std::max(input_bytes_, std::size_t{1} << 20),
                                                     std::numeric_limits<std::uint32_t>::max());
  extents_.assign(values_.size(), Extent{});
  std::array<Step, max_levels> path;
  std::size_t levels = 0;
  const auto open = [&](std::uint32_t collection) {
    path[levels++] = {.collection = collection};
    extents_[collection] = {.walked = 1, .levels = 1, .is_open = true};
  };
  open(root);
  while (levels > 0) {
    Step& step = path[levels - 1];
    const Items& items = std::get<Items>(values_[step.collection]);
    Extent& extent = extents_[step.collection];
    if (step.next == items.count) {
      extent.is_open = false;
      --levels;  // the parent then visits this item again; its size is known now
      continue;
    }
    const std::uint32_t item = items_[items.first + step.next];
    Extent inner{.walked = 1};
    if (is_collection(item)) {
      inner = extents_[item];
      if (inner.is_open) return Status::bad(described(values_[item]) + " holds itself");
      if (levels + std::max<std::size_t>(inner.levels, 1) > max_levels)
        return Status::bad("it is nested in more than " + std::to_string(max_levels) + " levels");
      if (inner.walked == 0) {
        open(item);
        continue;
      }
    }
    const std::uint64_t walked = std::uint64_t{extent.walked} + inner.walked;
    if (walked > most)
      return Status::bad("it refers to the same values so often that it has more than " +
                         std::to_string(most));
    extent.walked = static_cast<std::uint32_t>(walked);
    extent.levels = std::max(extent.levels, static_cast<std::uint8_t>(inner.levels + 1));
    ++step.next;
  }
  return Status::ok();
}

}  // namespace millrace
