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

/// Keeps host memory that pipelines have freed, for later pipelines on the same NUMA node over a
/// device of the same name. A block is one allocation of a device. Smaller pieces are cut from a
/// block, and joined again when they are freed.
///
/// For each device and node, the total size of all blocks is at most the largest total size of the
/// blocks in use at one time. Before a new block is allocated, unused blocks are freed as far as
/// this limit requires, the least recently used first.
///
/// All methods may be called by several threads at the same time. Pieces may outlive the pool:
/// their block is then freed with its last piece.
class HostMemoryPool : public std::enable_shared_from_this<HostMemoryPool> {
 public:
  /// Keeps at most `limit` bytes of unused memory for each device and node; 0 keeps nothing. Blocks
  /// that are partly in use are kept even above the limit.
  explicit HostMemoryPool(std::optional<std::size_t> limit) : limit_(limit.value_or(SIZE_MAX)) {}

  /// Returns `bytes` of page-aligned, uninitialized memory: a kept piece, or a new one from
  /// `device.allocate_host`. If the device throws an `Error`, frees all unused blocks and tries
  /// once more. Throws like `allocate_host`.
  Memory take(Device& device, std::size_t bytes, const NumaNode& node);

  /// Number of unused bytes kept, over all devices and nodes.
  std::size_t kept_bytes() const;

 private:
  /// Sizes of unused spans, by offset. Adjacent spans are joined.
  using Spans = std::map<std::size_t, std::size_t>;
  struct Block {
    Memory memory;
    Spans unused{};
    bool all_unused() const { return !unused.empty() && unused.begin()->second == memory.bytes(); }
  };
  /// Blocks in order of use: the most recently used one is last.
  using Blocks = std::list<std::shared_ptr<Block>>;
  /// Memory of one device and node.
  struct Shelf {
    Blocks blocks{};
    std::size_t block_bytes = 0;
    std::size_t used_bytes = 0;
    /// Upper limit of `block_bytes`.
    std::size_t max_bytes = 0;
  };
  struct Piece {
    std::weak_ptr<HostMemoryPool> pool{};
    OwnerProcess process{};
    Shelf* shelf = nullptr;
    std::shared_ptr<Block> block{};
    /// The piece's span, removed from `Block::unused`.
    Spans::node_type span{};
  };

  /// Cuts `piece` from the smallest unused span of at least `bytes`. Returns false if all spans are
  /// smaller.
  static bool cut(Shelf& shelf, std::size_t bytes, Piece& piece);
  /// Counts the piece as used, and returns its memory.
  static Memory memory_of(Piece& piece, std::size_t bytes,
                          std::function<void(std::byte*)> release) noexcept;
  static void give_back(const std::shared_ptr<Piece>& piece);
  void put(Piece& piece) noexcept;
  /// Moves unused blocks to `freed`, the least recently used first, until at most `block_bytes` are
  /// in blocks and at most `unused_bytes` are unused.
  static void shrink(Shelf& shelf, std::size_t block_bytes, std::size_t unused_bytes,
                     Blocks& freed) noexcept;
  /// Frees all unused blocks. Returns false if it freed nothing.
  bool free_unused();

  const std::size_t limit_;
  const OwnerProcess process_;
  mutable Mutex mutex_;
  std::map<std::pair<std::string, int>, Shelf> shelves_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
