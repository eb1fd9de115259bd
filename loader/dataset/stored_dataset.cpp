// SPDX-License-Identifier: Apache-2.0
#include "dataset/stored_dataset.h"

#include "dataset/joined_dataset.h"

namespace millrace {

Record RecordReader::read(std::uint64_t index) {
  check_index(*dataset_, index);
  unreadable_ = Status::ok();
  Record record(index, {});
  Status made = Status::ok();
  try {
    made = make(index, record);
    if (made.is_ok()) return record;
  } catch (const Error& error) {
    unreadable_ = Status::bad(error.reason());
  }
  const Status kept = intact();
  const std::string& reason = (kept.is_ok() ? made : kept).reason();
  const std::string name =
      record_name(*dataset_, index, reason) + (kept.is_ok() ? bad_clause_ : "");
  throw Error(ErrorCode::bad_record, name + ": " + reason, "", index, reason);
}

}  // namespace millrace
