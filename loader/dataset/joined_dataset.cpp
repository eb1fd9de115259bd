// SPDX-License-Identifier: Apache-2.0
#include "dataset/joined_dataset.h"

#include <millrace/error.h>

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

/// Where a record lies.
struct Place {
  std::size_t part;
  std::uint64_t index;
};

struct Parts {
  std::vector<std::shared_ptr<const Dataset>> datasets;
  /// Number of each one's first record, and of all records.
  std::vector<std::uint64_t> begins{0};

  explicit Parts(std::vector<std::shared_ptr<const Dataset>> all) : datasets(std::move(all)) {
    for (const auto& dataset : datasets) begins.push_back(begins.back() + dataset->size());
  }
  std::uint64_t size() const { return begins.back(); }
  /// Of a record < `size()`.
  Place place(std::uint64_t index) const {
    const auto behind = std::ranges::upper_bound(begins, index);
    return {static_cast<std::size_t>(behind - begins.begin() - 1), index - *(behind - 1)};
  }
};

/// One thread's places to read into, one for each part.
struct PartReaders {
  std::shared_ptr<const Parts> parts;
  std::vector<ReadBuffer> buffers;
};

class JoinedDataset : public Dataset {
 public:
  JoinedDataset(JoinedDescription description, std::shared_ptr<const Parts> parts)
      : description_(std::move(description)), parts_(std::move(parts)) {}

  std::uint64_t size() const override { return parts_->size(); }
  std::string name() const override { return description_.name; }
  std::vector<std::string> classes() const override { return description_.classes; }
  Record read(std::uint64_t index, ReadBuffer& buffer) const override;
  void prefetch(std::span<const std::uint64_t> indices) const override;
  std::string key(std::uint64_t index) const override;
  DatasetFacts facts() const override { return description_.facts; }
  std::optional<StoredRecord> stored(std::uint64_t index) const override;

 private:
  JoinedDescription description_;
  std::shared_ptr<const Parts> parts_;
};

Record JoinedDataset::read(std::uint64_t index, ReadBuffer& buffer) const {
  if (index >= size())
    throw Error(ErrorCode::invalid_argument,
                "record " + std::to_string(index) + " was asked for, but " + name() + " has " +
                    std::to_string(size()) + " records",
                "", index);
  if (!buffer.reader || buffer.reader_owner != parts_.get()) {
    buffer.reader = std::make_shared<PartReaders>(
        PartReaders{parts_, std::vector<ReadBuffer>(parts_->datasets.size())});
    buffer.reader_owner = parts_.get();
  }
  const Place place = parts_->place(index);
  try {
    ReadBuffer& of_part = static_cast<PartReaders*>(buffer.reader.get())->buffers[place.part];
    return Record(index, parts_->datasets[place.part]->read(place.index, of_part).fields());
  } catch (const Error& error) {
    throw Error(error.code(),
                "record " + std::to_string(index) + " of " + name() + ": " + error.what(),
                error.stage(), index);
  }
}

void JoinedDataset::prefetch(std::span<const std::uint64_t> indices) const {
  std::vector<std::vector<std::uint64_t>> of_parts(parts_->datasets.size());
  for (const std::uint64_t index : indices) {
    if (index >= size()) continue;
    const Place place = parts_->place(index);
    of_parts[place.part].push_back(place.index);
  }
  for (std::size_t part = 0; part < of_parts.size(); ++part)
    if (!of_parts[part].empty()) parts_->datasets[part]->prefetch(of_parts[part]);
}

std::string JoinedDataset::key(std::uint64_t index) const {
  if (index >= size()) return Dataset::key(index);
  const Place place = parts_->place(index);
  std::string key = parts_->datasets[place.part]->key(place.index);
  return key == Dataset::key(place.index) ? Dataset::key(index) : key;
}

std::optional<StoredRecord> JoinedDataset::stored(std::uint64_t index) const {
  if (index >= size()) return {};
  const Place place = parts_->place(index);
  return parts_->datasets[place.part]->stored(place.index);
}

}  // namespace

std::shared_ptr<const Dataset> join_datasets(std::vector<std::shared_ptr<const Dataset>> parts,
                                             JoinedDescription description) {
  for (const auto& part : parts) {
    std::vector<std::string> files = part->facts().files;
    description.facts.files.insert(description.facts.files.end(), files.begin(), files.end());
  }
  return std::make_shared<JoinedDataset>(std::move(description),
                                         std::make_shared<const Parts>(std::move(parts)));
}

}  // namespace millrace
