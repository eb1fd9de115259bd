// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <memory>
#include <string>
#include <vector>

namespace millrace {

/// What a joined dataset says of itself.
struct JoinedDescription {
  std::string name{};
  std::vector<std::string> classes{};
  /// Without the files, which are those of the parts.
  DatasetFacts facts{};
};

/// The records of several datasets as one, numbered on. A `ReadBuffer` keeps a place to read for
/// each of them.
std::shared_ptr<const Dataset> join_datasets(std::vector<std::shared_ptr<const Dataset>> parts,
                                             JoinedDescription description);

}  // namespace millrace
