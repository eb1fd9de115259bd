// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

using EntryValue = nlohmann::ordered_json;

/// Location of an entry, for messages: "instances.json: annotations[17]: ...".
struct EntryLocation {
  const std::filesystem::path& file;
  std::string_view list;
  std::uint64_t number = 0;

  /// "annotations[17]".
  std::string text() const;
  /// Both throw `Error` (`invalid_argument`).
  [[noreturn]] void fail(const std::string& problem) const;
  [[noreturn]] void fail(std::string_view key, const EntryValue& value,
                         std::string_view must_be) const;
};

/// A key of an entry.
struct EntryKey {
  std::string_view name;
  /// Expected value, for messages: "an integer".
  std::string_view must_be;
  bool required = true;
  /// Maximum length of its list of numbers; 0 = the value is not a list.
  std::size_t max_numbers = 0;
};

/// An entry of a list: an object with the values of the keys that were asked for.
class JsonEntry {
 public:
  JsonEntry(EntryLocation place, const std::vector<EntryKey>& keys,
            const std::vector<std::optional<EntryValue>>& values)
      : place_(place), keys_(keys), values_(values) {}

  const EntryLocation& place() const { return place_; }
  /// Returns null if the entry does not have the key.
  const EntryValue* find(std::string_view key) const;
  /// Values of required keys. Both throw `Error` (`invalid_argument`) if the value has another
  /// type.
  std::int64_t integer(std::string_view key) const;
  const std::string& text(std::string_view key) const;
  /// The numbers of a list.
  const EntryValue& numbers(std::string_view key) const { return *find(key); }
  /// Throws `Error` (`invalid_argument`) that says what the value of `key` must be.
  [[noreturn]] void refuse(std::string_view key) const;

 private:
  std::size_t at(std::string_view key) const;

  EntryLocation place_;
  const std::vector<EntryKey>& keys_;
  const std::vector<std::optional<EntryValue>>& values_;
};

/// A required list of entries in the top-level object.
struct EntryList {
  std::string_view name;
  std::vector<EntryKey> keys;
  /// Called for each entry in the file's order. An exception ends the reading.
  std::function<void(const JsonEntry&)> take;
};

/// Reads parts of a large JSON object, such as {"images": [{"id": 1}]}, one entry of `lists` at a
/// time. It keeps only the keys that the list names and skips everything else. Memory: one entry,
/// or one skipped value of at most 4 MiB; the stack does not grow with the input. Returns a hash of
/// the file's bytes. Throws `Error`: `not_found`; `io` if the file cannot be read;
/// `invalid_argument` with file, entry, key and value if the text is not of this form or has more
/// than 64 levels.
std::uint64_t read_json_entries(const std::filesystem::path& file,
                                const std::vector<EntryList>& lists);

}  // namespace millrace::cli
