// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/export.h>

// Threads: both functions may be called from any thread.
// Lifetimes: the functions keep no references to their arguments.

#include <filesystem>

namespace MILLRACE_API millrace {

/// Path of the stored page table of another program's LMDB file: data.mdb.pages beside data.mdb.
/// For a symbolic link: beside its target.
std::filesystem::path page_table_path(const std::filesystem::path& file);

/// Stores the locations of the leaf pages of another program's LMDB dataset beside its file. Later
/// calls of `open_dataset` read this table instead of walking all pages. The table is valid for the
/// state of the file that the dataset was opened with. For any other state it is ignored with a
/// warning. For a dataset of another kind, stores nothing and returns false. Throws `Error`:
/// `already_exists` if another file has that name or while another process writes it, `io`. May be
/// called from any thread.
bool save_page_table(const Dataset& dataset);

}  // namespace millrace
