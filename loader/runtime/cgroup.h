// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace millrace {

/// How many processors' worth of time this process's control groups, of version 1 and 2, let it
/// have: the smallest quota of its own groups and those above them; nullopt if there is no quota.
/// `root` is the folder with proc/ and sys/. Source: Linux, Documentation/admin-guide/cgroup-v2.rst
/// (cpu.max) and Documentation/scheduler/sched-bwc.rst (cpu.cfs_quota_us).
std::optional<double> cgroup_quota(const std::filesystem::path& root = "/");

/// How many bytes of memory they let it have: the smallest limit (memory.max, and
/// memory.limit_in_bytes of version 1, where "none" is a number beyond any memory); nullopt if
/// there is none.
std::optional<std::uint64_t> cgroup_memory(const std::filesystem::path& root = "/");

}  // namespace millrace
