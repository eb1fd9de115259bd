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

#include "dataset/values/capacity_bytes.h"

namespace millrace {

struct None {};

enum class Collection : std::uint8_t { tuple, list, dictionary };

/// The range of a collection's items in its `Values`. A dictionary's items are key, value, key,
/// value ...
struct Items {
  Collection kind = Collection::tuple;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// One stored value of another program's format. Text is valid UTF-8.
using Value = std::variant<None, bool, std::int64_t, double, std::span<const std::byte>,
                           std::string_view, Items>;

/// Returns the name of a value for messages: "None", "an integer", "bytes", "a tuple of 2" ...
std::string described(const Value& value);

/// Returns whether a value is this text, or the bytes of this text, which Python 2 and some
/// MessagePack writers store instead.
bool is_text(const Value& value, std::string_view text);

/// Returns whether a text is valid UTF-8: without surrogates and without overlong forms.
bool is_utf8(std::string_view text);

/// Shows a name from the input in messages: at most 200 bytes, with "?" for characters other than
/// printable ASCII.
std::string shown(std::string_view name);

/// The values that a parser found in one input. Collections refer to their items by number, so a
/// value that the input refers to twice is stored once.
///
/// Lifetimes: bytes and texts are views of the input, or of this object if the input has them
/// escaped. All of it is valid until a parser uses the object again. The object keeps its memory,
/// so a parser allocates nothing in the steady state.
///
/// Limits for any input: `max_levels` nested collections, `max_values` values, and `max_values`
/// items. A collection never contains itself. A walk that visits each shared value as often as it
/// is referred to meets at most max(bytes of the input, 2^20) values.
///
/// Threads: one at a time.
class Values {
 public:
  static constexpr std::size_t max_levels = 32;
  static constexpr std::size_t max_values = std::size_t{1} << 24;

  /// Returns the value that the whole input represents. Only after a parser has returned
  /// Status::ok().
  const Value& root() const { return values_[root_]; }

  /// Returns the number of items of a tuple or list, or of entries of a dictionary; 0 for other
  /// values.
  std::size_t size(const Value& value) const;
  /// Returns item `n` (< size()) of a tuple or list.
  const Value& item(const Value& collection, std::size_t n) const;
  /// Returns the key and the value of entry `n` (< size()) of a dictionary.
  std::pair<const Value&, const Value&> entry(const Value& dictionary, std::size_t n) const;
  /// Returns the value of a dictionary's last entry whose key is this text, or the bytes of this
  /// text. Returns null if the dictionary has no such entry, and for other values.
  const Value* find(const Value& dictionary, std::string_view key) const;

  // For the parsers, in the order of use. A number is the index of a value. None, false and true
  // have the fixed numbers 0 to 2.
  static constexpr std::uint32_t none = 0;
  static std::uint32_t boolean(bool is) { return is ? 2 : 1; }

  void start(std::size_t input_bytes);
  std::uint32_t add(const Value& value);
  std::uint32_t add(Collection kind) { return add(Items{.kind = kind}); }
  const Value& at(std::uint32_t number) const { return values_[number]; }
  /// Appends an item to a collection. In a dictionary, keys and values alternate.
  void append(std::uint32_t collection, std::uint32_t item);
  /// Returns whether there are more than `max_values` values or items. Parsers must check this
  /// often, and stop.
  bool too_many() const { return values_.size() > max_values || edges_.size() > max_values; }
  /// Buffer for unescaped text, with room for twice as many bytes as the input has. Appended bytes
  /// stay valid until the next start().
  std::string& unescaped();
  /// Bytes of memory that it keeps for the next input.
  std::size_t held_bytes() const {
    return capacity_bytes(values_, edges_, items_, extents_, unescaped_);
  }
  /// Completes the values. Returns bad if the values reachable from `root` exceed a limit.
  Status finish(std::uint32_t root);

 private:
  struct Edge {
    std::uint32_t collection = 0;
    std::uint32_t item = 0;
  };
  /// Size of a collection, computed in finish().
  struct Extent {
    std::uint32_t walked = 0;  // values that a walk through it meets; 0 if unknown
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
