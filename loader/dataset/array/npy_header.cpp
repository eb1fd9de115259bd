// SPDX-License-Identifier: Apache-2.0
#include "dataset/array/npy_header.h"

#include <millrace/detail/json_text.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

namespace millrace {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::size_t npy_version_bytes = 2;
/// NPY_MAXDIMS of numpy 2; older versions allow 32.
constexpr std::size_t max_npy_extents = 64;

[[noreturn]] void refuse_npy(const std::string& what) { throw Error(ErrorCode::corrupt, what); }

[[noreturn]] void refuse_npy_header(const std::string& what) {
  refuse_npy("has a damaged header: " + what + "; write it again with numpy.save");
}

struct NpyCode {
  std::string_view kind;
  DType dtype;
};

/// The supported dtypes by their code: kind and size, which numpy writes after the byte order.
constexpr NpyCode npy_codes[] = {
    {"b1", DType::boolean}, {"i1", DType::int8},    {"u1", DType::uint8},   {"i2", DType::int16},
    {"u2", DType::uint16},  {"i4", DType::int32},   {"u4", DType::uint32},  {"i8", DType::int64},
    {"u8", DType::uint64},  {"f2", DType::float16}, {"f4", DType::float32}, {"f8", DType::float64},
};

DType npy_dtype(std::string_view descr) {
  const std::string shown = "\"" + cut(std::string(descr)) + "\"";
  // "i4" and "|i4" state no byte order. numpy reads them in the machine's byte order, which is
  // little-endian.
  const bool states_order = "<>|="sv.find(descr.substr(0, 1)) != std::string_view::npos;
  const std::string_view kind = descr.substr(!descr.empty() && states_order ? 1 : 0);
  if (kind.starts_with("O"))
    refuse_npy("holds Python objects (dtype " + shown +
               "), which only Python can read; save an array of numbers");
  const auto* const code = std::ranges::find(npy_codes, kind, &NpyCode::kind);
  if (code == std::end(npy_codes))
    refuse_npy("has dtype " + shown +
               "; there are bool, int8 to int64, uint8 to uint64 and float16 to "
               "float64");
  const bool one_byte = size_of(code->dtype) == 1;
  if (descr[0] == '>' && !one_byte)
    refuse_npy("has big-endian numbers (dtype " + shown +
               "); save array.astype(array.dtype.newbyteorder(\"<\"))");
  return code->dtype;
}

/// Parses the header's text, a Python dictionary literal. Accepts only the literals that numpy
/// writes.
class NpyHeaderText {
 public:
  explicit NpyHeaderText(std::string_view text) : text_(text) {}

  NpyHeader parse() {
    expect('{');
    while (!take('}')) {
      const std::string_view key = string();
      expect(':');
      read(key);
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) refuse_npy_header("something follows its dictionary");
    if (!dtype_) refuse_npy_header("it has no \"descr\"");
    if (!order_known_) refuse_npy_header("it has no \"fortran_order\"");
    if (!shape_known_) refuse_npy_header("it has no \"shape\"");
    return {.dtype = *dtype_, .extents = std::move(extents_)};
  }

 private:
  void read(std::string_view key) {
    if (key == "descr" && !dtype_) {
      if (peek() == '[' || peek() == '(')
        refuse_npy("has a structured dtype; save each of its fields as an array of its own");
      dtype_ = npy_dtype(string());
    } else if (key == "fortran_order" && !order_known_) {
      if (boolean())
        refuse_npy(
            "is in Fortran order, so its records do not lie in one piece; save "
            "numpy.ascontiguousarray(array)");
      order_known_ = true;
    } else if (key == "shape" && !shape_known_) {
      read_shape();
      shape_known_ = true;
    } else {
      refuse_npy_header("it has the key \"" + cut(std::string(key)) +
                        "\" where descr, fortran_order and shape come once each");
    }
  }

  void read_shape() {
    expect('(');
    while (!take(')')) {
      if (extents_.size() == max_npy_extents)
        refuse_npy_header("its shape has more than " + std::to_string(max_npy_extents) +
                          " extents");
      extents_.push_back(integer());
      if (!take(',')) {
        expect(')');
        // (5) is an integer in Python, not a tuple.
        if (extents_.size() == 1) refuse_npy_header("its shape is not a tuple");
        break;
      }
    }
  }

  std::uint64_t integer() {
    skip_spaces();
    std::uint64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range)
      refuse_npy_header("its shape has an extent of more than 2^64");
    if (error != std::errc()) refuse_npy_header("its shape is not a tuple of counts");
    at_ += static_cast<std::size_t>(end - begin);
    // Python 2 wrote long integers with this suffix.
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  bool boolean() {
    skip_spaces();
    for (const std::string_view word : {"True"sv, "False"sv})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True"sv;
      }
    refuse_npy_header("\"fortran_order\" is neither True nor False");
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse_npy_header("there is no text where one must be");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) refuse_npy_header("a text has no end");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  char peek() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char letter) {
    if (peek() != letter || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char letter) {
    if (!take(letter))
      refuse_npy_header(std::string("there is no \"") + letter + "\" where one must be");
  }
  void skip_spaces() {
    while (at_ < text_.size() && " \t\r\n"sv.find(text_[at_]) != std::string_view::npos) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<DType> dtype_;
  std::vector<std::uint64_t> extents_;
  bool order_known_ = false;
  bool shape_known_ = false;
};

}  // namespace

bool is_npy(std::span<const std::byte> beginning) {
  return std::string_view(reinterpret_cast<const char*>(beginning.data()), beginning.size())
      .starts_with(npy_magic);
}

NpyHeader parse_npy_header(std::span<const std::byte> beginning) {
  const std::string_view file(reinterpret_cast<const char*>(beginning.data()), beginning.size());
  if (!is_npy(beginning)) refuse_npy("is not a .npy file: it does not begin with \"\\x93NUMPY\"");
  const auto byte = [&](std::size_t at) -> std::uint64_t {
    if (at >= file.size()) refuse_npy("is cut short within its header; copy or write it again");
    return static_cast<unsigned char>(file[at]);
  };
  const std::uint64_t major = byte(npy_magic.size());
  const std::uint64_t minor = byte(npy_magic.size() + 1);
  if (major < 1 || major > 3 || minor != 0)
    refuse_npy("is of version " + std::to_string(major) + "." + std::to_string(minor) +
               " of the .npy format; versions 1.0 to 3.0 are read");
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t length_at = npy_magic.size() + npy_version_bytes;
  std::uint64_t length = 0;
  for (std::size_t place = 0; place < length_bytes; ++place)
    length |= byte(length_at + place) << (8 * place);
  const std::size_t text_at = length_at + length_bytes;
  if (length > max_npy_header_bytes - text_at)
    refuse_npy("has a header of " + std::to_string(length) + " bytes; at most " +
               std::to_string(max_npy_header_bytes - text_at) + " are read");
  if (length > 0) (void)byte(text_at + static_cast<std::size_t>(length) - 1);
  NpyHeader header = NpyHeaderText(file.substr(text_at, static_cast<std::size_t>(length))).parse();
  header.data_offset = text_at + length;
  return header;
}

}  // namespace millrace
