// SPDX-License-Identifier: Apache-2.0
#include "console/figures.h"

#include <algorithm>

namespace millrace::cli {

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
