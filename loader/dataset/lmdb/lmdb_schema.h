// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/error.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

class EntryCursor;
class Entries;

/// Parses an entry into a record's fields, for one thread, with memory of its own.
class EntryParser {
 public:
  virtual ~EntryParser() = default;

  /// Appends the fields. They are views of key and value, or of the parser's memory until its next
  /// call.
  [[nodiscard]] virtual Status parse(std::string_view key, std::span<const std::byte> value,
                                     std::vector<RecordField>& fields) = 0;
  /// Describes the entry that was parsed last, in the plural and for messages: "JPEG images". Empty
  /// if the value parses but is of another kind than this schema expects.
  virtual std::string kind() const = 0;
  /// Bytes of memory that it keeps from one entry to the next; 0 by default.
  virtual std::size_t held_bytes() const { return 0; }
};

/// A structure in which other programs store records in an LMDB.
class LmdbSchema {
 public:
  virtual ~LmdbSchema() = default;

  /// Reads the keys, for schemas in which a record depends on the keys of other records. Called
  /// once, before the first parser of an opened dataset is made. Throws the same errors as
  /// `EntryCursor`.
  virtual void look_at_keys(const Entries&) {}
  virtual std::vector<std::string> classes() const { return {}; }
  virtual std::unique_ptr<EntryParser> make_parser() const = 0;
};

// The schemas. Each is implemented in a file of its own.
std::unique_ptr<LmdbSchema> caffe_datum();
std::unique_ptr<LmdbSchema> caffe2_tensors();
std::unique_ptr<LmdbSchema> plain_images();
std::unique_ptr<LmdbSchema> tuples();

}  // namespace millrace
