// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/topology.h>

#include <filesystem>
#include <vector>

namespace millrace {

/// Returns the GPUs and NICs that the kernel lists on the PCI bus. `root` is the folder with proc/
/// and sys/. `visible` is the value of CUDA_VISIBLE_DEVICES, null if it is not set. It lists GPU
/// numbers, in the order of the bus addresses, or GPU identities.
///
/// hwloc's reader is not used: it is a plugin that may not be installed. It also queries each
/// device, which takes some 10 ms more and may wake sleeping devices.
std::vector<PciDevice> read_pci_devices(const std::filesystem::path& root, const char* visible);

}  // namespace millrace
