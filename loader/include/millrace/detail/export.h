// SPDX-License-Identifier: Apache-2.0
// Symbols of millrace's libraries are hidden, but for what their headers declare: these open the
// namespace with `namespace MILLRACE_API millrace {`. That also makes the type information of
// exceptions and interfaces one and the same in all shared libraries of a program.
#pragma once

/// What is declared in a namespace opened with it can be seen outside of its library.
#define MILLRACE_API [[gnu::visibility("default")]]
