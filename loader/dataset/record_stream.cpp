// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/record_stream.h>

namespace millrace {

void RecordStream::skip(std::uint64_t count) {
  for (std::uint64_t skipped = 0; skipped < count; ++skipped) {
    if (run_ended())
      throw Error(ErrorCode::stopped, name() + ": the run ended with " +
                                          std::to_string(count - skipped) +
                                          " records still to skip");
    StreamRecord record;
    try {
      if (next(record)) continue;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::bad_record) continue;
      throw;
    }
    throw Error(ErrorCode::invalid_argument,
                name() + ": the stream ends with " + std::to_string(count - skipped) +
                    " records still to skip; resume with the stream that the state was saved from");
  }
}

}  // namespace millrace
