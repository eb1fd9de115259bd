// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "support/jpeg_samples.h"

namespace millrace::testing {

/// Builds a tar (POSIX ustar) by hand.
class TarFile {
 public:
  /// Adds a member. A sparse one (type 'S', GNU's old format) is `claimed` bytes long, with a hole
  /// before the last `tail` bytes of the contents.
  void add(const std::string& name, std::string_view contents, char type = '0',
           std::size_t claimed = 0, std::size_t tail = 0) {
    char header[512] = {};
    const auto put = [&](std::size_t at, std::string_view text) {
      std::memcpy(header + at, text.data(), text.size());
    };
    const auto octal = [&](std::size_t at, std::size_t digits, std::size_t value) {
      for (std::size_t digit = digits; digit-- > 0; value /= 8)
        header[at + digit] = static_cast<char>('0' + value % 8);
    };
    put(0, name.substr(0, 100));
    octal(100, 7, 0644);
    octal(108, 7, 0);
    octal(116, 7, 0);
    octal(124, 11, contents.size());
    octal(136, 11, 0);
    put(148, "        ");
    header[156] = type;
    put(257, type == 'S' ? std::string_view("ustar  ", 8) : std::string_view("ustar\00000", 8));
    if (type == 'S') {
      octal(386, 11, 0);
      octal(398, 11, contents.size() - tail);
      octal(410, 11, claimed - tail);
      octal(422, 11, tail);
      octal(483, 11, claimed);
    }
    unsigned sum = 0;
    for (const char byte : header) sum += static_cast<unsigned char>(byte);
    octal(148, 6, sum);
    header[154] = 0;
    bytes_.append(header, sizeof header);
    bytes_ += contents;
    bytes_.resize((bytes_.size() + 511) / 512 * 512);
  }
  void add(const std::string& name, const Bytes& contents) {
    add(name, std::string_view(reinterpret_cast<const char*>(contents.data()), contents.size()));
  }

  std::size_t size() const { return bytes_.size(); }
  /// Writes the tar with its end mark.
  void write(const std::filesystem::path& path) const {
    std::ofstream(path, std::ios::binary) << bytes_ << std::string(1024, '\0');
  }
  /// Writes only the first bytes of the tar.
  void write_cut(const std::filesystem::path& path, std::size_t bytes) const {
    std::ofstream(path, std::ios::binary) << bytes_.substr(0, bytes);
  }

 private:
  std::string bytes_;
};

}  // namespace millrace::testing
