// SPDX-License-Identifier: Apache-2.0
//
// Tuples, lists and dictionaries that Python's pickle or MessagePack wrote.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "dataset/lmdb/lmdb_schema.h"
#include "dataset/lmdb/pictures.h"
#include "dataset/values/capacity_bytes.h"
#include "dataset/values/msgpack.h"
#include "dataset/values/pickle.h"
#include "dataset/values/value.h"

namespace millrace {
namespace {

/// Returns whether bytes begin like a pickle: with the protocol number from protocol 2 on, with
/// text in earlier protocols.
bool is_pickle(std::span<const std::byte> value) {
  constexpr int newest_protocol = 5;
  if (value.size() < 2) return false;
  const auto first = std::to_integer<unsigned char>(value[0]);
  if (first == 0x80) return std::to_integer<int>(value[1]) <= newest_protocol;
  return (first == '(' || first == ']' || first == '}') && value.back() == std::byte{'.'};
}

/// Limits for a record, since its entry can refer to the same value many times. If it does not, a
/// field has at most 8 times the bytes that its values have in the entry.
constexpr std::size_t max_fields = 4096;
constexpr std::size_t max_growth = 16;
constexpr std::size_t small_record_bytes = std::size_t{1} << 20;

/// Returns bad if the fields have too many bytes in total. Shared values count each time.
Status check_size(std::span<const RecordField> fields, std::size_t entry_bytes) {
  std::size_t bytes = 0;
  for (const RecordField& field : fields) bytes += field.bytes.size();
  if (bytes <= std::max(small_record_bytes, max_growth * entry_bytes)) return Status::ok();
  return Status::bad("its fields have " + std::to_string(bytes) + " bytes in all, of " +
                     std::to_string(entry_bytes) + " in the entry; at most " +
                     std::to_string(max_growth) + " times as many are read");
}

/// Flat list of all numbers in a collection, including nested ones.
class Numbers {
 public:
  /// Appends the numbers of a value. Returns false if it contains anything else.
  bool add(const Values& values, const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      integers_.push_back(*number);
      floats_.push_back(static_cast<double>(*number));
      return true;
    }
    if (const auto* is = std::get_if<bool>(&value)) return add(values, std::int64_t{*is});
    if (const auto* number = std::get_if<double>(&value)) {
      floats_.push_back(*number);
      return true;
    }
    const auto* items = std::get_if<Items>(&value);
    if (items == nullptr || items->kind == Collection::dictionary) return false;
    for (std::size_t n = 0; n < values.size(value); ++n)
      if (!add(values, values.item(value, n))) return false;
    return true;
  }

  void clear() {
    integers_.clear();
    floats_.clear();
  }
  /// Returns int64 values, or float64 if one of them is not an integer.
  std::span<const std::byte> bytes() const {
    return integers_.size() == floats_.size() ? std::as_bytes(std::span(integers_))
                                              : std::as_bytes(std::span(floats_));
  }
  std::size_t held_bytes() const { return capacity_bytes(integers_, floats_); }

 private:
  std::vector<std::int64_t> integers_;
  std::vector<double> floats_;
};

class TupleParser final : public EntryParser {
 public:
  Status parse(std::string_view, std::span<const std::byte> value,
               std::vector<RecordField>& fields) override {
    used_ = 0;
    is_pickled_ = is_pickle(value);
    Status read = is_pickled_ ? pickle_.read(value, values_) : read_msgpack(value, values_);
    if (!read.is_ok())
      return Status::bad((is_pickled_ ? "as a pickle: " : "as MessagePack: ") + read.reason());
    const Value& root = values_.root();
    const auto* items = std::get_if<Items>(&root);
    if (items == nullptr || values_.size(root) == 0)
      return Status::bad("it is " + described(root) + ", not a tuple with something in it");
    if (values_.size(root) > max_fields)
      return Status::bad("it is " + described(root) + "; a record has at most " +
                         std::to_string(max_fields) + " fields");
    collection_ = items->kind;
    Status added =
        collection_ == Collection::dictionary ? add_entries(root, fields) : add_items(root, fields);
    return added.is_ok() ? check_size(fields, value.size()) : std::move(added);
  }

