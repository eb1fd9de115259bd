// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/json_text.h>
#include <millrace/detail/webdataset_sample.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

Status no_label(const char* where, std::string_view text) {
  return Status::bad(std::string("the label in its ") + where + ", \"" + cut(std::string(text)) +
                     "\", is not a number from -1 up");
}

}  // namespace

MemberName parse_member_name(std::string_view path) {
  const std::size_t base = path.rfind('/') + 1;  // 0 without a slash
  const std::size_t dot = std::min(path.find('.', base), path.size());
  MemberName name{path.substr(0, dot), std::string(path.substr(std::min(dot + 1, path.size())))};
  std::ranges::transform(name.extension, name.extension.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return name;
}

std::string_view without_here(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path;
}

bool is_hidden_member(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with('.');
}

bool is_image_extension(std::string_view extension) {
  return std::ranges::find(image_extensions, extension) != image_extensions.end();
}

std::optional<std::int64_t> parse_label(std::string_view digits) {
  std::int64_t label = 0;
  const char* const end = digits.data() + digits.size();
  const auto [read, error] = std::from_chars(digits.data(), end, label);
  if (error != std::errc() || read != end || label < -1) return {};
  return label;
}

Status read_cls_label(std::string_view text, std::int64_t& label) {
  const std::optional<std::int64_t> found = parse_label(trimmed(text));
  if (!found) return no_label(".cls", trimmed(text));
  label = *found;
  return Status::ok();
}

Status read_json_label(std::string_view text, std::optional<std::int64_t>& label) {
  label.reset();
  const std::string problem = json_problem(text, max_label_text_bytes);
  const nlohmann::json json = problem.empty() ? nlohmann::json::parse(text) : nullptr;
  if (!json.is_object())
    return Status::bad("its .json is not a JSON object" +
                       (problem.empty() ? "" : ": it " + problem));
  for (const char* field : {"label", "cls"})
    if (const auto found = json.find(field); found != json.end()) {
      const std::string digits =
          found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      label = parse_label(digits);
      return label ? Status::ok() : no_label(".json", digits);
    }
  return Status::ok();
}

}  // namespace millrace
