// SPDX-License-Identifier: Apache-2.0
#include "measure/diagnose/diagnose_sources.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace millrace::cli {
namespace {

class ReadySamples final : public Transform {
 public:
  explicit ReadySamples(std::shared_ptr<const Transform> like) : like_(std::move(like)) {}

  const SampleSpec& spec() const override { return like_->spec(); }
  std::vector<std::string> stages() const override { return {"nothing"}; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<Worker>(like_->spec());
  }

 private:
  class Worker final : public TransformWorker {
   public:
    explicit Worker(const SampleSpec& spec) : fields_(spec.fields().size()) {}

    Status make(const Record&, Random&, Sample& sample) override {
      constexpr std::size_t page = 4096;
      for (std::size_t field = 0; field < fields_; ++field) {
        const Tensor& tensor = sample[field];
        auto* bytes = static_cast<volatile std::byte*>(tensor.data);
        // Small fields are zeroed completely, since they may be parameters of the device's work. Of
        // larger fields, one byte per page is written.
        const std::size_t step = tensor.bytes() <= page ? 1 : page;
        for (std::size_t at = 0; at < tensor.bytes(); at += step) bytes[at] = std::byte{0};
      }
      return Status::ok();
    }

   private:
    std::size_t fields_;
  };

  std::shared_ptr<const Transform> like_;
};

/// Collects files. A file with several names is collected once.
class FileList {
 public:
  void add_files_of(const Dataset& dataset);
  std::vector<std::filesystem::path> take() { return std::move(files_); }

 private:
  void add(const std::string& name) {
    struct stat status {};
    if (::stat(name.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    if (known_.emplace(status.st_dev, status.st_ino).second) files_.emplace_back(name);
  }

  std::set<std::pair<dev_t, ino_t>> known_;
  std::vector<std::filesystem::path> files_;
};

/// Returns the storage of the first record whose storage is known; nullopt if it is unknown for all
/// of the first records.
std::optional<StoredRecord> first_stored(const Dataset& dataset) {
  constexpr std::uint64_t most = 1 << 20;
  for (std::uint64_t index = 0; index < std::min(most, dataset.size()); ++index)
    if (auto record = dataset.stored_record(index)) return record;
  return std::nullopt;
}

void FileList::add_files_of(const Dataset& dataset) {
  const auto parts = dataset.parts();
  for (const auto& part : parts) add_files_of(*part);
  if (!parts.empty()) return;
  const std::vector<std::string> named = dataset.facts().files;
  const std::optional<StoredRecord> first = first_stored(dataset);
  if (!first || std::ranges::find(named, first->file) != named.end()) {
    for (const std::string& name : named) add(name);
    return;
  }
  // In this dataset, each record is a separate file.
  for (std::uint64_t index = 0; index < dataset.size(); ++index)
    if (const auto record = dataset.stored_record(index)) add(record->file);
}

}  // namespace

std::vector<std::filesystem::path> files_with_records(const Dataset& dataset) {
  FileList files;
  files.add_files_of(dataset);
  return files.take();
}

SampledDataset::SampledDataset(std::shared_ptr<const Dataset> all, std::uint64_t size,
                               std::uint64_t seed)
    : all_(std::move(all)), size_(size), drawn_(Order::shuffled(), all_->size(), seed) {}

std::unique_ptr<DatasetReader> SampledDataset::make_reader() const {
  class Reader final : public DatasetReader {
   public:
    Reader(std::unique_ptr<DatasetReader> all, const Sampler& drawn)
        : all_(std::move(all)), drawn_(drawn) {}
    Record read(std::uint64_t index) override { return all_->read(drawn_.at(0, index)); }
    Status intact() const override { return all_->intact(); }

   private:
    std::unique_ptr<DatasetReader> all_;
    Sampler drawn_;
  };
  return std::make_unique<Reader>(all_->make_reader(), drawn_);
}

void SampledDataset::prefetch(std::span<const std::uint64_t> indices) const {
  std::vector<std::uint64_t> drawn;
  drawn.reserve(indices.size());
  for (const std::uint64_t index : indices)
    if (index < size_) drawn.push_back(drawn_.at(0, index));
  all_->prefetch(drawn);
}

std::unique_ptr<DatasetReader> EmptyRecords::make_reader() const {
  struct Reader final : DatasetReader {
    Record read(std::uint64_t index) override { return {index, {}}; }
  };
  return std::make_unique<Reader>();
}

std::shared_ptr<const Transform> ready_samples(std::shared_ptr<const Transform> like) {
  return std::make_shared<ReadySamples>(std::move(like));
}

}  // namespace millrace::cli
