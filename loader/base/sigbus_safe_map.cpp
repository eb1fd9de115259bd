// SPDX-License-Identifier: Apache-2.0
#include "base/sigbus_safe_map.h"

#include <millrace/detail/errno_text.h>
#include <millrace/error.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <utility>

#include "base/mutex.h"

namespace millrace {

/// A map's entry for the handler. The handler may read it at any time, so entries are never freed;
/// later maps reuse them.
struct GuardedRange {
  /// Odd while `begin` and `bytes` change, so that the handler never combines values of two maps.
  /// The handler acquires it before and after reading them; writers release it with each change.
  std::atomic<unsigned> version{0};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::size_t> bytes{0};
  /// One flag per page: whether the page is lost. Null while no page is lost. Released before the
  /// zeros are mapped, acquired by readers of the map.
  std::atomic<std::atomic<bool>*> lost{nullptr};
  std::atomic<bool> all_lost{false};
  /// Number of additional mappings that the range's lost pages have caused.
  std::atomic<std::size_t> pieces{0};
  GuardedRange* next = nullptr;
  GuardedRange* next_free = nullptr;

  void set(std::uintptr_t new_begin, std::size_t new_bytes) {
    version.fetch_add(1);
    begin.store(new_begin);
    bytes.store(new_bytes);
    version.fetch_add(1);
  }
};

namespace {

static_assert(std::atomic<bool>::is_always_lock_free && sizeof(std::atomic<bool>) == 1 &&
              std::atomic<std::uintptr_t>::is_always_lock_free);

/// Maximal number of times that the handler can be in the process's handler chain. It is there
/// several times if the program installs its own handler in front of it, closes all files and then
/// opens a file again. Each level has a separate function, so the chain never forms a loop.
constexpr std::size_t max_levels = 8;

/// The SIGBUS handler before one level was installed. It is written before the installation.
struct Earlier {
  struct sigaction action {};
  /// Whether a handler that may run only once (SA_RESETHAND) has run.
  std::atomic<bool> spent{false};
};

/// Maximal number of additional mappings over all maps. Linux allows about 65,000 mappings per
/// process, and a lost page adds two.
constexpr std::size_t max_pieces = 16 << 10;

struct Guard {
  std::atomic<GuardedRange*> known{nullptr};
  std::atomic<std::size_t> pieces{0};
  std::array<Earlier, max_levels> earlier;

