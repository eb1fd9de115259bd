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

/// What messages are about: "instances.json: annotations[17]: ...".
struct EntryPlace {
  const std::filesystem::path& file;
  std::string_view list;
  std::uint64_t number = 0;

  /// "annotations[17]".
  std::string text() const;
  /// These throw `Error` (`invalid_argument`).
  [[noreturn]] void fail(const std::string& problem) const;
  [[noreturn]] void fail(std::string_view key, const EntryValue& value,
                         std::string_view must_be) const;
};

/// A key of an entry.
struct EntryKey {
  std::string_view name;
  /// What its value is, for messages: "an integer".
  std::string_view must_be;
  bool required = true;
  /// The most numbers of its list; 0: its value is no list.
  std::size_t most_numbers = 0;
};

/// An object with values for some keys, of a list.
class JsonEntry {
 public:
  JsonEntry(EntryPlace place, const std::vector<EntryKey>& keys,
            const std::vector<std::optional<EntryValue>>& values)
      : place_(place), keys_(keys), values_(values) {}

  const EntryPlace& place() const { return place_; }
  /// Null if the entry has no such key.
  const EntryValue* find(std::string_view key) const;
  /// Of a key that is required. These throw `Error` (`invalid_argument`) for another value.
  std::int64_t integer(std::string_view key) const;
  const std::string& text(std::string_view key) const;
  /// The numbers of a list.
  const EntryValue& numbers(std::string_view key) const { return *find(key); }
  /// Says what the value of `key` must be.
  [[noreturn]] void refuse(std::string_view key) const;

 private:
  std::size_t at(std::string_view key) const;

  EntryPlace place_;
  const std::vector<EntryKey>& keys_;
  const std::vector<std::optional<EntryValue>>& values_;
};

/// A list of entries that the whole object must have.
struct EntryList {
  std::string_view name;
  std::vector<EntryKey> keys;
  /// Called for each entry in the file's order. What it throws ends the reading.
  std::function<void(const JsonEntry&)> take;
};

/// Reads a JSON object that is larger than what of it is of use, such as {"images": [{"id": 1}]}:
/// one entry at a time of its `lists`, and of that the keys which the list names. All else is
/// passed over. It takes memory for one entry, or for a value that is passed over (4 MiB at most),
/// and stack for none. Returns a hash of the file's bytes. Throws `Error`: `not_found`,
/// `invalid_argument` with file, place, key and value for another text, and for one that is nested
/// in more than 64 levels, `io` if it cannot be read.
std::uint64_t read_json_entries(const std::filesystem::path& file,
                                const std::vector<EntryList>& lists);

}  // namespace millrace::cli
