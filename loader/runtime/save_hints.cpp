// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/stored_hints.h>
#include <millrace/error.h>

#include "dataset/joined_dataset.h"
#include "runtime/runtime_services.h"

namespace millrace {
namespace {

/// Throws `Error` (`invalid_argument`) if records have stored checksums that reading does not
/// compare. The first record that can be read decides for each file.
void check_compares_checksums(const Dataset& dataset) {
  const auto parts = dataset.parts();
  for (const auto& part : parts) check_compares_checksums(*part);
  if (!parts.empty() || dataset.size() == 0) return;
  const auto reader = checked_reader(dataset);
  for (std::uint64_t index = 0; index < dataset.size(); ++index) try {
      if (reader->read(index).checksum()) return;
      const std::optional<StoredRecord> stored = dataset.stored_record(index);
      if (!stored || stored->checksum == 0) return;
      throw Error(ErrorCode::invalid_argument,
                  dataset.name() +
                      ": its hints cannot be saved, because its checksums are not compared and "
                      "hints are bound to them; open it with OpenOptions::verify_checksums");
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_record) throw;
    }
}

}  // namespace

std::uint64_t save_hints(const std::shared_ptr<const Dataset>& dataset, Runtime& runtime) {
  RuntimeServices& services = RuntimeServices::of(runtime);
  services.require_owner();
  check_compares_checksums(*dataset);
  const std::shared_ptr<RecordHints> hints = services.hints_of(dataset, 1);
  HintsWriter writer(dataset);
  std::vector<std::byte> hint;
  for (std::uint64_t record = 0; record < dataset->size(); ++record) {
    hints->read(record, hint);
    if (hint.empty()) dataset->stored_hint(record, hint);
    if (!hint.empty())
      writer.append(hint);
    else
      writer.append_stored();  // `dataset` may be open without them (`OpenOptions::hints`)
  }
  writer.finish();
  return writer.hints();
}

}  // namespace millrace
