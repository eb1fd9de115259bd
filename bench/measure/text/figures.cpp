// SPDX-License-Identifier: Apache-2.0
#include "measure/text/figures.h"

#include <algorithm>

namespace millrace::cli {

std::string json_text(const nlohmann::ordered_json& json) {
  std::string text;
  for (const char byte : json.dump(2, ' ', false, Figures::Json::error_handler_t::replace)) {
    const auto letter = static_cast<unsigned char>(byte);
    // JSON already escapes characters below the space. In UTF-8, U+0080 to U+009F are two bytes,
    // and this is the first of them.
    const bool is_second = text.ends_with('\xc2');
    if (letter != 0x7F && !(is_second && letter < 0xA0)) {
      text += byte;
      continue;
    }
    if (is_second) text.pop_back();
    text += fmt::format("\\u{:04x}", letter);
  }
  return text + "\n";
}

Figures::Json Figures::json() const {
  Json json = Json::object();
  for (const Figure& figure : figures_)
    if (!figure.key.empty()) json[figure.key] = figure.value;
  return json;
}

const std::string& Figures::text(std::string_view key) const {
  return std::ranges::find(figures_, key, &Figure::key)->text;
}

std::vector<std::vector<std::string>> Figures::rows() const {
  std::vector<std::vector<std::string>> rows;
  for (const Figure& figure : figures_)
    if (!figure.label.empty()) rows.push_back({figure.label, figure.text});
  return rows;
}

}  // namespace millrace::cli
