// SPDX-License-Identifier: Apache-2.0
#include "measure/page/page.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <millrace/detail/json_text.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace millrace::cli {

/// page.html with style and script, from page_template.cpp.in.
extern const char* const page_template;

namespace {

/// Wraps `content` in an element. Returns an empty text if `content` is empty.
std::string element(const char* opening, const std::string& content, const char* closing) {
  return content.empty() ? "" : opening + content + closing;
}

std::string paragraph(const char* style, const std::string& text) {
  return text.empty() ? "" : fmt::format("<p class=\"{}\">{}</p>\n", style, escape(text));
}

std::string list_html(const std::vector<std::string>& sentences, const char* style) {
  std::string items;
  for (const std::string& sentence : sentences) items += "<li>" + escape(sentence) + "</li>\n";
  return element(fmt::format("<ul class=\"{}\">\n", style).c_str(), items, "</ul>\n");
}

std::string table_html(const Table& table) {
  const bool named_values = table.head.empty();
  const auto class_of = [&](std::size_t column, std::size_t columns) {
    return column + table.text_columns >= columns ? " class=\"text\"" : "";
  };
  std::string head;
  for (std::size_t column = 0; column < table.head.size(); ++column)
    head += fmt::format("<th scope=\"col\"{}>{}</th>", class_of(column, table.head.size()),
                        escape(table.head[column]));
  std::string body;
  for (const auto& row : table.rows) {
    body += "<tr>";
    for (std::size_t column = 0; column < row.size(); ++column)
      body += column == 0
                  ? fmt::format("<th scope=\"row\">{}</th>", escape(row[column]))
                  : fmt::format("<td{}>{}</td>", class_of(column, row.size()), escape(row[column]));
    body += "</tr>\n";
  }
  const std::string title = escape(table.title);
  const std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table "
      "class=\"{}\">\n{}<tbody>\n{}</tbody></table></div>\n",
      title.empty() ? "Table" : title, named_values ? "named" : "figures",
      element("<thead><tr>", head, "</tr></thead>\n"), body);
  if (table.repeats_chart)
    return fmt::format(
        "<details class=\"repeats\" open=\"open\"><summary>{}</summary>{}</details>\n",
        title.empty() ? "In numbers" : title, html);
  return element("<h3>", title, "</h3>\n") + html;
}

/// Returns the chart's HTML. Its data is in a script element of a type that browsers do not run.
/// "<" is written as a JSON escape, so that no text can end the script.
std::string chart_html(const Chart& chart) {
  std::string data;
  for (const char letter : chart.data)
    if (letter == '<')
      data += "\\u003c";
    else
      data += letter;
  return fmt::format(
      "<div class=\"picture {0}\" data-kind=\"{0}\"><script type=\"application/json\">{1}</script>"
      "</div>\n",
      chart.kind, data);
}

std::string section_html(const Section& section) {
  std::string html = fmt::format("<section>\n<h2>{}</h2>\n", escape(section.title));
  html += paragraph("how", section.text);
  if (section.chart) html += chart_html(*section.chart);
  std::string named_values;
  for (const Table& table : section.tables)
    if (table.head.empty())
      named_values += "<div>" + table_html(table) + "</div>";
    else
      html += table_html(table);
  html += element("<div class=\"columns\">", named_values, "</div>\n");
  html += list_html(section.list, "sentences");
  if (!section.folded.empty())
    html += fmt::format("<details><summary>{}</summary><pre>{}</pre></details>\n",
                        escape(section.folded_title), escape(section.folded));
  return html + "</section>\n";
}

std::string numbers_html(const std::vector<KeyNumber>& numbers) {
  std::string html;
  for (const KeyNumber& number : numbers)
    html +=
        fmt::format("<div><dt>{}</dt><dd><strong>{}</strong>{}<small>{}</small></dd></div>\n",
                    escape(number.name), escape(number.value),
                    number.unit.empty() ? "" : " " + escape(number.unit), escape(number.detail));
  return element("<dl class=\"numbers\">\n", html, "</dl>\n");
}

/// Replaces a placeholder of the template by a text. Placeholders begin with "<!", which no
/// inserted text contains.
void fill(std::string& html, std::string_view mark, const std::string& text) {
  html.replace(html.find(mark), mark.size(), text);
}

}  // namespace

std::string escape(std::string_view text) {
  constexpr std::pair<char, const char*> entities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string escaped;
  for (const char letter : escape_non_utf8(text)) {
    const auto* entity = std::ranges::find(entities, letter, &std::pair<char, const char*>::first);
    if (entity != std::end(entities))
      escaped += entity->second;
    else if (static_cast<unsigned char>(letter) < 0x20 && letter != '\n' && letter != '\t')
      escaped += "\xEF\xBF\xBD";
    else
      escaped += letter;
  }
  return escaped;
}

std::string duration_text(double milliseconds) {
  if (milliseconds <= 0) return "0";
  if (milliseconds < 0.01) return fmt::format("{:.1f} µs", 1e3 * milliseconds);
  if (milliseconds < 0.9995) return fmt::format("{:.0f} µs", 1e3 * milliseconds);
  if (milliseconds < 9.995) return fmt::format("{:.2f} ms", milliseconds);
  if (milliseconds < 99.95) return fmt::format("{:.1f} ms", milliseconds);
  if (milliseconds < 999.5) return fmt::format("{:.0f} ms", milliseconds);
  return fmt::format("{:.2f} s", 1e-3 * milliseconds);
}

Chart make_chart(std::string kind, const nlohmann::ordered_json& data) {
  return {std::move(kind),
          data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

std::string page_html(const Page& page) {
  std::string main = paragraph("advice", page.advice) + list_html(page.warnings, "warnings") +
                     numbers_html(page.numbers);
  for (const Section& section : page.sections) main += section_html(section);
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::string html = page_template;
  fill(html, "<!--title-->", escape(page.title));
  fill(html, "<!--subject-->", escape(page.subject));
  fill(html, "<!--verdict-->", escape(page.verdict));
  fill(html, "<!--main-->", main);
  fill(html, "<!--written-->",
       fmt::format("Written by millrace " MILLRACE_VERSION " on {:%Y-%m-%d at %H:%M} UTC.",
                   fmt::gmtime(now)));
  return html;
}

}  // namespace millrace::cli
