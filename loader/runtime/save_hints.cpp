// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/stored_hints.h>

#include "runtime/runtime_services.h"

namespace millrace {

std::uint64_t save_hints(const std::shared_ptr<const Dataset>& dataset, Runtime& runtime) {
  RuntimeServices& services = RuntimeServices::of(runtime);
  services.require_owner();
  const std::shared_ptr<RecordHints> hints = services.hints_of(dataset, 1);
  HintsWriter writer(dataset);
  std::vector<std::byte> hint;
  for (std::uint64_t record = 0; record < dataset->size(); ++record) {
    hints->read(record, hint);
    if (hint.empty()) dataset->stored_hint(record, hint);
    writer.append(hint);
  }
  writer.finish();
  return writer.hints();
}

}  // namespace millrace
