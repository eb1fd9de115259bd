// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::cli {

/// The commit that millrace was built from, as `git describe` prints it; "unknown" without Git.
/// Alone in its source, since that is compiled again after each commit.
const char* commit();

}  // namespace millrace::cli
