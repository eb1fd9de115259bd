// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Name, classes and facts of a joined dataset.
struct JoinedDescription {
  std::string name{};
  std::vector<std::string> classes{};
  /// Files and warnings stay empty here: they are taken from the parts.
  DatasetFacts facts{};
};

/// Returns several datasets as one. Record numbers continue from part to part. A reader of the
/// joined dataset opens a part's reader at its first read from that part. While the parts' readers
/// hold more than 16 MiB together (`DatasetReader::held_bytes`), it closes the least recently used
/// of them.
std::shared_ptr<const Dataset> join_datasets(std::vector<std::shared_ptr<const Dataset>> parts,
                                             JoinedDescription description);

/// Returns a stored name without control characters, for `Dataset::key`. In a damaged dataset a
/// name may contain a zero byte, which would end a message.
std::string one_line(std::string_view text);

/// Returns the name of a record for messages: "record 3 (a.jpg) of a.lmdb", or "record 3 of a.lmdb"
/// if it has no key. `reason` is the text that will follow. If it contains the dataset's name, the
/// returned text leaves the name out.
std::string record_name(const Dataset& dataset, std::uint64_t index, std::string_view reason = {});

/// Returns `Dataset::key`, or "record N" if that throws. In that case `failure` receives the
/// exception's text.
std::string key_or_number(const Dataset& dataset, std::uint64_t index,
                          std::string* failure = nullptr);

/// Calls `Dataset::make_reader`. Throws `Error` (`io`, with the dataset's name) if that returns
/// null.
std::unique_ptr<DatasetReader> checked_reader(const Dataset& dataset);

/// Throws `Error` (`invalid_argument`) unless `dataset` has a record `index`.
void check_index(const Dataset& dataset, std::uint64_t index);

}  // namespace millrace
