// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/detail/export.h>

// Threads: both functions may be called from any thread.
// Lifetimes: nothing is kept of what they are given.

#include <cstddef>
#include <filesystem>

namespace MILLRACE_API millrace {

/// The file beside a tar that has where its samples lie, where there is one: a.tar.members of
/// a.tar. Of a link it lies beside what that leads to.
std::filesystem::path tar_members_path(const std::filesystem::path& tar);

/// Stores where the samples of a dataset's tars lie, beside each tar, where `open_dataset` finds it
/// from then on: it need not read all headers then. It is bound to the tar's length, its time of
/// change, and its first and its last sample's header; of another one it is not used, with a
/// warning. What was there of an earlier time is replaced in one step. Returns how many were
/// written, 0 for a dataset that is not of tars. Throws `Error`: `already_exists` if another file
/// has that name, `io`. May be called from any thread.
std::size_t save_tar_members(const Dataset& dataset);

}  // namespace millrace
