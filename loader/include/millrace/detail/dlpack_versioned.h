// SPDX-License-Identifier: Apache-2.0
// DLPack's versioned struct, for users whose dlpack.h is older than 1.0. The layout is that of
// DLPack's specification.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>

#ifndef DLPACK_MAJOR_VERSION

// NOLINTBEGIN(modernize-use-using): the declarations are C's
extern "C" {
typedef struct {
  std::uint32_t major;
  std::uint32_t minor;
} DLPackVersion;

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
}
// NOLINTEND(modernize-use-using)

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)

#endif
