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

/// Makes a record's fields of an entry, for one thread, with memory of its own.
class EntryParser {
 public:
  virtual ~EntryParser() = default;

  /// Appends the fields. They lie in key and value, or in memory of the parser until its next call.
  [[nodiscard]] virtual Status parse(std::string_view key, std::span<const std::byte> value,
                                     std::vector<RecordField>& fields) = 0;
  /// What an entry that was parsed just now holds, for people and in the plural: "JPEG images".
  /// Empty if it is not what the flavour is for, though it can be read so.
  virtual std::string kind() const = 0;
};

/// A way in which others put records into an LMDB.
class Flavour {
 public:
  virtual ~Flavour() = default;

  /// Looks at keys, if records follow from others' as well. Once, before the first parser of an
  /// opened dataset. Throws as `EntryCursor`.
  virtual void look_at_keys(const Entries&) {}
  virtual std::vector<std::string> classes() const { return {}; }
  virtual std::unique_ptr<EntryParser> make_parser() const = 0;
};

// Each in a file of its own.
std::unique_ptr<Flavour> caffe_datum();
std::unique_ptr<Flavour> caffe2_tensors();
std::unique_ptr<Flavour> plain_images();
std::unique_ptr<Flavour> tuples();

}  // namespace millrace
