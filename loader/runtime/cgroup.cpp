// SPDX-License-Identifier: Apache-2.0
#include "runtime/cgroup.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Reads "QUOTA PERIOD" or "max PERIOD".
std::optional<double> quota_v2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  const double time = std::strtod(quota.c_str(), nullptr);
  return time > 0 ? std::optional(time / period) : std::nullopt;
}

/// Reads quota and period from their files. The quota is -1 if the processor time is not limited.
std::optional<double> quota_v1(const fs::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us");
  std::ifstream period_file(group / "cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0)
    return std::nullopt;
  return quota / period;
}

/// Reads a file that holds one number, or "max".
std::optional<double> limit_in(const fs::path& path) {
  std::ifstream file(path);
  double limit = 0;
  return file >> limit && limit > 0 ? std::optional(limit) : std::nullopt;
}

std::optional<double> memory_v2(const fs::path& group) { return limit_in(group / "memory.max"); }

std::optional<double> memory_v1(const fs::path& group) {
  return limit_in(group / "memory.limit_in_bytes");
}

/// A controller, and how to read its limit in a group of version 2 or 1.
struct Controller {
  const char* name;
  std::optional<double> (*limit_v2)(const fs::path& group);
  std::optional<double> (*limit_v1)(const fs::path& group);
};

/// Returns the smallest limit of `group` and its ancestors up to the mount point. In a container,
/// the container's group is often mounted at the mount point, while `group` is still the host's
/// path. Then only the mount point exists.
std::optional<double> smallest_limit(const fs::path& mount, fs::path group,
                                     std::optional<double> (*limit_of)(const fs::path&)) {
  std::optional<double> least;
  for (group = group.lexically_normal();; group = group.parent_path()) {
    const std::optional<double> limit = limit_of(mount / group.relative_path());
    if (limit && (!least || *limit < *least)) least = limit;
    if (!group.has_relative_path()) return least;
  }
}

/// Returns the smallest limit of this process's groups and their ancestors.
std::optional<double> smallest_limit(const fs::path& root, const Controller& controller) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::vector<std::optional<double>> limits = {controller.limit_v2(mounts)};
  std::ifstream groups(root / "proc/self/cgroup");
  // Each line is "HIERARCHY:CONTROLLER,CONTROLLER:/GROUP". The line of version 2 has no
  // controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    const std::string name = controller.name;
    if (controllers.empty()) {
      limits.push_back(smallest_limit(mounts, group, controller.limit_v2));
      limits.push_back(smallest_limit(mounts / "unified", group, controller.limit_v2));
    } else if (("," + controllers + ",").find("," + name + ",") != std::string::npos) {
      limits.push_back(smallest_limit(mounts / controllers, group, controller.limit_v1));
      if (controllers != name)
        limits.push_back(smallest_limit(mounts / name, group, controller.limit_v1));
    }
  }
  std::optional<double> least;
  for (const std::optional<double>& limit : limits)
    if (limit && (!least || *limit < *least)) least = limit;
  return least;
}

}  // namespace

std::optional<double> cgroup_quota(const fs::path& root) {
  return smallest_limit(root, {"cpu", quota_v2, quota_v1});
}

std::optional<std::uint64_t> cgroup_memory(const fs::path& root) {
  const std::optional<double> limit = smallest_limit(root, {"memory", memory_v2, memory_v1});
  if (!limit || *limit >= 9e18) return std::nullopt;
  return static_cast<std::uint64_t>(*limit);
}

}  // namespace millrace
