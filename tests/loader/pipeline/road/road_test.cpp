// SPDX-License-Identifier: Apache-2.0
//
// Tests of the slot queues' states, one call at a time: which calls change a slot's state, that
// others are refused, and that closing the queues ends every wait.
#include "pipeline/road/road.h"

#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <sys/resource.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "loader/pipeline/road/small_road.h"
#include "support/small_run.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::Gate;
using ::testing::HasSubstr;
using testing::now;
using testing::patience;
using testing::SmallRoad;

TEST(Road, ABatchIsCopiedAndComesBack) {
  SmallRoad small;
  Lease& lease = small.add_lease();
  HostSlot& host = small.plan();
  EXPECT_EQ(host.state, HostState::planned);
  EXPECT_EQ(small.next_made().host, nullptr) << "nothing is made yet";
  small.make(host, 0, 2);
  EXPECT_EQ(small.next_made().micro_batch, 0U);

  ASSERT_EQ(small.road->wait_for_lease(0), &lease);
  EXPECT_EQ(lease.state, LeaseState::filling);
  lease.plan = host.plan;
  small.road->on_way(lease, host, 0, now(), 10);
  EXPECT_EQ(lease.state, LeaseState::ready);
  EXPECT_EQ(error_of([&] { (void)small.road->hand_out({.timeout = 0ns}); }).code(),
            ErrorCode::timeout)
      << "the second micro-batch is not on its way";
  ASSERT_EQ(small.road->hand_out({.in_parts = true}), &lease);
  EXPECT_EQ(lease.state, LeaseState::live);

  small.make(host, 2, 4);
  EXPECT_EQ(small.next_made().micro_batch, 1U);
  small.road->on_way(lease, host, 1, now(), 20);
  small.road->leave(host);
  EXPECT_EQ(host.state, HostState::leaving);
  std::vector<HostSlot*> leaving;
  ASSERT_TRUE(small.road->wait_for_leaving(leaving));
  EXPECT_THAT(leaving, ::testing::ElementsAre(&host));
  small.road->left(host);
  EXPECT_EQ(host.state, HostState::free);

  EXPECT_EQ(small.road->position(), 4U);
  small.road->release(lease);
  EXPECT_EQ(lease.state, LeaseState::free);
  EXPECT_EQ(small.road->wait_for_lease(1), &lease);
}

TEST(Road, ABatchInPlaceKeepsItsHostSlotUntilItIsLetGo) {
  SmallRoad small;
  Lease& lease = small.add_lease(small.road->hosts()[0].get());
  HostSlot& host = small.send(lease, false);
  ASSERT_EQ(small.road->hand_out({}), &lease);
  EXPECT_EQ(host.state, HostState::planned);
  small.road->release(lease);
  EXPECT_EQ(lease.state, LeaseState::free);
  EXPECT_EQ(host.state, HostState::leaving);
  small.road->left(host);
  EXPECT_EQ(host.state, HostState::free);
}

TEST(Road, ABatchLetGoEarlyIsFreeWithItsLastMicroBatch) {
  SmallRoad small;
  Lease& lease = small.add_lease(small.road->hosts()[0].get());
  HostSlot& host = small.plan();
  small.make(host, 0, 4);
  small.road->fill(lease);
  (void)small.next_made();
  small.road->on_way(lease, host, 0, now(), 0);
  small.road->release(*small.road->hand_out({.in_parts = true}));
  EXPECT_EQ(lease.state, LeaseState::returned);
  (void)small.next_made();
  small.road->on_way(lease, host, 1, now(), 0);
  EXPECT_EQ(lease.state, LeaseState::free);
  EXPECT_EQ(host.state, HostState::leaving);
}

/// Returns how often the calling thread went to sleep in `call`.
template <typename Call>
long sleeps_in(Call call) {
  const auto so_far = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  const long before = so_far();
  call();
  return so_far() - before;
}

TEST(Road, TheFeederSleepsWhileBatchesAreLetGo) {
  constexpr int batches = 30;
  SmallRoad small;
  for (int batch = 0; batch < batches; ++batch)
    small.road->left(small.send(small.add_lease(), true));
  (void)small.plan();  // and never makes it
  auto feeder = std::async(std::launch::async, [&] {
    return sleeps_in([&] { EXPECT_FALSE(small.road->next_made(now(), now() + patience)); });
  });
  for (int batch = 0; batch < batches; ++batch) {
    std::this_thread::sleep_for(2ms);
    small.road->release(*small.road->hand_out({}));
  }
  small.road->close();
  EXPECT_LT(feeder.get(), batches / 3);
}

