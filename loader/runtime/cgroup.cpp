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

/// "QUOTA PERIOD" or "max PERIOD".
std::optional<double> quota_v2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  const double time = std::strtod(quota.c_str(), nullptr);
  return time > 0 ? std::optional(time / period) : std::nullopt;
}

/// Two files have a number each; the quota is -1 if there is none.
std::optional<double> quota_v1(const fs::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us");
  std::ifstream period_file(group / "cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0)
    return std::nullopt;
  return quota / period;
}

/// The smallest quota from `group` up to where the hierarchy is mounted. A container's own group is
/// often mounted there while its name is still the host's, so that only the last of these folders
/// exists.
std::optional<double> least_quota(const fs::path& mount, fs::path group,
                                  std::optional<double> (*quota_of)(const fs::path&)) {
  std::optional<double> least;
  for (group = group.lexically_normal();; group = group.parent_path()) {
    const std::optional<double> quota = quota_of(mount / group.relative_path());
    if (quota && (!least || *quota < *least)) least = quota;
    if (!group.has_relative_path()) return least;
  }
}

/// Whether "cpu" is among comma-separated controllers.
bool controls_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

std::optional<double> cgroup_quota(const fs::path& root) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::vector<std::optional<double>> quotas = {quota_v2(mounts)};
  std::ifstream groups(root / "proc/self/cgroup");
  // Lines are "HIERARCHY:CONTROLLER,CONTROLLER:/GROUP"; version 2's has no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      quotas.push_back(least_quota(mounts, group, quota_v2));
      quotas.push_back(least_quota(mounts / "unified", group, quota_v2));
    } else if (controls_cpu(controllers)) {
      quotas.push_back(least_quota(mounts / controllers, group, quota_v1));
      if (controllers != "cpu") quotas.push_back(least_quota(mounts / "cpu", group, quota_v1));
    }
  }
  std::optional<double> least;
  for (const std::optional<double>& quota : quotas)
    if (quota && (!least || *quota < *least)) least = quota;
  return least;
}

}  // namespace millrace
