// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_memory_pool.h"

#include <millrace/error.h>

#include <algorithm>
#include <iterator>

namespace millrace {
namespace {

/// Granularity of pieces: the largest page that processors commonly have.
constexpr std::size_t cut_bytes = std::size_t{64} << 10;

std::size_t in_cuts(std::size_t bytes) {
  return bytes > SIZE_MAX - cut_bytes ? bytes : (bytes + cut_bytes - 1) / cut_bytes * cut_bytes;
}

}  // namespace

Memory HostMemoryPool::take(Device& device, std::size_t bytes, const NumaNode& node) {
  if (limit_ == 0 || bytes == 0 || !device.host_memory_is_reusable() || !process_.is_owner())
    return device.allocate_host(bytes, node);
  const auto piece = std::make_shared<Piece>();
  piece->pool = weak_from_this();
  std::function<void(std::byte*)> release = [piece](std::byte*) { give_back(piece); };
  const std::pair<std::string, int> key{device.name(), node.number};
  {
    Blocks freed;  // destroyed after unlocking
    const MutexLock lock(mutex_);
    Shelf& shelf = shelves_[key];
    piece->shelf = &shelf;
    if (cut(shelf, bytes, *piece)) return memory_of(*piece, bytes, std::move(release));
    std::size_t needed = bytes;
    for (const auto& block : shelf.blocks)
      if (!block->all_unused()) needed += block->memory.bytes();
    shelf.max_bytes = std::max(shelf.max_bytes, needed);
    shrink(shelf, shelf.max_bytes - bytes, SIZE_MAX, freed);
  }
  Memory memory;
  try {
    memory = device.allocate_host(bytes, node);
  } catch (const Error&) {
    if (!free_unused()) throw;
    memory = device.allocate_host(bytes, node);
  }
  if (memory.data() == nullptr || memory.bytes() < bytes) return memory;  // the caller refuses it
  Spans whole{{0, memory.bytes()}};
  piece->span = whole.extract(whole.begin());
  piece->block = std::make_shared<Block>(Block{std::move(memory)});
  const MutexLock lock(mutex_);
  piece->shelf->blocks.push_back(piece->block);
  piece->shelf->block_bytes += piece->block->memory.bytes();
  return memory_of(*piece, bytes, std::move(release));
}

bool HostMemoryPool::cut(Shelf& shelf, std::size_t bytes, Piece& piece) {
  Spans::iterator best;
  for (const auto& block : shelf.blocks)
    for (auto span = block->unused.begin(); span != block->unused.end(); ++span) {
      if (span->second < bytes) continue;
      if (piece.block != nullptr && best->second <= span->second) continue;
      piece.block = block;
      best = span;
    }
  if (piece.block == nullptr) return false;
  const auto [offset, size] = *best;
  const std::size_t taken = std::min(in_cuts(bytes), size);
  if (taken < size) piece.block->unused.emplace(offset + taken, size - taken);
  piece.span = piece.block->unused.extract(best);
  piece.span.mapped() = taken;
  return true;
}

Memory HostMemoryPool::memory_of(Piece& piece, std::size_t bytes,
                                 std::function<void(std::byte*)> release) noexcept {
  piece.shelf->used_bytes += piece.span.mapped();
  return {piece.block->memory.data() + piece.span.key(), bytes, std::move(release)};
}

void HostMemoryPool::give_back(const std::shared_ptr<Piece>& piece) {
  if (!piece->process.is_owner()) return leak(piece);
  if (const auto pool = piece->pool.lock()) pool->put(*piece);
}

void HostMemoryPool::put(Piece& piece) noexcept {
  Blocks freed;  // destroyed after unlocking
  const MutexLock lock(mutex_);
  Shelf& shelf = *piece.shelf;
  shelf.used_bytes -= piece.span.mapped();
  Spans& unused = piece.block->unused;
  const auto span = unused.insert(std::move(piece.span)).position;
  if (const auto next = std::next(span);
      next != unused.end() && span->first + span->second == next->first) {
    span->second += next->second;
    unused.erase(next);
  }
  if (span != unused.begin()) {
    const auto before = std::prev(span);
    if (before->first + before->second == span->first) {
      before->second += span->second;
      unused.erase(span);
    }
  }
  const auto block = std::ranges::find(shelf.blocks, piece.block);
  shelf.blocks.splice(shelf.blocks.end(), shelf.blocks, block);
  shrink(shelf, SIZE_MAX, limit_, freed);
}

void HostMemoryPool::shrink(Shelf& shelf, std::size_t block_bytes, std::size_t unused_bytes,
                            Blocks& freed) noexcept {
  for (auto next = shelf.blocks.begin(); next != shelf.blocks.end();) {
    if (shelf.block_bytes <= block_bytes && shelf.block_bytes - shelf.used_bytes <= unused_bytes)
      return;
    const auto block = next++;
    if (!(*block)->all_unused()) continue;
    shelf.block_bytes -= (*block)->memory.bytes();
    freed.splice(freed.end(), shelf.blocks, block);
  }
}

bool HostMemoryPool::free_unused() {
  Blocks freed;  // destroyed after unlocking
  const MutexLock lock(mutex_);
  for (auto& [key, shelf] : shelves_) shrink(shelf, SIZE_MAX, 0, freed);
  return !freed.empty();
}

std::size_t HostMemoryPool::kept_bytes() const {
  const MutexLock lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [key, shelf] : shelves_) bytes += shelf.block_bytes - shelf.used_bytes;
  return bytes;
}

}  // namespace millrace
