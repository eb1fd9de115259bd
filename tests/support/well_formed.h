// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::testing {

/// Returns the first fault in markup; empty for faultless markup. Every element must be closed,
/// every attribute quoted, and every & must begin an entity, as in XML. The contents of <style> and
/// <script> are skipped.
inline std::string fault_in_markup(std::string_view html) {
  const auto around = [&](std::size_t at) { return std::string(html.substr(at, 80)); };
  std::vector<std::string> open;
  std::size_t at = html.starts_with("<!DOCTYPE html>") ? 15 : 0;
  while (at < html.size()) {
    if (html[at] == '&') {
      const std::size_t end = html.find(';', at);
      if (end == std::string_view::npos || end - at > 6) return "bare & at: " + around(at);
    }
    if (html[at] == '>') return "bare > at: " + around(at);
    if (html[at] != '<') {
      ++at;
      continue;
    }
    const std::size_t begin = at++;
    const bool closes = at < html.size() && html[at] == '/';
    if (closes) ++at;
    std::size_t name_end = html.find_first_of(" \n/>", at);
    if (name_end == std::string_view::npos || name_end == at) return "no name at: " + around(begin);
    const std::string name(html.substr(at, name_end - at));
    at = name_end;
    bool quoted = false;
    while (at < html.size() && (quoted || html[at] != '>')) {
      if (html[at] == '"') quoted = !quoted;
      if (html[at] == '<') return "< within a tag at: " + around(begin);
      if (html[at] == '=' && !quoted && (at + 1 == html.size() || html[at + 1] != '"'))
        return "value not quoted: " + around(begin);
      ++at;
    }
    if (at == html.size()) return "tag without an end: " + around(begin);
    const bool empty = html[at - 1] == '/';
    ++at;
    if (closes) {
      if (open.empty() || open.back() != name)
        return "</" + name + "> closes nothing: " + around(begin);
      open.pop_back();
    } else if (!empty) {
      open.push_back(name);
    }
    if (!closes && !empty && (name == "style" || name == "script")) {
      at = html.find("</" + name, at);
      if (at == std::string_view::npos) return name + " without an end";
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

}  // namespace millrace::testing
