// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// The standard streams, as all commands use them. For one thread.

namespace millrace::cli {

/// Opens what is closed of the standard streams, so that no file of a command gets their numbers.
/// Writing to standard output stays an error. From here on a closed pipe is an error, no signal,
/// and hwloc stays silent. Before any thread is started.
void open_standard_streams();

/// Throws `Error` (`io`) if standard output was closed when the process began.
void check_can_print();
/// Writes to standard output what people read, as `printable_lines` shows it.
void print_text(std::string_view text);
/// Writes to standard output what another program reads.
void print_bytes(std::string_view bytes);
/// Throws `Error` (`io`) if something of all that was for standard output is not there.
void check_printed();

/// Writes a line on standard error, "millrace: " before it. Where that fails nobody can be told.
void print_note(std::string_view line);
/// Writes on standard error what people read, as `printable_lines` shows it.
void print_error_text(std::string_view text);

}  // namespace millrace::cli