  Mutex mutex;
  GuardedRange* free MILLRACE_GUARDED_BY(mutex) = nullptr;
  std::size_t maps MILLRACE_GUARDED_BY(mutex) = 0;
  std::size_t levels MILLRACE_GUARDED_BY(mutex) = 0;
};
constinit Guard guard;

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// The handler calls the functions from here to `on_bus_error`. They take no locks and allocate no
// heap memory. They use the system call directly, because sanitizers intercept the library's
// function.
void* map_zeros(std::uintptr_t at, std::size_t bytes, int protection, int flags) {
  const long map = syscall(SYS_mmap, at, bytes, protection,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  return map == -1 ? nullptr : std::bit_cast<void*>(map);
}

/// Returns false if the page cannot be marked separately.
bool mark(GuardedRange& range, std::size_t page, std::size_t pages) {
  std::atomic<bool>* lost = range.lost.load();
  if (lost == nullptr) {
    void* fresh = map_zeros(0, pages, PROT_READ | PROT_WRITE, 0);
    if (fresh == nullptr) return false;
    if (range.lost.compare_exchange_strong(lost, static_cast<std::atomic<bool>*>(fresh)))
      lost = static_cast<std::atomic<bool>*>(fresh);
    else
      syscall(SYS_munmap, fresh, pages);
  }
  lost[page].store(true);
  if ((page > 0 && lost[page - 1].load()) || (page + 1 < pages && lost[page + 1].load()))
    return true;
  range.pieces.fetch_add(1);
  return guard.pieces.fetch_add(1) < max_pieces;
}

void forget_pieces(GuardedRange& range) { guard.pieces.fetch_sub(range.pieces.exchange(0)); }

/// Replaces the lost page at an address by zeros. Returns false if the address is outside of all
/// maps.
bool replace_page(std::uintptr_t address) {
  const std::size_t page_bytes = page_size();
  for (GuardedRange* range = guard.known.load(); range != nullptr; range = range->next) {
    const unsigned version = range->version.load();
    const std::uintptr_t begin = range->begin.load();
    const std::size_t bytes = range->bytes.load();
    // No thread reads a map that is just being made or removed.
    if (version % 2 != 0 || range->version.load() != version) continue;
    if (address < begin || address - begin >= bytes) continue;
    const std::size_t page = (address - begin) / page_bytes;
    const std::size_t pages = (bytes + page_bytes - 1) / page_bytes;
    if (mark(*range, page, pages) &&
        map_zeros(begin + page * page_bytes, page_bytes, PROT_READ, MAP_FIXED) != nullptr)
      return true;
    range->all_lost.store(true);
    forget_pieces(*range);
    return map_zeros(begin, bytes, PROT_READ, MAP_FIXED) != nullptr;
  }
  return false;
}

bool is_handler(const struct sigaction& action) {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

/// Behaves as the earlier handler would if it were installed alone. Its mask and stack are set
/// already, because millrace's handler is installed with the same ones.
void pass_on(Earlier& earlier, int signal, siginfo_t* info, void* context, bool fault) {
  const struct sigaction& action = earlier.action;
  if (action.sa_handler == SIG_IGN && !fault) return;
  const bool once = is_handler(action) && (action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0;
  if (!is_handler(action) || (once && earlier.spent.exchange(true))) {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    // The faulting instruction raises the signal again by itself, and it cannot be ignored.
    if (!fault) raise(signal);
  } else if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
}

template <std::size_t level>
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  // Only these codes come with an address. A memory error that is only reported (BUS_MCEERR_AO)
  // does not stop a thread.
  const bool fault = info->si_code > 0 && info->si_code != BUS_MCEERR_AO;
  const bool lost_page = info->si_code == BUS_ADRERR || info->si_code == BUS_MCEERR_AR;
  if (!lost_page || !replace_page(reinterpret_cast<std::uintptr_t>(info->si_addr)))
    pass_on(guard.earlier[level], signal, info, context, fault);
  errno = error;
}

constexpr std::array<void (*)(int, siginfo_t*, void*), max_levels> handlers = {
    on_bus_error<0>, on_bus_error<1>, on_bus_error<2>, on_bus_error<3>,
    on_bus_error<4>, on_bus_error<5>, on_bus_error<6>, on_bus_error<7>};

/// Returns the level of a handler of millrace; `max_levels` for any other handler.
std::size_t level_of(const struct sigaction& action) {
  const bool has_info = (action.sa_flags & SA_SIGINFO) != 0;
  const auto* const ours = std::ranges::find(handlers, has_info ? action.sa_sigaction : nullptr);
  return static_cast<std::size_t>(ours - handlers.begin());
}

void install() MILLRACE_REQUIRES(guard.mutex) {
  struct sigaction now {};
  sigaction(SIGBUS, nullptr, &now);
  // The current handler is millrace's if the program has installed it again. If all levels are
  // used, millrace's handlers are already in the program's own chain.
  if (level_of(now) < max_levels || guard.levels == max_levels) return;
  Earlier& earlier = guard.earlier[guard.levels];
  earlier.action = now;
  earlier.spent.store(false);
  // The new handler is installed with the mask and the stack of the earlier one.
  struct sigaction ours {};
  ours.sa_flags = SA_ONSTACK | SA_RESTART;
  if (is_handler(now)) ours = now;
  ours.sa_flags = (ours.sa_flags | SA_SIGINFO) & ~static_cast<int>(SA_RESETHAND);
  ours.sa_sigaction = handlers[guard.levels++];
  sigaction(SIGBUS, &ours, nullptr);
}

Mutex& guard_mutex() { return guard.mutex; }

void uninstall() MILLRACE_REQUIRES(guard.mutex) {
  struct sigaction now {};
  sigaction(SIGBUS, nullptr, &now);
  const std::size_t level = level_of(now);
  if (level == max_levels) return;
  struct sigaction before = guard.earlier[level].action;
  if (guard.earlier[level].spent.load()) before.sa_handler = SIG_DFL;
  sigaction(SIGBUS, &before, nullptr);
  guard.levels = level;
}

std::string cannot_be_mapped(const std::string& name, int error) {
  return name + " cannot be mapped: " + errno_text(error);
}

/// Thrown if the file system supports neither shared nor private maps.
struct MapsRefused : Error {
  explicit MapsRefused(const std::string& name)
      : Error(ErrorCode::io, cannot_be_mapped(name, ENODEV)) {}
};

}  // namespace

SigbusSafeMap::SigbusSafeMap(int file, std::size_t bytes, const std::string& name) {
  static std::once_flag once;
  std::call_once(once, keep_free_in_children<guard_mutex>);
  {
    const MutexLock lock(guard.mutex);
    if (guard.free == nullptr) {
      guard.free = new GuardedRange;
      guard.free->next = guard.known.load();
      guard.known.store(guard.free);
    }
    void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    private_ = map == MAP_FAILED && errno == ENODEV;
    if (private_) map = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (map == MAP_FAILED && errno == ENODEV) throw MapsRefused(name);
    if (map == MAP_FAILED) throw Error(ErrorCode::io, cannot_be_mapped(name, errno));
    range_ = std::exchange(guard.free, guard.free->next_free);
    range_->set(reinterpret_cast<std::uintptr_t>(map), bytes);
    if (guard.maps++ == 0) install();
    bytes_ = {static_cast<const std::byte*>(map), bytes};
  }
  const std::byte* page = bytes_.data() + (bytes - 1) / page_size() * page_size();
  last_ = bytes_.data() + bytes - 1;
  while (last_ != page && *last_ == std::byte{0}) --last_;
  last_value_ = *last_;
}

std::unique_ptr<const SigbusSafeMap> SigbusSafeMap::make(int file, std::size_t bytes,
                                                         const std::string& name,
                                                         std::vector<std::string>& warnings) {
  const auto warn = [&](const char* what) {
    const std::string folder = std::filesystem::path(name).parent_path().string();
    warnings.push_back((folder.empty() ? "." : folder) + ": " + what);
  };
  try {
    auto map = std::make_unique<const SigbusSafeMap>(file, bytes, name);
    if (map->private_)
      warn(
          "the file system refuses shared maps, as FUSE with direct I/O does; its files are mapped "
          "privately");
    return map;
  } catch (const MapsRefused&) {
    warn(
        "the file system cannot map files; records are read call by call, as with "
        "OpenOptions::map = false");
    return nullptr;
  }
}

SigbusSafeMap::~SigbusSafeMap() {
  if (!owner_.is_owner()) return;
  {
    const MutexLock lock(guard.mutex);
    if (--guard.maps == 0) uninstall();
    range_->set(0, 0);
    if (std::atomic<bool>* lost = range_->lost.exchange(nullptr))
      munmap(lost, (bytes_.size() + page_size() - 1) / page_size());
    range_->all_lost.store(false);
    forget_pieces(*range_);
    range_->next_free = guard.free;
    guard.free = range_;
  }
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

bool SigbusSafeMap::whole() const {
  // If the page cannot be read, this access lets the handler mark it as lost.
  const auto last = *const_cast<const volatile std::byte*>(last_);
  return last == last_value_ && range_->lost.load() == nullptr && !range_->all_lost.load();
}

std::optional<std::size_t> SigbusSafeMap::first_lost(std::span<const std::byte> part) const {
  const auto begin = static_cast<std::size_t>(part.data() - bytes_.data());
  if (range_->all_lost.load()) return begin;
  const std::atomic<bool>* lost = range_->lost.load();
  const std::size_t page_bytes = page_size();
  for (std::size_t page = begin / page_bytes; page * page_bytes < begin + part.size(); ++page)
    if (lost != nullptr && lost[page].load()) return std::max(begin, page * page_bytes);
  return {};
}

}  // namespace millrace
