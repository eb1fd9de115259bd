// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/detail/export.h>
#include <millrace/record_stream.h>

// Threads: like any `RecordStream`.

#include <cstddef>
#include <filesystem>
#include <memory>

namespace MILLRACE_API millrace {

/// Limits of a stream of tars.
struct TarStreamOptions {
  /// Maximal size of a sample in bytes, the sum of its files. A larger sample is a bad record and
  /// is not held in memory.
  std::size_t max_record_bytes = std::size_t{256} << 20;
};

/// Reads WebDataset tars from front to back, for `one_pass_dataset`. `path` may be a pipe, such as
/// "/dev/stdin", a FIFO, or "/dev/fd/63" of a shell's `<(curl ...)`. It may also be a file, or a
/// pattern or list of tars as for `open_dataset`. Tars are read one after the other. Only a stream
/// of regular files can restart. Nothing is read before the run begins.
///
/// Samples, fields and bad records are those of `open_dataset` (loader/README.md), with one
/// exception: the first good sample alone decides whether records have images and labels.
///
/// Throws `Error`: `not_found` for a missing file; `invalid_argument`, `corrupt` and `io` as
/// `open_dataset` does for a pattern or a list. During the run, a damaged, compressed or truncated
/// tar (`corrupt`) and an I/O error (`io`) end the run.
std::shared_ptr<RecordStream> tar_stream(const std::filesystem::path& path,
                                         const TarStreamOptions& options = {});

}  // namespace millrace
