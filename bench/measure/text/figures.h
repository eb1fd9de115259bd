// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

/// A value as JSON; null for nullopt.
template <typename Value>
nlohmann::ordered_json json_of(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

/// Formats a result as valid JSON without control characters, whatever bytes names have.
std::string json_text(const nlohmann::ordered_json& json);

/// The figures of a result: each has a key for programs, and a name and a text for people. All
/// outputs of a result take their figures from here.
class Figures {
 public:
  using Json = nlohmann::ordered_json;

  /// Adds a number with a format such as "{:.1f} ms".
  template <typename Number>
  void add(const char* key, const char* label, const char* format, Number value) {
    figures_.push_back({key, label, value, fmt::format(fmt::runtime(format), value)});
  }
  /// Adds a figure without a row.
  void key(const char* key, Json value) { figures_.push_back({key, {}, std::move(value), {}}); }
  /// Adds a row without a key: its figures have keys of their own.
  void row(std::string label, std::string text) {
    figures_.push_back({{}, std::move(label), {}, std::move(text)});
  }

  /// All figures with a key, as an object.
  Json json() const;
  /// The text of a figure that has both a key and a row.
  const std::string& text(std::string_view key) const;
  /// All rows: name and text.
  std::vector<std::vector<std::string>> rows() const;

 private:
  struct Figure {
    std::string key;
    std::string label;
    Json value;
    std::string text;
  };
  std::vector<Figure> figures_;
};

}  // namespace millrace::cli
