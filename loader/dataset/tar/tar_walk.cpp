// SPDX-License-Identifier: Apache-2.0
#include "dataset/tar/tar_walk.h"

#include <millrace/detail/json_text.h>
#include <millrace/detail/webdataset_sample.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace millrace {
namespace {

/// Limit for an extended header, far longer than any path.
constexpr std::uint64_t max_extended_bytes = std::uint64_t{1} << 20;
/// Limit for the zeros of an end mark, longer than any tape record.
constexpr std::uint64_t max_zero_bytes = std::uint64_t{1} << 20;

[[noreturn]] void damaged(std::uint64_t offset, const std::string& what) {
  throw TarDamage("the header at byte " + std::to_string(offset) + " " + what);
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + tar_block_bytes - 1) / tar_block_bytes * tar_block_bytes;
}

/// A header block, the C structure of POSIX and GNU.
class Header {
 public:
  explicit Header(std::span<const std::byte> block)
      : text_(reinterpret_cast<const char*>(block.data()), block.size()) {}

  /// Compares the sum of the block's bytes, in which the checksum itself counts as blanks. Historic
  /// tars add signed bytes, so both sums are accepted.
  bool checksum_is_right() const {
    std::uint32_t sum = 0;
    std::uint32_t signed_sum = 0;
    for (std::size_t at = 0; at < text_.size(); ++at) {
      const char byte = at >= 148 && at < 156 ? ' ' : text_[at];
      sum += static_cast<unsigned char>(byte);
      signed_sum += static_cast<std::uint32_t>(static_cast<signed char>(byte));
    }
    const std::optional<std::uint64_t> stored = number(148, 8);
    return stored && (*stored == sum || *stored == signed_sum);
  }
  std::uint32_t checksum() const { return static_cast<std::uint32_t>(*number(148, 8)); }

  char type() const { return text_[156]; }
  std::optional<std::uint64_t> bytes() const { return number(124, 12); }
  std::string path() const {
    const std::string_view name = field(0, 100);
    const std::string_view prefix = text_.substr(257, 6) == std::string_view("ustar\0", 6)
                                        ? field(345, 155)
                                        : std::string_view();
    return prefix.empty() ? std::string(name) : std::string(prefix) + "/" + std::string(name);
  }

 private:
  /// Returns the text of a field, up to its end or the first zero byte.
  std::string_view field(std::size_t begin, std::size_t bytes) const {
    const std::string_view all = text_.substr(begin, bytes);
    return all.substr(0, all.find('\0'));
  }
  /// Parses octal digits, or base 256 for larger numbers; nullopt for anything else.
  std::optional<std::uint64_t> number(std::size_t begin, std::size_t bytes) const {
    std::string_view digits = text_.substr(begin, bytes);
    if (digits[0] == '\x80') return base_256(digits.substr(1));
    digits = digits.substr(0, digits.find('\0'));
    digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
    digits = digits.substr(0, digits.find(' '));
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [read, error] = std::from_chars(digits.data(), end, value, 8);
    if (!digits.empty() && (error != std::errc() || read != end)) return {};
    return value;
  }
  static std::optional<std::uint64_t> base_256(std::string_view digits) {
    std::uint64_t value = 0;
    for (const char digit : digits) {
      if (value >> 55 != 0) return {};
      value = value << 8 | static_cast<unsigned char>(digit);
    }
    return value;
  }

  std::string_view text_;
};

}  // namespace

bool begins_with_header(std::span<const std::byte> bytes) {
  return bytes.size() >= tar_block_bytes &&
         Header(bytes.first(tar_block_bytes)).checksum_is_right();
}

bool TarWalk::pass_zeros() {
  for (const std::uint64_t begin = at_; at_ < end_; at_ += tar_block_bytes) {
    const auto block = bytes_.read(at_, std::min<std::uint64_t>(tar_block_bytes, end_ - at_));
    if (!is_zero(block)) return true;
    marked_ = marked_ || block.size() == tar_block_bytes;
    if (has_end_mark_ && at_ - begin >= max_zero_bytes) return false;
  }
  return false;
}

