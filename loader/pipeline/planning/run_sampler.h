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

/// Hashes of a run's order by epoch, for the states that the run saves. It holds no weights. All
/// methods may be called by several threads at the same time.
class OrderHashes {
 public:
  explicit OrderHashes(const Sampler& sampler);

  /// Sets the order's hash from an epoch on. It applies until the next epoch that has its own hash.
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

/// Holds the present sampler of a run. Weights can be changed for later epochs. Each change makes a
/// new sampler; planned batches keep the sampler that they were planned with. All methods may be
/// called by several threads at the same time.
class RunSampler {
 public:
  explicit RunSampler(const Sampler& sampler);

  std::shared_ptr<const Sampler> current() const;
  /// Returns the sampler for batches of an epoch, and forgets the weights of earlier epochs. The
  /// epoch must be at least that of the last call.
  std::shared_ptr<const Sampler> for_epoch(std::uint64_t epoch);
  /// Calls `first_epoch`, sets weights from the epoch that it returns, and returns that epoch. No
  /// `for_epoch` runs between the call of `first_epoch` and the change. Throws `Error`
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
