// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// The standard streams of all commands. Not thread-safe.

namespace millrace::cli {

/// Opens closed standard streams on /dev/null, so that no other file gets their descriptors.
/// Writing to such a standard output still fails. It also turns SIGPIPE into an error of write, and
/// silences hwloc. Call it before any thread is started.
void open_standard_streams();

/// Throws `Error` (`io`) if standard output was closed when the process began.
void check_can_print();
/// Writes text for people to standard output, escaped by `printable_lines`.
void print_text(std::string_view text);
/// Writes bytes for other programs to standard output.
void print_bytes(std::string_view bytes);
/// Throws `Error` (`io`) if any write to standard output failed.
void check_printed();

/// Writes a line to standard error, prefixed with "millrace: ". Ignores failures.
void print_note(std::string_view line);
/// Writes text for people to standard error, escaped by `printable_lines`.
void print_error_text(std::string_view text);

}  // namespace millrace::cli
