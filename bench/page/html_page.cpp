// SPDX-License-Identifier: Apache-2.0
#include "page/html_page.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "page_assets.h"

namespace millrace::cli {
namespace {

/// Fills that tell waiting from working without colour; charts refer to them.
constexpr const char* patterns =
    "<svg class=\"patterns\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>"
    "<pattern id=\"waits-input\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\">"
    "<rect class=\"under-waits\" width=\"7\" height=\"7\"/><rect class=\"over-waits\" width=\"3\" "
    "height=\"7\"/></pattern>"
    "<pattern id=\"starves\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\">"
    "<rect class=\"under-starves\" width=\"7\" height=\"7\"/><rect class=\"over-starves\" "
    "width=\"3\" height=\"7\"/></pattern>"
    "<pattern id=\"waits-output\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
    "<rect class=\"under-waits\" width=\"6\" height=\"6\"/><circle class=\"over-dots\" cx=\"3\" "
    "cy=\"3\" r=\"1.4\"/></pattern>"
    "</defs></svg>\n";

std::string header(const HtmlPage& page) {
  std::string html = fmt::format(
      "<header>\n<p class=\"subject\">{}</p>\n"
      "<button type=\"button\" id=\"theme\" hidden=\"hidden\" aria-label=\"Switch between light "
      "and dark\">Light / "
      "dark</button>\n"
      "<h1>{}</h1>\n",
      escape(page.subject), escape(page.verdict));
  if (!page.advice.empty())
    html += fmt::format("<p class=\"advice\">{}</p>\n", escape(page.advice));
  return html + "</header>\n";
}

std::string key_numbers(const std::vector<KeyNumber>& numbers) {
  std::string html = "<dl class=\"numbers\">\n";
  for (const KeyNumber& number : numbers)
    html +=
        fmt::format("<div><dt>{}</dt><dd><strong>{}</strong>{}<small>{}</small></dd></div>\n",
                    escape(number.name), escape(number.value),
                    number.unit.empty() ? "" : " " + escape(number.unit), escape(number.detail));
  return html + "</dl>\n";
}

std::string to_html(const PageSection& section) {
  std::string html = fmt::format("<section>\n<h2>{}</h2>\n", escape(section.title));
  if (!section.text.empty()) html += fmt::format("<p class=\"how\">{}</p>\n", escape(section.text));
  return html + section.body + "</section>\n";
}

}  // namespace

std::string to_html(const HtmlTable& table) {
  const bool named_values = table.columns.empty();
  std::string html =
      table.title.empty() ? std::string() : fmt::format("<h3>{}</h3>\n", escape(table.title));
  html += fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table "
      "class=\"{}\">\n",
      escape(table.title.empty() ? "Table" : table.title), named_values ? "named" : "figures");
  const auto text_class = [&](std::size_t column, std::size_t columns) {
    return column + table.text_columns >= columns ? " class=\"text\"" : "";
  };
  if (!named_values) {
    html += "<thead><tr>";
    for (std::size_t column = 0; column < table.columns.size(); ++column)
      html += fmt::format("<th scope=\"col\"{}>{}</th>", text_class(column, table.columns.size()),
                          escape(table.columns[column]));
    html += "</tr></thead>\n";
  }
  html += "<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t column = 0; column < row.size(); ++column)
      html += column == 0 ? fmt::format("<th scope=\"row\">{}</th>", escape(row[column]))
                          : fmt::format("<td{}>{}</td>", text_class(column, row.size()),
                                        escape(row[column]));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string to_html(const HtmlPage& page) {
  // The policy keeps a browser from asking for anything, should a text ever hold markup.
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; "
      "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\"/>\n"
      "<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n{}<main>\n",
      escape(page.title), page_css, patterns);
  html += header(page);
  if (!page.numbers.empty()) html += key_numbers(page.numbers);
  for (const PageSection& section : page.sections) html += to_html(section);
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  html += fmt::format("<footer>Written by millrace " MILLRACE_VERSION
                      " on {:%Y-%m-%d at %H:%M} UTC.</footer>\n</main>\n",
                      fmt::gmtime(now));
  return html + fmt::format(
                    "<div id=\"tip\" role=\"status\" "
                    "hidden=\"hidden\"></div>\n<script>\n{}</script>\n</body>\n</html>\n",
                    page_js);
}

}  // namespace millrace::cli
