// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace millrace {

struct None {};

enum class Collection : std::uint8_t { tuple, list, dictionary };

/// The items of a collection, which `Values` has. A dictionary's are key, value, key, value ...
struct Items {
  Collection kind = Collection::tuple;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// One value, as other programs store it. Text is UTF-8, which is checked.
using Value = std::variant<None, bool, std::int64_t, double, std::span<const std::byte>,
                           std::string_view, Items>;

/// A value as messages name it: "None", "an integer", "bytes", "a tuple of 2" ...
std::string described(const Value& value);

/// Whether a value is this text, or bytes of this text, as Python 2 and some writers of MessagePack
/// store it.
bool is_text(const Value& value, std::string_view text);

/// Whether a text is UTF-8: without surrogates, and nothing longer than it need be.
bool is_utf8(std::string_view text);

/// A name that is in the input, for messages: at most 200 bytes, and "?" for what is not printable
/// ASCII.
std::string shown(std::string_view name);

/// What a parser has found in one input: values that hold each other. Collections name their items
/// by number, so one that the input refers to twice is there once.
///
/// Lifetimes: bytes and texts are views of the input, or of this object where the input has them
/// escaped. All of it is valid until a parser is given the object again, which keeps its memory: in
/// the steady state a parser allocates nothing.
///
/// Limits, whatever the input: `max_levels` of collections, `max_values` values and as many items,
/// none of which holds itself. Going through all of it, each shared value as often as it is
/// referred to, meets at most as many values as the input has bytes, or 2^20 if these are more.
///
/// Threads: one at a time.
class Values {
 public:
  static constexpr std::size_t max_levels = 32;
  static constexpr std::size_t max_values = std::size_t{1} << 24;

  /// What the input is. Only behind a parser that has returned Status::ok().
  const Value& root() const { return values_[root_]; }

  /// How many items a tuple or list has, or entries a dictionary; 0 for other values.
  std::size_t size(const Value& value) const;
  /// Item `n` < size() of a tuple or list.
  const Value& item(const Value& collection, std::size_t n) const;
  /// The key and the value of entry `n` < size() of a dictionary.
  std::pair<const Value&, const Value&> entry(const Value& dictionary, std::size_t n) const;
  /// The value of a dictionary's last entry whose key is this text, or bytes of this text; null if
  /// it has none, or is no dictionary.
  const Value* find(const Value& dictionary, std::string_view key) const;

  // For the parsers, in this order. A number is a value's place; those of None, false and true are
  // there from the start.
  static constexpr std::uint32_t none = 0;
  static std::uint32_t boolean(bool is) { return is ? 2 : 1; }

  void start(std::size_t input_bytes);
  std::uint32_t add(const Value& value);
  std::uint32_t add(Collection kind) { return add(Items{.kind = kind}); }
  const Value& at(std::uint32_t number) const { return values_[number]; }
  /// Adds an item behind the others of a collection. For a dictionary it is a key or a value.
  void append(std::uint32_t collection, std::uint32_t item);
  /// Whether there are more values or items than `max_values`. A parser asks before they are many
  /// more, and then stops.
  bool too_many() const { return values_.size() > max_values || edges_.size() > max_values; }
  /// For what has to be unescaped: at most twice as many bytes in all as the input has. What is
  /// appended to it stays where it is until the next start().
  std::string& unescaped();
  /// Bad if the values that `root` leads to break a limit.
  Status finish(std::uint32_t root);

 private:
  struct Edge {
    std::uint32_t collection = 0;
    std::uint32_t item = 0;
  };
  /// What is known of a collection in finish().
  struct Extent {
    std::uint32_t walked = 0;  // how many values a walk through it meets; 0 if not yet known
    std::uint8_t levels = 0;
    bool is_open = false;
  };

  bool is_collection(std::uint32_t number) const;
  void gather_items();
  Status measure(std::uint32_t root);

  std::vector<Value> values_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> items_;
  std::vector<Extent> extents_;
  std::string unescaped_;
  std::size_t input_bytes_ = 0;
  std::uint32_t root_ = 0;
};

}  // namespace millrace
