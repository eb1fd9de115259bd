// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/topology.h>

#include <filesystem>
#include <vector>

namespace millrace {

/// GPUs and NICs, by what the kernel tells of the PCI bus. It has read their configuration when it
/// started; hwloc (like lspci) would ask each device again, which takes longer and may wake
/// sleeping ones. `root` is the folder with proc/ and sys/; `visible` is what CUDA_VISIBLE_DEVICES
/// says (numbers in the order of the addresses, or identities), null where it is not set.
std::vector<PciDevice> read_pci_devices(const std::filesystem::path& root, const char* visible);

}  // namespace millrace
