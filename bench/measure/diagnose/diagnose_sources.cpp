// SPDX-License-Identifier: Apache-2.0
#include "measure/diagnose/diagnose_sources.h"

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
        // Small fields are zeroed: they may be the numbers of the device's work.
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

}  // namespace

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
