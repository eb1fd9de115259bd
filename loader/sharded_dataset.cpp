// SPDX-License-Identifier: Apache-2.0
#include "sharded_dataset.h"

#include <millrace/error.h>

#include <algorithm>
#include <utility>

#include "dataset_file.h"
#include "dataset_lock.h"
#include "shard_index.h"

namespace millrace {
namespace {

/// Where a record lies.
struct Place {
  std::size_t shard;
  std::uint64_t index;
};

struct Shards {
  std::vector<std::shared_ptr<const Dataset>> datasets;
  /// Number of each one's first record, and of all records.
  std::vector<std::uint64_t> begins{0};

  void add(std::shared_ptr<const Dataset> dataset) {
    begins.push_back(begins.back() + dataset->size());
    datasets.push_back(std::move(dataset));
  }
  std::uint64_t size() const { return begins.back(); }
  /// Of a record < `size()`.
  Place place(std::uint64_t index) const {
    const auto behind = std::ranges::upper_bound(begins, index);
    return {static_cast<std::size_t>(behind - begins.begin() - 1), index - *(behind - 1)};
  }
};

/// One thread's places to read into, one for each shard.
struct ShardReaders {
  std::shared_ptr<const Shards> shards;
  std::vector<ReadBuffer> buffers;
};

class ShardedDataset : public Dataset {
 public:
  ShardedDataset(std::string name, ShardIndex index, std::shared_ptr<const Shards> shards)
      : name_(std::move(name)), index_(std::move(index)), shards_(std::move(shards)) {}

  std::uint64_t size() const override { return shards_->size(); }
  std::string name() const override { return name_; }
  std::vector<std::string> classes() const override { return index_.classes; }
  Record read(std::uint64_t index, ReadBuffer& buffer) const override;
  void prefetch(std::span<const std::uint64_t> indices) const override;
  std::string key(std::uint64_t index) const override;
  DatasetFacts facts() const override;
  std::optional<StoredRecord> stored(std::uint64_t index) const override;

 private:
  std::string name_;
  ShardIndex index_;
  std::shared_ptr<const Shards> shards_;
};

Record ShardedDataset::read(std::uint64_t index, ReadBuffer& buffer) const {
  if (index >= size())
    throw Error(
        ErrorCode::invalid_argument,
        "record " + std::to_string(index) + " was asked for, but " + name_ + " has " + std::to_string(size()) + " records", "",
        index);
  if (!buffer.reader || buffer.reader_owner != shards_.get()) {
    buffer.reader = std::make_shared<ShardReaders>(ShardReaders{shards_, std::vector<ReadBuffer>(shards_->datasets.size())});
    buffer.reader_owner = shards_.get();
  }
  const Place place = shards_->place(index);
  try {
    ReadBuffer& of_shard = static_cast<ShardReaders*>(buffer.reader.get())->buffers[place.shard];
    return Record(index, shards_->datasets[place.shard]->read(place.index, of_shard).fields());
  } catch (const Error& error) {
    throw Error(error.code(), "record " + std::to_string(index) + " of " + name_ + ": " + error.what(), error.stage(), index);
  }
}

void ShardedDataset::prefetch(std::span<const std::uint64_t> indices) const {
  std::vector<std::vector<std::uint64_t>> of_shards(shards_->datasets.size());
  for (const std::uint64_t index : indices) {
    if (index >= size()) continue;
    const Place place = shards_->place(index);
    of_shards[place.shard].push_back(place.index);
  }
  for (std::size_t shard = 0; shard < of_shards.size(); ++shard)
    if (!of_shards[shard].empty()) shards_->datasets[shard]->prefetch(of_shards[shard]);
}

std::string ShardedDataset::key(std::uint64_t index) const {
  if (index >= size()) return Dataset::key(index);
  const Place place = shards_->place(index);
  std::string key = shards_->datasets[place.shard]->key(place.index);
  return key == Dataset::key(place.index) ? Dataset::key(index) : key;
}

DatasetFacts ShardedDataset::facts() const {
  DatasetFacts facts{.fingerprint = index_.fingerprint, .created_by = index_.created_by};
  for (const auto& shard : shards_->datasets) {
    DatasetFacts of_shard = shard->facts();
    facts.files.insert(facts.files.end(), of_shard.files.begin(), of_shard.files.end());
    if (facts.fields.empty()) facts.fields = std::move(of_shard.fields);
  }
  return facts;
}

std::optional<StoredRecord> ShardedDataset::stored(std::uint64_t index) const {
  if (index >= size()) return {};
  const Place place = shards_->place(index);
  return shards_->datasets[place.shard]->stored(place.index);
}

std::uint64_t committed_records(const std::filesystem::path& path, const ShardIndex& index) {
  if (index.begun.empty()) return index.records;
  try {
    return index.records + DatasetFile::open(shard_path(path, index.begun))->description().records;
  } catch (const Error&) {
    return index.records;
  }
}

}  // namespace

std::shared_ptr<const Dataset> open_sharded_dataset(const std::filesystem::path& path, OpenOptions options) {
  ShardIndex index = read_shard_index(path);
  if (!index.complete) throw_incomplete(path, committed_records(path, index));
  const auto shards = std::make_shared<Shards>();
  std::vector<std::string> fields;
  for (const ShardEntry& entry : index.shards) {
    const std::shared_ptr<const DatasetFile> shard = open_listed_shard(path, entry);
    const std::vector<std::string>& its_fields = shard->description().fields;
    if (fields.empty()) fields = its_fields;
    if (entry.records > 0 && its_fields != fields)
      throw Error(ErrorCode::corrupt, "the records of " + entry.file + ", a shard of " + path.string() +
                                          ", have other fields than those before; pack it again");
    shards->add(open_dataset(shard_path(path, entry.file), options));
  }
  return std::make_shared<ShardedDataset>(path.string(), std::move(index), shards);
}

}  // namespace millrace
