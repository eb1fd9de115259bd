// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device_stage.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/slots/slot_layout.h"

namespace millrace {

/// The stages of one field and their device memory. One stream uses them.
class DeviceStages {
 public:
  /// Allocates memory for the samples of a micro-batch of `host`. `field` is the converted field,
  /// if the batch has one.
  DeviceStages(Device& device, const SlotLayout& host, const std::optional<std::size_t>& field,
               HostWorkers* workers);

  std::size_t bytes() const;
  /// Enqueues all stages for samples [first, first + count) of the staging slot at `base`. Returns
  /// the place of the field's first sample afterwards. A field without stages stays in the slot.
  std::byte* run(Stream& stream, std::byte* base, std::size_t first, std::size_t count);

 private:
  const SlotLayout host_;
  HostWorkers* const workers_;
  std::size_t field_ = 0;
  std::vector<std::shared_ptr<const DeviceStage>> stages_;
  /// Results of odd and even stages.
  std::array<Memory, 2> results_;
  Memory scratch_;
  std::vector<const std::byte*> fields_;
};

}  // namespace millrace
