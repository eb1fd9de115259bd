// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>
#include <millrace/sampler.h>
#include <millrace/transform.h>

#include <filesystem>
#include <memory>
#include <vector>

namespace millrace::cli {

/// The files whose pages hold the records of a dataset or of all parts of a joined one, each once.
/// Leaves out missing files and files that are not regular.
std::vector<std::filesystem::path> files_with_records(const Dataset& dataset);

/// A random sample of `size` records that represents a dataset: as scattered over the files as an
/// epoch reads them. Their indices here are 0 to size - 1.
class SampledDataset final : public Dataset {
 public:
  /// `size` is at most the dataset's size. The same seed draws the same records.
  SampledDataset(std::shared_ptr<const Dataset> all, std::uint64_t size, std::uint64_t seed);

  std::uint64_t size() const override { return size_; }
  std::unique_ptr<DatasetReader> make_reader() const override;
  void prefetch(std::span<const std::uint64_t> indices) const override;
  std::string key(std::uint64_t index) const override { return all_->key(drawn_.at(0, index)); }
  std::string name() const override { return all_->name(); }
  std::vector<std::string> classes() const override { return all_->classes(); }
  DatasetFacts facts() const override { return all_->facts(); }
  bool has_stored_hints() const override { return all_->has_stored_hints(); }
  void stored_hint(std::uint64_t index, std::vector<std::byte>& hint) const override {
    all_->stored_hint(drawn_.at(0, index), hint);
  }

 private:
  std::shared_ptr<const Dataset> all_;
  std::uint64_t size_;
  Sampler drawn_;
};

/// Records without fields, which take no time to read.
class EmptyRecords final : public Dataset {
 public:
  explicit EmptyRecords(std::uint64_t size) : size_(size) {}

  std::uint64_t size() const override { return size_; }
  std::unique_ptr<DatasetReader> make_reader() const override;
  std::string name() const override { return "records without fields"; }

 private:
  std::uint64_t size_;
};

/// A transform that makes samples of the same shape as `like` in almost no time. It writes one
/// byte of each page of a sample, so that the slot gets memory of its own, as with real samples.
std::shared_ptr<const Transform> ready_samples(std::shared_ptr<const Transform> like);

}  // namespace millrace::cli
