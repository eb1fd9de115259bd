// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "page/page.h"

namespace millrace::cli {

/// A table; all texts are plain. The first column names the row, the last `text_columns` hold
/// texts, those between numbers.
struct HtmlTable {
  std::string title;
  /// None = a table of names and values without a head.
  std::vector<std::string> columns{};
  std::vector<std::vector<std::string>> rows{};
  std::size_t text_columns = 0;
};

std::string to_html(const HtmlTable& table);

/// A part of a page under a heading of its own.
struct PageSection {
  std::string title;
  /// A sentence or two that say how to read it. Plain text.
  std::string text{};
  /// Markup.
  std::string body{};
};

/// One page in one file that needs nothing else: no network, no script for what matters. Light or
/// dark as the reader's system is.
struct HtmlPage {
  std::string title;
  /// What the page is about, in small print above the verdict.
  std::string subject{};
  /// What to know first, in words.
  std::string verdict{};
  /// What to do next.
  std::string advice{};
  std::vector<KeyNumber> numbers{};
  std::vector<PageSection> sections{};
};

std::string to_html(const HtmlPage& page);

}  // namespace millrace::cli
