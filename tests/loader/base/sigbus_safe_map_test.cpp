// SPDX-License-Identifier: Apache-2.0
//
// Tests of files that are truncated while they are mapped, which raises a real SIGBUS, and of the
// handler that gets it.
#include "base/sigbus_safe_map.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "support/sanitizers.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using testing::TemporaryFolder;

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// A file of some pages, each full of its number plus 1.
class PagedFile {
 public:
  explicit PagedFile(std::size_t pages) : pages_(pages) { write(); }

  std::size_t size() const { return pages_ * page; }
  int number() const { return file_.get(); }
  void cut(std::size_t bytes) const {
    ASSERT_EQ(ftruncate(file_.get(), static_cast<off_t>(bytes)), 0);
  }
  void write() const {
    for (std::size_t n = 0; n < pages_; ++n) {
      const std::vector<unsigned char> bytes(page, static_cast<unsigned char>(n + 1));
      ASSERT_EQ(pwrite(file_.get(), bytes.data(), page, static_cast<off_t>(n * page)),
                static_cast<ssize_t>(page));
    }
  }
  std::unique_ptr<SigbusSafeMap> map() const {
    return std::make_unique<SigbusSafeMap>(file_.get(), size(), "paged");
  }

 private:
  const TemporaryFolder folder_;
  const FileDescriptor file_{open((folder_ / "file").c_str(), O_RDWR | O_CREAT, 0600)};
  const std::size_t pages_;
};

unsigned read_byte(const void* at) { return *static_cast<const volatile unsigned char*>(at); }

TEST(SigbusSafeMap, ItsLostPagesAreZerosAndAreNamed) {
  const PagedFile file(8);
  const auto map = file.map();
  EXPECT_TRUE(map->whole());
  file.cut(3 * page + page / 2);
  for (std::size_t at = 0; at < file.size(); ++at)
    ASSERT_EQ(read_byte(&map->bytes()[at]), at < 3 * page + page / 2 ? at / page + 1 : 0) << at;
  EXPECT_FALSE(map->whole());
  EXPECT_EQ(map->first_lost(map->bytes()), 4 * page);
  EXPECT_EQ(map->first_lost(map->bytes().first(4 * page)), std::nullopt);
  EXPECT_EQ(map->first_lost(map->bytes().subspan(5 * page + 7, 1)), 5 * page + 7);
  EXPECT_EQ(map->first_lost(map->bytes().subspan(3 * page, page + 1)), 4 * page);
  const auto again = file.map();  // as another opening of the file would map it
  EXPECT_FALSE(again->whole());
}

// The zeros after the new end, in the page that contains it, raise no fault.
TEST(SigbusSafeMap, ACutWithinItsLastPageIsNoticed) {
  const PagedFile file(3);
  const auto map = file.map();
  file.cut(file.size() - 1);
  EXPECT_FALSE(map->whole());
  EXPECT_EQ(map->first_lost(map->bytes()), std::nullopt);
  file.write();
  file.cut(2 * page + 5);
  file.cut(file.size());  // now ends in zeros
  const auto padded = file.map();
  file.cut(2 * page + 5);
  EXPECT_TRUE(padded->whole()) << "no byte of it has changed";
  file.cut(2 * page + 4);
  EXPECT_FALSE(padded->whole());
}

TEST(SigbusSafeMap, ALostPageSpoilsNoOther) {
  const PagedFile file(8);
  const auto map = file.map();
  file.cut(0);
  EXPECT_EQ(read_byte(&map->bytes()[4 * page]), 0u);
  file.write();
  for (std::size_t n = 0; n < 8; ++n) {
    EXPECT_EQ(read_byte(&map->bytes()[n * page]), n == 4 ? 0 : n + 1);
    EXPECT_EQ(map->first_lost(map->bytes().subspan(n * page, page)),
              n == 4 ? std::optional(4 * page) : std::nullopt);
  }
}

// A process may have only a limited number of mappings.
TEST(SigbusSafeMap, AMapWithTooManyLostPagesIsLostAsAWhole) {
  const TemporaryFolder folder;
  const FileDescriptor file(open((folder / "file").c_str(), O_RDWR | O_CREAT, 0600));
  const std::size_t bytes = 140'000 * page;
  ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  const SigbusSafeMap map(file.get(), bytes, "sparse");
  ASSERT_EQ(ftruncate(file.get(), 0), 0);
  for (std::size_t at = 0; at < bytes; at += 2 * page) ASSERT_EQ(read_byte(&map.bytes()[at]), 0u);
  EXPECT_FALSE(map.whole());
  EXPECT_EQ(map.first_lost(map.bytes().subspan(page, 1)), page) << "which nobody has touched";
}

