// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/json_text.h>
#include <utf8.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

/// Checks a text without building any objects.
class Limits final : public nlohmann::json_sax<Json> {
 public:
  explicit Limits(std::string_view text) : text_(text) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t&) override {
    if (++members_.back() <= max_json_members) return true;
    problem_ = "an object has more than " + std::to_string(max_json_members) + " members";
    return false;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    const std::string_view before = text_.substr(0, position == 0 ? 0 : position - 1);
    problem_ = "it goes wrong in line " + std::to_string(std::ranges::count(before, '\n') + 1) +
               ", at byte " + std::to_string(position - (before.rfind('\n') + 1));
    return false;
  }

 private:
  bool open() {
    members_.push_back(0);
    if (members_.size() <= max_json_levels) return true;
    problem_ = "it is nested in more than " + std::to_string(max_json_levels) + " levels";
    return false;
  }
  bool close() {
    members_.pop_back();
    return true;
  }

  std::string_view text_;
  /// Number of members of each open object or array, outermost first.
  std::vector<std::size_t> members_;
  std::string problem_;
};

}  // namespace

std::string json_problem(std::string_view text, std::size_t max_bytes) {
  constexpr const char* invalid = "is not valid JSON: ";
  if (text.size() > max_bytes)
    return invalid + ("it is longer than " + std::to_string(max_bytes) + " bytes");
  Limits limits(text);
  return Json::sax_parse(text, &limits) ? "" : invalid + limits.problem();
}

std::string json_reason(const std::exception& error) {
  const std::string text = error.what();
  const std::size_t code_end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return code_end == std::string::npos ? text : text.substr(code_end + 2);
}

std::string escape_non_utf8(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string escaped;
  for (const char *begin = text.data(), *const end = begin + text.size(); begin != end;) {
    const char* const invalid = utf8::find_invalid(begin, end);
    escaped.append(begin, invalid);
    begin = invalid;
    if (invalid == end) break;
    const auto byte = static_cast<unsigned char>(*begin++);
    escaped += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
  }
  return escaped;
}

std::string read_text(std::istream& file, std::size_t max_bytes) {
  std::string text;
  char part[std::size_t{1} << 14];
  while (text.size() <= max_bytes && (file.read(part, sizeof part) || file.gcount() > 0))
    text.append(part, static_cast<std::size_t>(file.gcount()));
  text.resize(std::min(text.size(), max_bytes + 1));
  return text;
}

std::string cut(std::string text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.replace(end, std::string::npos, "...");
}

}  // namespace millrace
