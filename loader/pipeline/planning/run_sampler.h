// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/sampler.h>
#include <millrace/state.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"

namespace millrace {

/// Hashes of a run's order by epoch, for its states. Holds no weights. All methods may be called
/// from any thread at once.
class OrderHashes {
 public:
  explicit OrderHashes(const Sampler& sampler);

  /// Sets the hash that holds from an epoch on, until the next epoch that has its own.
  void set(std::uint64_t epoch, std::uint64_t hash);
  /// Fills in the members of a state that identify the order at the state's position.
  void fill(State& state) const;

 private:
  struct EpochHash {
    std::uint64_t first_epoch;
    std::uint64_t hash;
  };

  const std::uint64_t epoch_size_;
  mutable Mutex mutex_;
  std::vector<EpochHash> hashes_ MILLRACE_GUARDED_BY(mutex_);
};

/// The sampler of a run, whose weights can be changed for later epochs. Each change makes a new
/// sampler; planned batches keep the one that they were planned with. All methods may be called
/// from any thread at once.
class RunSampler {
 public:
  explicit RunSampler(const Sampler& sampler);

  std::shared_ptr<const Sampler> now() const;
  /// Returns the sampler for batches of an epoch, and forgets the weights of earlier epochs. The
  /// epoch must not be below that of the last call.
  std::shared_ptr<const Sampler> for_epoch(std::uint64_t epoch);
  /// Sets weights from the epoch on that `first_epoch` returns, and returns that epoch. No call of
  /// `for_epoch` gets a sampler between the call of `first_epoch` and the change. Throws `Error`
  /// (`invalid_argument`) like `Order::reweighted`.
  std::uint64_t set_weights(std::vector<double> weights,
                            const std::function<std::uint64_t()>& first_epoch);

  const std::shared_ptr<OrderHashes>& hashes() const { return hashes_; }

 private:
  const std::shared_ptr<OrderHashes> hashes_;
  mutable Mutex mutex_;
  std::shared_ptr<const Sampler> sampler_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
