// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>

#include "targets/rows.h"

namespace millrace {
namespace {

class ValuesWorker final : public TargetWorker {
 public:
  explicit ValuesWorker(const ValuesTarget& target)
      : target_(target), row_bytes_(target.shape.elements() * size_of(target.dtype)) {}

  Status read(std::span<const std::byte> bytes) override {
    bytes_ = bytes;
    if (varies()) return check_rows(bytes, row_bytes_, target_.max_length, belongs_to_boxes());
    if (bytes.size() == row_bytes_) return Status::ok();
    return Status::bad("has " + std::to_string(bytes.size()) + " bytes; " +
                       to_string(target_.dtype) + ' ' + target_.shape.to_string() + " has " +
                       std::to_string(row_bytes_));
  }

  Status write(Sample& sample, std::size_t field, const Kept& kept) override {
    if (varies()) return write_rows(bytes_, row_bytes_, belongs_to_boxes(), kept, sample, field);
    std::memcpy(sample[field].data, bytes_.data(), row_bytes_);
    return Status::ok();
  }

 private:
  bool belongs_to_boxes() const { return !target_.of.empty(); }
  bool varies() const { return belongs_to_boxes() || target_.max_length > 0; }

  ValuesTarget target_;
  std::size_t row_bytes_;
  /// The record's field.
  std::span<const std::byte> bytes_;
};

}  // namespace

std::unique_ptr<TargetWorker> make_values_worker(const ValuesTarget& target) {
  return std::make_unique<ValuesWorker>(target);
}

}  // namespace millrace
