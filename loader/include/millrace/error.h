// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>

// Threads and lifetimes: errors and statuses are values that own their texts. They outlive the
// object that made them, and a copy may be passed to another thread.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace MILLRACE_API millrace {

/// Kind of an `Error`; the message gives the details.
enum class ErrorCode {
  invalid_argument,  ///< an option or argument is out of range or contradicts another
  not_found,         ///< a file, folder, field or record does not exist
  already_exists,    ///< a file would have been overwritten
  io,                ///< the operating system refused to read or write
  corrupt,           ///< a dataset file is damaged, truncated or not a dataset
  incomplete,        ///< the packing of a dataset was interrupted or still runs
  bad_record,        ///< one record cannot be read or made into a sample
  transform,         ///< a `Transform` threw
  device,            ///< a `Device`, `Stream` or `Event` call failed
  slots_exhausted,   ///< live batches hold every slot, so no further batch can come
  timeout,           ///< the time given to a call has passed
  stopped,           ///< the pipeline was stopped
  internal,          ///< a fault of millrace itself
};

/// The code's name as spelled above, for messages and logs.
const char* to_string(ErrorCode code);

/// An error that ends a run. The message names the file, the key and the value, and says what to do
/// next.
class Error : public std::runtime_error {
 public:
  /// `stage` is the pipeline stage that failed ("plan", "read", "decode", "upload" ...); empty
  /// outside a pipeline. `record` is the affected record, if there is one. `reason` is the message
  /// without the names of file and record, for callers that show these themselves. By default it is
  /// the whole message.
  Error(ErrorCode code, const std::string& message, std::string stage = {},
        std::optional<std::uint64_t> record = {}, const std::string& reason = {})
      : std::runtime_error(message),
        code_(code),
        stage_(std::move(stage)),
        record_(record),
        reason_(reason.empty() ? message : reason) {}

  /// Returns the same failure with more context: `where` is put before the message, stage and
  /// record are replaced by the given ones, code and reason are kept.
  Error with_context(const std::string& where, std::string stage = {},
                     std::optional<std::uint64_t> record = {}) const {
    return {code_, where + what(), std::move(stage), record, reason_};
  }

  ErrorCode code() const { return code_; }
  const std::string& stage() const { return stage_; }
  std::optional<std::uint64_t> record() const { return record_; }
  /// The cause alone, for a list that shows the file and the record in other columns.
  const std::string& reason() const { return reason_; }

 private:
  ErrorCode code_;
  std::string stage_;
  std::optional<std::uint64_t> record_;
  std::string reason_;
};

/// Result of an operation such as making one sample: success, or the reason of the failure. The
/// policy for bad records (`BadRecords`) decides whether a bad sample ends the run.
class [[nodiscard]] Status {
 public:
  static Status ok() { return Status(); }
  static Status bad(std::string reason) {
    Status status;
    status.reason_ = std::move(reason);
    if (status.reason_.empty()) status.reason_ = "unknown reason";
    return status;
  }

  bool is_ok() const { return reason_.empty(); }
  /// The reason of the failure; empty on success.
  const std::string& reason() const { return reason_; }

 private:
  Status() = default;
  std::string reason_;
};

}  // namespace millrace
