// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace millrace::testing {

/// Writes a file with these bytes.
inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

template <typename Value>
std::string bytes_of(const std::vector<Value>& values) {
  std::string bytes(values.size() * sizeof(Value), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Returns the header of a .npy file of version 1.0 with this dictionary.
inline std::string npy_header(const std::string& dictionary, char major = 1) {
  std::string text = dictionary;
  const std::size_t before = major == 1 ? 10 : 12;
  while ((before + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string header = std::string("\x93NUMPY") + major + '\0';
  for (std::size_t place = 0; place < before - 8; ++place)
    header += static_cast<char>(text.size() >> (8 * place));
  return header + text;
}

/// A .npy file as numpy writes it: `shape` is "(5,)", `descr` "<i4".
inline std::string npy(const std::string& descr, const std::string& shape,
                       const std::string& bytes) {
  return npy_header("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape +
                    ", }") +
         bytes;
}

inline void write_npy(const std::filesystem::path& path, const std::string& descr,
                      const std::string& shape, const std::string& bytes) {
  write_bytes(path, npy(descr, shape, bytes));
}

/// Returns a one-dimensional .npy file.
template <typename Value>
void write_npy(const std::filesystem::path& path, const std::string& descr,
               const std::vector<Value>& values) {
  write_npy(path, descr, "(" + std::to_string(values.size()) + ",)", bytes_of(values));
}

}  // namespace millrace::testing
