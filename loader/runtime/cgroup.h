// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace millrace {

/// How many processors' worth of time this process's control groups, of version 1 and 2, let it
/// have: the smallest quota of its own groups and those above them; nullopt if there is no quota.
/// `root` is the folder with proc/ and sys/. Source: Linux, Documentation/admin-guide/cgroup-v2.rst
/// (cpu.max) and Documentation/scheduler/sched-bwc.rst (cpu.cfs_quota_us).
std::optional<double> cgroup_quota(const std::filesystem::path& root = "/");

}  // namespace millrace
