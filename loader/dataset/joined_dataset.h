// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// What a joined dataset says of itself.
struct JoinedDescription {
  std::string name{};
  std::vector<std::string> classes{};
  /// Without the files and warnings, which are those of the parts.
  DatasetFacts facts{};
};

/// The records of several datasets as one, whose numbers run on from part to part. Its readers have
/// a reader of each part that they have read from.
std::shared_ptr<const Dataset> join_datasets(std::vector<std::shared_ptr<const Dataset>> parts,
                                             JoinedDescription description);

/// A stored name without control characters, for `Dataset::key`: a zero byte of a damaged one would
/// end a message.
std::string one_line(std::string_view text);

/// "record 3 (a.jpg) of a.lmdb", for messages; "record 3 of a.lmdb" where it has no key of its own.
/// Without the dataset's name if `reason`, which is to follow, has that.
std::string record_name(const Dataset& dataset, std::uint64_t index, std::string_view reason = {});

/// `Dataset::key`, or "record N" if that throws; then `failure` is the exception's text.
std::string key_or_number(const Dataset& dataset, std::uint64_t index,
                          std::string* failure = nullptr);

/// `Dataset::make_reader`. Throws `Error` (`io`, with the dataset's name) if that returns null.
std::unique_ptr<DatasetReader> checked_reader(const Dataset& dataset);

/// Throws `Error` (`invalid_argument`) unless `dataset` has a record `index`.
void check_index(const Dataset& dataset, std::uint64_t index);

}  // namespace millrace
