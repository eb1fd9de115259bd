// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/export.h>

// Threads: both functions may be called from any thread.
// Lifetimes: nothing is kept of what they are given.

#include <filesystem>

namespace MILLRACE_API millrace {

/// The file beside an LMDB of another program that a table of its pages is stored in, where there
/// is one: data.mdb.pages of data.mdb. Of a link it lies beside what that leads to.
std::filesystem::path page_table_path(const std::filesystem::path& file);

/// Stores where the leaf pages of a dataset in another program's LMDB lie, beside its file, where
/// `open_dataset` finds it from then on: it need not read them then. The table is of the state of
/// the file that the dataset was opened with; of another one it is not used, with a warning. False
/// for a dataset of another kind, of which nothing is stored. Throws `Error`: `already_exists` if
/// another file has that name and while somebody else writes it, `io`. May be called from any
/// thread.
bool save_page_table(const Dataset& dataset);

}  // namespace millrace
