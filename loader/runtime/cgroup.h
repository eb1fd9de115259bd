// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace millrace {

/// Returns the processor quota of this process's control groups (version 1 and 2), as a number of
/// processors. This is the smallest quota of the groups and their ancestors; nullopt without a
/// quota. `root` is the folder with proc/ and sys/. Source: Linux,
/// Documentation/admin-guide/cgroup-v2.rst (cpu.max) and Documentation/scheduler/sched-bwc.rst
/// (cpu.cfs_quota_us).
std::optional<double> cgroup_quota(const std::filesystem::path& root = "/");

/// Returns how many bytes of memory the control groups allow. This is the smallest limit
/// (memory.max, in version 1 memory.limit_in_bytes); nullopt without a limit. Version 1 writes "no
/// limit" as a number larger than any memory.
std::optional<std::uint64_t> cgroup_memory(const std::filesystem::path& root = "/");

}  // namespace millrace
