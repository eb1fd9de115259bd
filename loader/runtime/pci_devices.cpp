// SPDX-License-Identifier: Apache-2.0
#include "runtime/pci_devices.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace millrace {
namespace {

namespace fs = std::filesystem;

// Upper byte of a device's class, and a vendor's number. Source: the PCI ID repository,
// pci-ids.ucw.cz.
constexpr unsigned network = 0x02;
constexpr unsigned display = 0x03;
constexpr const char* nvidia = "0x10de";

/// Returns the first line of a file; empty if the file cannot be read.
std::string line_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// Returns the sorted names of a folder's entries; empty if the folder does not exist.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// Returns the value of a key in the driver's file: "NVIDIA H200" for the line "Model: \t\t NVIDIA
/// H200". Empty if the key is missing.
std::string value_in(const fs::path& information, const std::string& key) {
  std::ifstream file(information);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key + ":")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", key.size() + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

/// Returns the device's network interfaces and its InfiniBand device: "eth0, mlx5_0".
std::string network_names(const fs::path& device) {
  std::vector<fs::path> owners = {device};
  for (const std::string& child : names_in(device))
    if (child.starts_with("virtio")) owners.push_back(device / child);
  std::string names;
  for (const fs::path& owner : owners)
    for (const char* of : {"net", "infiniband"})
      for (const std::string& name : names_in(owner / of))
        names += (names.empty() ? "" : ", ") + name;
  return names;
}

/// Turns "0x10de" into "10de".
std::string without_prefix(const std::string& number) {
  return number.starts_with("0x") ? number.substr(2) : number;
}

/// Whether `entry` names the GPU: by its number among all GPUs, or by a prefix of its identity
/// ("GPU-8932f937-...").
bool names(const std::string& entry, std::size_t number, const std::string& identity) {
  return entry == std::to_string(number) ||
         (entry.starts_with("GPU-") && identity.starts_with(entry));
}

/// Clears `can_launch_kernels` for the GPUs that `visible` leaves out. Keeps all GPUs if `visible`
/// names parts of GPUs ("MIG-..."), which cannot be told apart here.
void hide(std::vector<PciDevice>& devices, const std::string& visible, const fs::path& driven) {
  if (visible.find("MIG-") != std::string::npos) return;
  std::size_t number = 0;
  for (PciDevice& device : devices) {
    if (!device.can_launch_kernels) continue;
    const std::string identity = value_in(driven / device.address / "information", "GPU UUID");
    std::istringstream entries(visible);
    device.can_launch_kernels = false;
    for (std::string entry; std::getline(entries, entry, ',') &&
                            !entry.starts_with('-');)  // entries after an invalid one do not count
      if (names(entry, number, identity)) device.can_launch_kernels = true;
    ++number;
  }
}

}  // namespace

std::vector<PciDevice> read_pci_devices(const fs::path& root, const char* visible) {
  const fs::path bus = root / "sys/bus/pci/devices";
  // In a container, this folder lists only the container's GPUs, while the bus lists all GPUs of
  // the machine.
  const fs::path driven = root / "proc/driver/nvidia/gpus";
  std::error_code error;
  const bool driver_tells = fs::is_directory(driven, error);

  std::vector<PciDevice> devices;
  for (const std::string& address : names_in(bus)) {
    const fs::path folder = bus / address;
    const unsigned long kind = std::strtoul(line_of(folder / "class").c_str(), nullptr, 16) >> 16U;
    if (kind != network && kind != display) continue;
    PciDevice device{.kind = kind == display ? PciDevice::Kind::gpu : PciDevice::Kind::nic,
                     .address = address};
    const std::string vendor = line_of(folder / "vendor");
    if (device.kind == PciDevice::Kind::gpu) {
      device.can_launch_kernels =
          vendor == nvidia && (!driver_tells || fs::is_directory(driven / address, error));
      device.name = value_in(driven / address / "information", "Model");
    } else {
      device.name = network_names(folder);
    }
    if (device.name.empty())
      device.name = without_prefix(vendor) + ":" + without_prefix(line_of(folder / "device"));
    const std::string node = line_of(folder / "numa_node");
    if (!node.empty() && node != "-1")
      device.node = static_cast<int>(std::strtol(node.c_str(), nullptr, 10));
    devices.push_back(std::move(device));
  }
  if (visible != nullptr) hide(devices, visible, driven);
  return devices;
}

}  // namespace millrace