  std::string kind() const override {
    std::string text = is_pickled_ ? "pickled " : "MessagePack ";
    text += collection_ == Collection::tuple  ? "tuples"
            : collection_ == Collection::list ? "lists"
                                              : "dictionaries";
    const std::string_view image = picture_kind(image_);
    return image.empty() ? text : text + " with " + std::string(image) + " images";
  }
  std::size_t held_bytes() const override {
    std::size_t bytes = pickle_.held_bytes() + values_.held_bytes();
    for (const Numbers& numbers : numbers_) bytes += sizeof numbers + numbers.held_bytes();
    return bytes + names_.size() * sizeof(std::string);  // names are short
  }

 private:
  /// Names the first item of bytes "image" and the first integer, bool or text "label". The names
  /// of the other items are their numbers.
  Status add_items(const Value& root, std::vector<RecordField>& fields) {
    bool has_image = false, has_label = false;
    image_ = {};
    for (std::size_t n = 0; n < values_.size(root); ++n) {
      const Value& value = values_.item(root, n);
      std::string_view name = item_name(n);
      if (!has_image && std::holds_alternative<std::span<const std::byte>>(value))
        name = "image", has_image = true;
      else if (!has_label && is_label(value))
        name = "label", has_label = true;
      if (Status added = add(name, value, fields); !added.is_ok()) return added;
    }
    return Status::ok();
  }

  /// Keeps the dictionary's names. If no entry is named "image" or "label", the first encoded image
  /// or the first integer gets that name.
  Status add_entries(const Value& root, std::vector<RecordField>& fields) {
    bool has_image = values_.find(root, "image") != nullptr;
    bool has_label = values_.find(root, "label") != nullptr;
    image_ = {};
    for (std::size_t n = 0; n < values_.size(root); ++n) {
      const auto [key, value] = values_.entry(root, n);
      const std::optional<std::string_view> text = text_of(key);
      if (!text) return Status::bad("it has " + described(key) + " as a key");
      std::string_view name = *text;
      const auto* bytes = std::get_if<std::span<const std::byte>>(&value);
      if (!has_image && bytes != nullptr && !picture_kind(*bytes).empty())
        name = "image", has_image = true;
      else if (!has_label && std::holds_alternative<std::int64_t>(value))
        name = "label", has_label = true;
      if (Status added = add(name, value, fields); !added.is_ok()) return added;
    }
    return Status::ok();
  }

  Status add(std::string_view name, const Value& value, std::vector<RecordField>& fields) {
    if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value)) {
      if (name == "image") image_ = *bytes;
      fields.push_back({name, *bytes});
    } else if (const auto* text = std::get_if<std::string_view>(&value)) {
      fields.push_back({name, std::as_bytes(std::span(*text))});
    } else if (std::holds_alternative<None>(value)) {
      fields.push_back({name, {}});
    } else {
      if (used_ == numbers_.size()) numbers_.emplace_back();
      Numbers& numbers = numbers_[used_++];
      numbers.clear();
      if (!numbers.add(values_, value))
        return Status::bad(std::string(name) + " is " + described(value) +
                           " with other things than numbers");
      fields.push_back({name, numbers.bytes()});
    }
    return Status::ok();
  }

  static bool is_label(const Value& value) {
    return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<bool>(value) ||
           std::holds_alternative<std::string_view>(value);
  }

  static std::optional<std::string_view> text_of(const Value& key) {
    if (const auto* text = std::get_if<std::string_view>(&key)) return *text;
    if (const auto* bytes = std::get_if<std::span<const std::byte>>(&key))
      return std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    return {};
  }

  std::string_view item_name(std::size_t n) {
    while (names_.size() <= n) names_.push_back("item" + std::to_string(names_.size()));
    return names_[n];
  }

  PickleReader pickle_;
  Values values_;
  bool is_pickled_ = false;
  Collection collection_ = Collection::tuple;
  std::span<const std::byte> image_;
  /// Memory of fields. It is a deque, so that views of its elements stay valid.
  std::deque<Numbers> numbers_;
  std::deque<std::string> names_;
  std::size_t used_ = 0;
};

class TuplesSchema final : public LmdbSchema {
 public:
  std::unique_ptr<EntryParser> make_parser() const override {
    return std::make_unique<TupleParser>();
  }
};

}  // namespace

std::unique_ptr<LmdbSchema> tuples() { return std::make_unique<TuplesSchema>(); }

}  // namespace millrace