TEST(Road, WhoWaitsForABatchSleepsUntilAllOfItIsThere) {
  constexpr std::size_t parts = 30;
  SmallRoad small({.micro_batches = {parts, parts}});
  Lease& lease = small.add_lease();
  HostSlot& host = small.plan(parts);
  small.make(host, 0, parts);
  small.road->fill(lease);
  auto trainer = std::async(std::launch::async, [&] {
    return sleeps_in([&] { EXPECT_EQ(small.road->hand_out({}), &lease); });
  });
  for (std::size_t part = 0; part < parts; ++part) {
    std::this_thread::sleep_for(2ms);
    (void)small.next_made();
    small.road->on_way(lease, host, part, now(), 0);
  }
  EXPECT_LT(trainer.get(), static_cast<long>(parts / 3));
}

TEST(Road, CallsInAWrongStateAreInternalErrors) {
  struct Wrong {
    const char* call;
    const char* state;
    std::function<void(SmallRoad&, HostSlot&, Lease&)> make;
  };
  const std::vector<Wrong> all{
      {"planned", "free", [](SmallRoad& s, HostSlot& h, Lease&) { s.road->planned(h, now(), 1); }},
      {"leave", "free", [](SmallRoad& s, HostSlot& h, Lease&) { s.road->leave(h); }},
      {"leave", "planned",
       [](SmallRoad& s, HostSlot&, Lease&) {
         HostSlot& host = s.plan();
         s.make(host, 0, 4);
         (void)s.next_made();
         s.road->leave(host);
       }},
      {"left", "free", [](SmallRoad& s, HostSlot& h, Lease&) { s.road->left(h); }},
      {"sample_made", "planning",
       [](SmallRoad& s, HostSlot&, Lease&) { s.road->sample_made(*s.road->take_free(), 0); }},
      {"sample_made", "planned",
       [](SmallRoad& s, HostSlot&, Lease&) {
         HostSlot& host = s.plan();
         s.make(host, 0, 2);
         s.road->sample_made(host, 0);
       }},
      {"on_way", "free",
       [](SmallRoad& s, HostSlot&, Lease& lease) {
         HostSlot& host = s.plan();
         s.make(host, 0, 4);
         (void)s.next_made();
         s.road->on_way(lease, host, 0, now(), 0);
       }},
      {"on_way", "planned",
       [](SmallRoad& s, HostSlot&, Lease& lease) {
         HostSlot& host = s.plan();
         s.road->fill(lease);
         s.road->on_way(lease, host, 0, now(), 0);
       }},
      {"on_way", "ready",
       [](SmallRoad& s, HostSlot&, Lease& lease) {
         HostSlot& host = s.send(lease, false);
         s.road->on_way(lease, host, 1, now(), 0);
       }},
      {"fill", "filling",
       [](SmallRoad& s, HostSlot&, Lease& lease) {
         s.road->fill(lease);
         s.road->fill(lease);
       }},
      {"release", "free", [](SmallRoad& s, HostSlot&, Lease& lease) { s.road->release(lease); }},
      {"use", "free",
       [](SmallRoad& s, HostSlot&, Lease& lease) {
         HostStream stream;
         s.road->use(lease, stream);
       }},
      {"wait_for_micro_batch", "free",
       [](SmallRoad& s, HostSlot&, Lease& lease) { s.road->wait_for_micro_batch(lease, 0); }},
      {"taken", "ready", [](SmallRoad& s, HostSlot&, Lease& lease) {
         s.send(lease, true);
         s.road->taken(lease, 0, now(), now());
       }}};
  for (const Wrong& wrong : all) {
    SCOPED_TRACE(std::string(wrong.call) + ", " + wrong.state);
    SmallRoad small;
    Lease& lease = small.add_lease();
    const Error error = error_of([&] { wrong.make(small, *small.road->hosts()[0], lease); });
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_THAT(error.what(), HasSubstr(std::string("::") + wrong.call + " "));
    EXPECT_THAT(error.what(), HasSubstr(std::string("that is ") + wrong.state));
  }
}

// If the workers' count alone decided, the slot could be used again before the worker that counted
// last has reported.
TEST(Road, AMicroBatchIsMadeOnlyWhenAWorkerHasSaidSo) {
  SmallRoad small;
  HostSlot& host = small.plan();
  host.unmade[0].store(0);
  EXPECT_EQ(small.next_made().host, nullptr);
  host.unmade[0].store(1);
  small.make(host, 1, 2);
  EXPECT_EQ(small.next_made().host, &host);
}

TEST(Road, MicroBatchesWithoutSamplesAreMadeAtOnce) {
  SmallRoad small;
  HostSlot& host = small.plan(2);
  small.make(host, 0, 2);
  EXPECT_EQ(small.next_made().micro_batch, 0U);
  EXPECT_EQ(small.next_made().micro_batch, 1U);
  EXPECT_EQ(small.plan(0).micro_batches_unmade, 0U);
}

TEST(Road, EndsBehindTheLastBatch) {
  SmallRoad small({.micro_batches = {4, 1}, .end = 1});
  Lease& lease = small.add_lease();
  small.send(lease, true);
  EXPECT_EQ(small.road->take_free(), nullptr) << "one batch was all";
  EXPECT_EQ(small.road->hand_out({}), &lease);
  EXPECT_EQ(small.road->hand_out({}), nullptr);
}

