// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/topology.h>

#include <filesystem>
#include <vector>

namespace millrace {

/// GPUs and NICs, by what the kernel tells of the PCI bus. hwloc does this in a plugin that need
/// not be installed, which asks each device again: that takes some 10 ms more and may wake sleeping
/// devices. `root` is the folder with proc/ and sys/; `visible` is what CUDA_VISIBLE_DEVICES says
/// (numbers in the order of the addresses, or identities), null if it is not set.
std::vector<PciDevice> read_pci_devices(const std::filesystem::path& root, const char* visible);

}  // namespace millrace