TEST(SigbusSafeMap, RefusesWhatCannotBeMapped) {
  const Error error = testing::thrown_by([] { const SigbusSafeMap map(-1, page, "nothing"); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_EQ(std::string(error.what()), "nothing cannot be mapped: Bad file descriptor");
}

struct sigaction current() {
  struct sigaction now {};
  sigaction(SIGBUS, nullptr, &now);
  return now;
}

/// Restores the process's handler at the end.
class KeepsHandler {
 public:
  ~KeepsHandler() { sigaction(SIGBUS, &kept_, nullptr); }

 private:
  const struct sigaction kept_ = current();
};

std::atomic<int> earlier_calls, later_calls;
std::atomic<void*> seen_address;
std::atomic<void*> seen_stack;
std::atomic<bool> usr1_blocked;
struct sigaction behind_later {};

/// A page of the test's own that is not guarded. A handler repairs it.
class OwnLostPage {
 public:
  OwnLostPage() {
    file_.cut(0);
    at_ = mmap(nullptr, page, PROT_READ, MAP_SHARED, file_.number(), 0);
    now_ = at_;
  }
  ~OwnLostPage() { munmap(at_, page); }
  void* address() const { return at_; }
  static void mend() {
    mmap(now_, page, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }

 private:
  const PagedFile file_{1};
  void* at_;
  static inline void* now_;
};

void note_call() {
  ++earlier_calls;
  seen_stack = __builtin_frame_address(0);
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  usr1_blocked = sigismember(&blocked, SIGUSR1) == 1;
  OwnLostPage::mend();
}
void earlier_plain(int) { note_call(); }
void earlier_with_info(int, siginfo_t* info, void*) {
  seen_address = info->si_addr;
  note_call();
}
void later(int signal, siginfo_t* info, void* context) {
  ++later_calls;
  behind_later.sa_sigaction(signal, info, context);
}

struct sigaction with_info(void (*function)(int, siginfo_t*, void*), int flags = 0) {
  struct sigaction action {};
  action.sa_sigaction = function;
  action.sa_flags = SA_SIGINFO | flags;
  return action;
}
struct sigaction plain(void (*function)(int), int flags = 0) {
  struct sigaction action {};
  action.sa_handler = function;
  action.sa_flags = flags;
  return action;
}

class SigbusSafeMapHandler : public ::testing::Test {
 protected:
  SigbusSafeMapHandler() { earlier_calls = later_calls = 0; }

  /// Loses a page of a map. No other handler is called for it.
  static void lose_page_of(const SigbusSafeMap& map, const PagedFile& file) {
    const int calls = earlier_calls;
    file.cut(0);
    EXPECT_EQ(read_byte(map.bytes().data()), 0u);
    EXPECT_FALSE(map.whole());
    EXPECT_EQ(earlier_calls, calls);
    file.write();
  }
  static void expect_own_fault() {
    const int calls = earlier_calls;
    const OwnLostPage own;
    std::byte* at = static_cast<std::byte*>(own.address()) + 3;
    seen_address = nullptr;
    EXPECT_EQ(read_byte(at), 0u);
    EXPECT_TRUE(seen_address == nullptr || seen_address == at);
    EXPECT_EQ(earlier_calls, calls + 1);
  }

  const KeepsHandler keeps_;
  const PagedFile file_{4};
};

TEST_F(SigbusSafeMapHandler, TheEarlierOneGetsAllElse) {
  for (const bool has_info : {false, true}) {
    SCOPED_TRACE(has_info);
    const struct sigaction mine = has_info ? with_info(earlier_with_info) : plain(earlier_plain);
    sigaction(SIGBUS, &mine, nullptr);
    {
      const auto map = file_.map();
      EXPECT_NE(current().sa_handler, mine.sa_handler);
      const auto second = file_.map();
      expect_own_fault();
      lose_page_of(*map, file_);
      expect_own_fault();
      EXPECT_EQ(seen_address != nullptr, has_info);
      raise(SIGBUS);
    }
    EXPECT_EQ(current().sa_handler, mine.sa_handler) << "ours has gone";
    EXPECT_EQ(current().sa_flags & SA_SIGINFO, mine.sa_flags & SA_SIGINFO);
    expect_own_fault();
  }
  EXPECT_EQ(earlier_calls, 8);
}

TEST_F(SigbusSafeMapHandler, TheEarlierOneHasItsMaskAndItsStack) {
  std::vector<std::byte> memory(256 << 10);
  stack_t stack{.ss_sp = memory.data(), .ss_flags = 0, .ss_size = memory.size()}, before{};
  ASSERT_EQ(sigaltstack(&stack, &before), 0);
  for (const bool own_stack : {false, true}) {
    struct sigaction mine = plain(earlier_plain, own_stack ? SA_ONSTACK : 0);
    sigaddset(&mine.sa_mask, SIGUSR1);
    sigaction(SIGBUS, &mine, nullptr);
    const auto map = file_.map();
    expect_own_fault();
    EXPECT_TRUE(usr1_blocked);
    const auto* at = static_cast<const std::byte*>(seen_stack.load());
    EXPECT_EQ(at >= memory.data() && at < memory.data() + memory.size(), own_stack);
  }
  sigaltstack(&before, nullptr);
}

TEST_F(SigbusSafeMapHandler, OneInstalledMeanwhilePassesOnAndStays) {
  const struct sigaction mine = with_info(earlier_with_info);
  sigaction(SIGBUS, &mine, nullptr);
  auto map = file_.map();
  const struct sigaction newer = with_info(later);
  sigaction(SIGBUS, &newer, &behind_later);
  lose_page_of(*map, file_);
  EXPECT_EQ(later_calls, 2) << "the page and the last one";
  expect_own_fault();
  EXPECT_EQ(later_calls, 3);
  map.reset();
  EXPECT_EQ(current().sa_sigaction, &later) << "it is not ours to remove";
  expect_own_fault();
  EXPECT_EQ(later_calls, 4);

  // Our handler is installed in front once more, and is also the next one: this must not loop.
  map = file_.map();
  lose_page_of(*map, file_);
  EXPECT_EQ(later_calls, 4);
  expect_own_fault();
  EXPECT_EQ(later_calls, 5);
  map.reset();
  EXPECT_EQ(current().sa_sigaction, &later);
  // The program removes its own handler, and restores the one it found.
  sigaction(SIGBUS, &behind_later, nullptr);
  expect_own_fault();
  map = file_.map();
  lose_page_of(*map, file_);
  map.reset();
  EXPECT_EQ(current().sa_sigaction, &earlier_with_info);
}

/// Returns the signal that ends a child which does this, or 0.
int signal_that_ends(const std::function<void()>& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    child();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_F(SigbusSafeMapHandler, WhatEndsAProcessStillDoes) {
  const auto ends = [&](const struct sigaction& mine, const std::function<void()>& event) {
    return signal_that_ends([&] {
      sigaction(SIGBUS, &mine, nullptr);
      const auto map = file_.map();
      lose_page_of(*map, file_);
      event();
    });
  };
  const auto fault = [] {
    const OwnLostPage own;
    (void)read_byte(own.address());
  };
  const auto sent = [] { kill(getpid(), SIGBUS); };
  EXPECT_EQ(ends(plain(SIG_DFL), fault), SIGBUS);
  EXPECT_EQ(ends(plain(SIG_DFL), sent), SIGBUS);
  EXPECT_EQ(ends(plain(SIG_DFL), [] {}), 0);
  EXPECT_EQ(ends(plain(SIG_IGN), fault), SIGBUS) << "nobody can ignore a fault";
  EXPECT_EQ(ends(plain(SIG_IGN), sent), 0);
  const struct sigaction once = plain(earlier_plain, static_cast<int>(SA_RESETHAND));
  EXPECT_EQ(ends(once, sent), 0);
#if !defined(MILLRACE_TSAN)  // it calls a SA_RESETHAND handler again
  EXPECT_EQ(ends(once, [&] { sent(), sent(); }), SIGBUS);
#endif
}

TEST_F(SigbusSafeMapHandler, AChildIsGuardedToo) {
  auto map = file_.map();
  file_.cut(0);
  EXPECT_EQ(signal_that_ends([&] {
              if (read_byte(map->bytes().data()) != 0 || map->whole()) raise(SIGKILL);
              map.reset();
              const auto own = file_.map();
              (void)own->whole();
            }),
            0);
  EXPECT_EQ(map->first_lost(map->bytes()), std::nullopt) << "the child's pages are its own";
}

TEST_F(SigbusSafeMapHandler, ASmallStackIsEnough) {
  const auto map = file_.map();
  file_.cut(0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
#if defined(MILLRACE_ASAN) || defined(MILLRACE_TSAN)
  constexpr std::size_t stack = 256 << 10;
#else
  const auto stack = static_cast<std::size_t>(PTHREAD_STACK_MIN) + (8 << 10);
#endif
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, stack), 0);
  pthread_t thread{};
  const auto read = [](void* at) -> void* { return read_byte(at) == 0 ? at : nullptr; };
  void* first = const_cast<std::byte*>(map->bytes().data());
  void* result = nullptr;
  ASSERT_EQ(pthread_create(&thread, &attributes, read, first), 0);
  pthread_join(thread, &result);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(result, first);
}

TEST_F(SigbusSafeMapHandler, ManyThreadsLosePagesWhileMapsComeAndGo) {
  constexpr std::size_t rounds = 40;
  std::atomic<bool> done{false};
  std::jthread opens([&] {
    while (!done) {
      const PagedFile other(2);
      const auto map = other.map();
      other.cut(page);
      EXPECT_EQ(read_byte(&map->bytes()[page]), 0u);
      EXPECT_EQ(map->first_lost(map->bytes()), page);
    }
  });
  for (std::size_t round = 0; round < rounds; ++round) {
    const PagedFile file(64);
    const auto map = file.map();
    std::vector<std::jthread> readers;
    for (unsigned reader = 0; reader < 3; ++reader)
      readers.emplace_back([&] {
        for (std::size_t n = 0; n < 64; ++n) {
          const unsigned byte = read_byte(&map->bytes()[n * page + 1]);
          const auto lost = map->first_lost(map->bytes().subspan(n * page, page));
          EXPECT_TRUE(byte == n + 1 || (byte == 0 && lost == n * page)) << n << " has " << byte;
        }
      });
    file.cut(round % 64 * page);
  }
  done = true;
}

}  // namespace
}  // namespace millrace
