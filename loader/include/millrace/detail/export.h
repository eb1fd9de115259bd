// SPDX-License-Identifier: Apache-2.0
// Visibility of symbols. The libraries hide their symbols by default. Public headers open the
// namespace with `namespace MILLRACE_API millrace {`, which exports their declarations. Exported
// type information of exceptions and interfaces is the same object in all shared libraries of a
// program.
#pragma once

/// Exports everything that is declared in the namespace.
#define MILLRACE_API [[gnu::visibility("default")]]
