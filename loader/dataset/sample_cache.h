// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"

namespace millrace {

/// What transforms keep of a dataset's records to make their samples of: as many bytes of each, in
/// memory of a stated size, which is taken as it is needed. What has no room is not kept, and
/// nothing is dropped for it: each epoch takes every record once, so what was used last is what is
/// needed last. All functions may be called from any thread at once; to find something takes no
/// lock.
class SampleCache {
 public:
  /// For records 0 to `records` - 1, of which `sample_bytes`, at least 1, are kept.
  SampleCache(std::uint64_t records, std::size_t sample_bytes);

  /// Lets it take `bytes`, with what it takes to find the samples (8 bytes for each record), if it
  /// may not take more yet.
  void allow(std::size_t bytes);
  /// How many samples have room in what it may take.
  std::uint64_t room() const;
  /// The memory that it takes.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::size_t sample_bytes() const { return sample_bytes_; }

  /// What is kept of a record, as long as the cache lives; empty if nothing is.
  std::span<const std::byte> find(std::uint64_t record) const;
  /// Room to write what is to be kept of a record; empty if there is none. It comes back by `keep`
  /// or `give_back`.
  std::span<std::byte> take();
  /// Keeps what was written into room that it gave, unless another thread has kept this record.
  void keep(std::uint64_t record, std::span<std::byte> room);
  void give_back(std::span<std::byte> room);

 private:
  using Place = std::atomic<const std::byte*>;

  std::size_t table_bytes() const;
  /// Takes memory for more samples, and tells whether there was room for one.
  bool grow() MILLRACE_REQUIRES(mutex_);

  const std::uint64_t records_;
  const std::size_t sample_bytes_;
  /// From one sample to the next.
  const std::size_t stride_;

  /// A place for each record, where there is room for that and a sample. Whoever finds a place
  /// filled sees the bytes that it points to.
  std::atomic<Place*> places_{nullptr};
  std::atomic<std::size_t> bytes_{0};  // a count, which orders nothing

  mutable Mutex mutex_;
  std::unique_ptr<Place[]> table_ MILLRACE_GUARDED_BY(mutex_);
  std::size_t limit_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<std::byte[]>> chunks_ MILLRACE_GUARDED_BY(mutex_);
  /// What was never taken of the last chunk.
  std::span<std::byte> fresh_ MILLRACE_GUARDED_BY(mutex_);
  /// A list: each piece of room, which has 64 bytes at least, begins with the next one's address.
  std::byte* given_back_ MILLRACE_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace millrace