std::string_view TarWalk::extended_text(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes > max_extended_bytes)
    damaged(offset - tar_block_bytes, "has an extension of " + std::to_string(bytes) +
                                          " bytes; at most " + std::to_string(max_extended_bytes) +
                                          " are read");
  const auto text = bytes_.read(offset, static_cast<std::size_t>(bytes));
  if (text.size() < bytes) damaged(offset - tar_block_bytes, "goes on behind the file's end");
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

void TarWalk::read_pax(std::string_view text, Extended& extended) const {
  const auto refuse = [&] { damaged(at_, "has a damaged extension"); };
  while (!text.empty()) {
    // The length covers the whole record: "27 path=folder/name.jpg\n".
    std::size_t length = 0;
    const auto [blank, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(blank - text.data());
    if (error != std::errc() || length > text.size() || length < digits + 3 ||
        text[digits] != ' ' || text[length - 1] != '\n')
      refuse();
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    text.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == record.npos) refuse();
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") {
      extended.path = std::string(value);
    } else if (key == "size") {
      std::uint64_t bytes = 0;
      const char* const end = value.data() + value.size();
      const auto [read, wrong] = std::from_chars(value.data(), end, bytes);
      if (wrong != std::errc() || read != end) refuse();
      extended.bytes = bytes;
    } else if (key.starts_with("GNU.sparse.")) {
      extended.sparse = true;
    }
  }
}

bool TarWalk::next(TarMember& member) {
  Extended extended;
  // Offset of the member's first header. Headers of extensions may stand before its own header.
  std::uint64_t begin = 0;
  bool has_extensions = false;
  for (;;) {
    if (!has_extensions && !pass_zeros()) {
      if (has_end_mark_ && !marked_)
        throw TarDamage("it ends without a tar's end mark: it was cut short");
      return false;
    }
    const auto block = bytes_.read(at_, std::min<std::uint64_t>(tar_block_bytes, end_ - at_));
    if (block.size() < tar_block_bytes)
      throw TarDamage("it ends within a header, at byte " + std::to_string(at_ + block.size()) +
                      ": it was cut short");
    const Header header(block);
    if (!header.checksum_is_right()) damaged(at_, "is missing or damaged: its checksum is wrong");
    marked_ = false;
    if (!has_extensions) begin = at_;
    const char type = header.type();
    const std::optional<std::uint64_t> stored_bytes = header.bytes();
    if (!stored_bytes) damaged(at_, "has a damaged size");

    const bool is_extension =
        type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
    const bool is_regular = type == '0' || type == '\0' || type == '7';
    // Folders, links and devices have no contents, whatever size their headers state.
    const bool has_contents = type < '1' || type > '6';
    std::uint64_t bytes = *stored_bytes;
    if (!is_extension && extended.bytes) bytes = *extended.bytes;
    if (!has_contents) bytes = 0;
    const std::uint64_t data = at_ + tar_block_bytes;
    if (bytes > end_ - data)
      throw TarDamage("the member of the header at byte " + std::to_string(at_) +
                      " would end at byte " + std::to_string(data) + " + " + std::to_string(bytes) +
                      ", behind the end: it was cut short");
    member.header_checksum = header.checksum();
    member.path = extended.path ? *extended.path : is_extension ? "" : header.path();
    if (type == 'S' || (is_regular && extended.sparse))
      throw TarDamage("its member \"" + cut(member.path) +
                      "\" is sparse, which cannot be read in place; `millrace pack` reads it");
    if (type == 'L') {
      const std::string_view name = extended_text(data, bytes);
      extended.path = std::string(name.substr(0, name.find('\0')));
    } else if (type == 'x' || type == 'X') {
      read_pax(extended_text(data, bytes), extended);
    }
    // At the end of a file, the padding of the last block may be missing.
    at_ = std::min(data + padded(bytes), end_);
    has_extensions = is_extension;
    if (is_extension) continue;
    if (is_regular && !member.path.ends_with('/')) {
      member.path = std::string(without_here(member.path));
      member.begin = begin;
      member.data = data;
      member.bytes = bytes;
      member.end = at_;
      return true;
    }
    extended = {};
  }
}

}  // namespace millrace