TEST(Road, SaysThatLiveBatchesHoldEverySlot) {
  SmallRoad small;
  small.road->set_words({"device", "device_slots"});
  small.send(small.add_lease(), true);
  (void)small.road->hand_out({});
  const Error exhausted = error_of([&] { (void)small.road->hand_out({}); });
  EXPECT_EQ(exhausted.code(), ErrorCode::slots_exhausted);
  EXPECT_THAT(exhausted.what(), HasSubstr("1 live batches hold every device slot"));
  const Error late = error_of([&] { (void)small.road->hand_out({.timeout = 5ms}); });
  EXPECT_EQ(late.code(), ErrorCode::timeout);
  EXPECT_THAT(late.what(), HasSubstr("still after 5 ms"));
}

TEST(Road, ClosingEndsEveryWait) {
  SmallRoad small;
  Lease& lease = small.add_lease();
  HostSlot& host = small.plan();
  small.make(host, 0, 2);
  (void)small.next_made();
  ASSERT_EQ(small.road->wait_for_lease(0), &lease);
  small.road->on_way(lease, host, 0, now(), 0);
  (void)small.road->hand_out({.in_parts = true});
  (void)small.plan();
  const auto run = [](auto function) { return std::async(std::launch::async, function); };
  Road& road = *small.road;
  auto feeder = run([&road] { return !road.next_made(now(), Road::Clock::time_point::max()); });
  auto outlet = run([&road] { return road.wait_for_lease(1) == nullptr; });
  auto reaper = run([&road] {
    std::vector<HostSlot*> leaving;
    return !road.wait_for_leaving(leaving);
  });
  auto trainer = run([&road] {
    return error_of([&] { (void)road.hand_out({.timeout = patience}); }).code() ==
           ErrorCode::stopped;
  });
  auto in_parts = run([&road, &lease] {
    return error_of([&] { road.wait_for_micro_batch(lease, 1); }).code() == ErrorCode::stopped;
  });
  std::this_thread::sleep_for(20ms);
  road.close();
  for (auto* waiting : {&feeder, &outlet, &reaper, &trainer, &in_parts}) {
    ASSERT_EQ(waiting->wait_for(patience), std::future_status::ready);
    EXPECT_TRUE(waiting->get());
  }
  EXPECT_FALSE(road.begin_sample());
}

TEST(Road, KeepsTheFirstError) {
  SmallRoad small;
  const auto fail = [&small](const std::exception& error, const char* stage) {
    try {
      throw std::runtime_error(error.what());
    } catch (...) {
      small.road->fail(stage);
    }
  };
  fail(std::runtime_error("first"), "make");
  fail(std::runtime_error("second"), "upload");
  const Error error = error_of([&] { small.road->throw_if_closed(); });
  EXPECT_STREQ(error.what(), "make failed: first");
  EXPECT_EQ(error.stage(), "make");
}

TEST(Road, WatchesBlockingCallsFromABatchOn) {
  SmallRoad small({.micro_batches = {4, 1}, .watched_from = 1});
  small.send(small.add_lease(), true);
  EXPECT_FALSE(small.road->watched());
  (void)small.road->hand_out({});
  EXPECT_TRUE(small.road->watched());
}

/// Memory that signals when it is freed.
Memory told(std::promise<void>& freed) {
  static std::byte byte;
  return {&byte, 1, [&freed](std::byte*) { freed.set_value(); }};
}

TEST(Slots, AreFreedOnlyBehindTheirUsesAndNobodyWaitsForThat) {
  std::promise<void> freed;
  std::future<void> is_freed = freed.get_future();
  Gate gate;
  HostStream stream;
  const testing::OpensAtEnd opens(gate);
  const auto device = std::make_shared<HostDevice>();
  Slots slots{device};
  slots.leases.push_back(std::make_unique<Lease>());
  Lease& lease = *slots.leases.front();
  lease.memory = told(freed);
  lease.uses.push_back({&stream, device->make_event()});
  lease.used = 1;
  stream.launch([&gate] { (void)gate.pass(); });
  stream.record(*lease.uses.front().done);

  EXPECT_FALSE(slots.wait_for_uses(now() + 5ms));
  let_go(std::move(slots));
  EXPECT_EQ(is_freed.wait_for(20ms), std::future_status::timeout);
  gate.open();
  EXPECT_EQ(is_freed.wait_for(patience), std::future_status::ready);
}

TEST(Slots, AreFreedAtOnceIfNothingUsesThem) {
  std::promise<void> freed;
  std::future<void> is_freed = freed.get_future();
  Slots slots{std::make_shared<HostDevice>()};
  slots.leases.push_back(std::make_unique<Lease>());
  slots.leases.front()->memory = told(freed);
  let_go(std::move(slots));
  EXPECT_EQ(is_freed.wait_for(0s), std::future_status::ready);
}

}  // namespace
}  // namespace millrace
