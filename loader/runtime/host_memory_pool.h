// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/device.h>
#include <millrace/topology.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/owner_process.h"

namespace millrace {

/// Keeps the host memory that pipelines gave back, for the next pipelines over a device of the same
/// name on the same NUMA node. Memory that a device allocated at once is a block; pieces for
/// smaller pipelines are cut from it and joined again.
///
/// For each device and node the blocks, in use and kept, have at most as many bytes as the blocks
/// in use had at one time: before a further one is allocated, the blocks that were unused longest
/// are freed.
///
/// All methods may be called from any thread at once. Pieces may outlive the pool: their block is
/// then freed with the last of them.
class HostMemoryPool : public std::enable_shared_from_this<HostMemoryPool> {
 public:
  /// Keeps at most `limit` bytes of unused memory for each device and node, as far as blocks are
  /// wholly unused; 0 keeps none.
  explicit HostMemoryPool(std::optional<std::size_t> limit) : limit_(limit.value_or(SIZE_MAX)) {}

  /// Returns `bytes` of page-aligned memory that may hold anything: a kept piece, or what
  /// `device.allocate_host` returns. If that throws an `Error`, frees all unused blocks and tries
  /// again. Throws as `allocate_host`.
  Memory take(Device& device, std::size_t bytes, const NumaNode& node);

  /// Bytes that are kept and not in use, over all devices and nodes.
  std::size_t kept_bytes() const;

 private:
  /// From offset to bytes. No two of them touch.
  using Spans = std::map<std::size_t, std::size_t>;
  struct Block {
    Memory memory;
    Spans unused{};
    bool all_unused() const { return !unused.empty() && unused.begin()->second == memory.bytes(); }
  };
  /// The block that was used last is the last one.
  using Blocks = std::list<std::shared_ptr<Block>>;
  /// The memory of one device and node.
  struct Shelf {
    Blocks blocks{};
    std::size_t block_bytes = 0;
    std::size_t used_bytes = 0;
    /// The most that `block_bytes` may be.
    std::size_t most_bytes = 0;
  };
  struct Piece {
    std::weak_ptr<HostMemoryPool> pool{};
    OwnerProcess process{};
    Shelf* shelf = nullptr;
    std::shared_ptr<Block> block{};
    /// Its place in the block, out of `Block::unused`.
    Spans::node_type span{};
  };

  /// Cuts `piece` from the smallest unused span of at least `bytes`; false if all are smaller.
  static bool cut(Shelf& shelf, std::size_t bytes, Piece& piece);
  /// The piece counts as used from here on.
  static Memory memory_of(Piece& piece, std::size_t bytes,
                          std::function<void(std::byte*)> release) noexcept;
  static void give_back(const std::shared_ptr<Piece>& piece);
  void put(Piece& piece) noexcept;
  /// Moves unused blocks to `freed`, the longest unused ones first, until there are at most
  /// `block_bytes` in blocks and `unused_bytes` unused.
  static void shrink(Shelf& shelf, std::size_t block_bytes, std::size_t unused_bytes,
                     Blocks& freed) noexcept;
  /// Frees all unused blocks; false if there were none.
  bool free_unused();

  const std::size_t limit_;
  const OwnerProcess process_;
  mutable Mutex mutex_;
  std::map<std::pair<std::string, int>, Shelf> shelves_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
