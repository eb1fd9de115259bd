// SPDX-License-Identifier: Apache-2.0
//
// Tests of the slot queues' states, one call at a time: which calls change a slot's state, that
// others are refused, and that closing the queues ends every wait.
#include "pipeline/slots/slot_queues.h"

#include <gmock/gmock.h>
#include <millrace/host_device.h>
#include <sys/resource.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "loader/pipeline/slots/small_queues.h"
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
using testing::SmallQueues;

TEST(SlotQueues, ABatchIsCopiedAndComesBack) {
  SmallQueues small;
  OutputSlot& output = small.add_output();
  HostSlot& host = small.plan();
  EXPECT_EQ(host.state, HostState::planned);
  EXPECT_EQ(small.next_made().host, nullptr) << "nothing is made yet";
  small.make(host, 0, 2);
  EXPECT_EQ(small.next_made().micro_batch, 0U);

  ASSERT_EQ(small.queues->wait_for_output(0), &output);
  EXPECT_EQ(output.state, OutputSlotState::filling);
  output.plan = host.plan;
  small.queues->micro_batch_enqueued(output, host, 0, now(), 10);
  EXPECT_EQ(output.state, OutputSlotState::ready);
  EXPECT_EQ(error_of([&] { (void)small.queues->hand_out({.timeout = 0ns}); }).code(),
            ErrorCode::timeout)
      << "the second micro-batch is not on its way";
  ASSERT_EQ(small.queues->hand_out({.in_micro_batches = true}), &output);
  EXPECT_EQ(output.state, OutputSlotState::live);

  small.make(host, 2, 4);
  EXPECT_EQ(small.next_made().micro_batch, 1U);
  small.queues->micro_batch_enqueued(output, host, 1, now(), 20);
  small.queues->leave(host);
  EXPECT_EQ(host.state, HostState::leaving);
  std::vector<HostSlot*> leaving;
  ASSERT_TRUE(small.queues->wait_for_leaving(leaving));
  EXPECT_THAT(leaving, ::testing::ElementsAre(&host));
  small.queues->free_host(host);
  EXPECT_EQ(host.state, HostState::free);

  EXPECT_EQ(small.queues->position().position, 4U);
  small.queues->release(output);
  EXPECT_EQ(output.state, OutputSlotState::free);
  EXPECT_EQ(small.queues->wait_for_output(1), &output);
}

TEST(SlotQueues, ABatchInPlaceKeepsItsHostSlotUntilItIsLetGo) {
  SmallQueues small;
  OutputSlot& output = small.add_output(small.queues->hosts()[0].get());
  HostSlot& host = small.send(output, false);
  ASSERT_EQ(small.queues->hand_out({}), &output);
  EXPECT_EQ(host.state, HostState::planned);
  small.queues->release(output);
  EXPECT_EQ(output.state, OutputSlotState::free);
  EXPECT_EQ(host.state, HostState::leaving);
  small.queues->free_host(host);
  EXPECT_EQ(host.state, HostState::free);
}

TEST(SlotQueues, ABatchLetGoEarlyIsFreeWithItsLastMicroBatch) {
  SmallQueues small;
  OutputSlot& output = small.add_output(small.queues->hosts()[0].get());
  HostSlot& host = small.plan();
  small.make(host, 0, 4);
  small.queues->begin_filling(output);
  (void)small.next_made();
  small.queues->micro_batch_enqueued(output, host, 0, now(), 0);
  small.queues->release(*small.queues->hand_out({.in_micro_batches = true}));
  EXPECT_EQ(output.state, OutputSlotState::returned);
  (void)small.next_made();
  small.queues->micro_batch_enqueued(output, host, 1, now(), 0);
  EXPECT_EQ(output.state, OutputSlotState::free);
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

TEST(SlotQueues, TheUploadThreadSleepsWhileBatchesAreReleased) {
  constexpr int batches = 30;
  SmallQueues small;
  for (int batch = 0; batch < batches; ++batch)
    small.queues->free_host(small.send(small.add_output(), true));
  (void)small.plan();  // and never makes it
  auto upload_thread = std::async(std::launch::async, [&] {
    return sleeps_in([&] { EXPECT_FALSE(small.queues->next_made(now(), now() + patience)); });
  });
  for (int batch = 0; batch < batches; ++batch) {
    std::this_thread::sleep_for(2ms);
    small.queues->release(*small.queues->hand_out({}));
  }
  small.queues->close();
  EXPECT_LT(upload_thread.get(), batches / 3);
}

TEST(SlotQueues, WhoWaitsForABatchSleepsUntilAllOfItIsThere) {
  constexpr std::size_t parts = 30;
  SmallQueues small({.micro_batches = {parts, parts}});
  OutputSlot& output = small.add_output();
  HostSlot& host = small.plan(parts);
  small.make(host, 0, parts);
  small.queues->begin_filling(output);
  auto trainer = std::async(std::launch::async, [&] {
    return sleeps_in([&] { EXPECT_EQ(small.queues->hand_out({}), &output); });
  });
  for (std::size_t part = 0; part < parts; ++part) {
    std::this_thread::sleep_for(2ms);
    (void)small.next_made();
    small.queues->micro_batch_enqueued(output, host, part, now(), 0);
  }
  EXPECT_LT(trainer.get(), static_cast<long>(parts / 3));
}

TEST(SlotQueues, CallsInAWrongStateAreInternalErrors) {
  struct Wrong {
    const char* call;
    const char* state;
    std::function<void(SmallQueues&, HostSlot&, OutputSlot&)> make;
  };
  const std::vector<Wrong> all{
      {"planned", "free",
       [](SmallQueues& s, HostSlot& h, OutputSlot&) { s.queues->planned(h, now(), 1); }},
      {"leave", "free", [](SmallQueues& s, HostSlot& h, OutputSlot&) { s.queues->leave(h); }},
      {"leave", "planned",
       [](SmallQueues& s, HostSlot&, OutputSlot&) {
         HostSlot& host = s.plan();
         s.make(host, 0, 4);
         (void)s.next_made();
         s.queues->leave(host);
       }},
      {"free_host", "free",
       [](SmallQueues& s, HostSlot& h, OutputSlot&) { s.queues->free_host(h); }},
      {"sample_made", "planning",
       [](SmallQueues& s, HostSlot&, OutputSlot&) {
         s.queues->sample_made(*s.queues->take_free(), 0);
       }},
      {"sample_made", "planned",
       [](SmallQueues& s, HostSlot&, OutputSlot&) {
         HostSlot& host = s.plan();
         s.make(host, 0, 2);
         s.queues->sample_made(host, 0);
       }},
      {"micro_batch_enqueued", "free",
       [](SmallQueues& s, HostSlot&, OutputSlot& output) {
         HostSlot& host = s.plan();
         s.make(host, 0, 4);
         (void)s.next_made();
         s.queues->micro_batch_enqueued(output, host, 0, now(), 0);
       }},
      {"micro_batch_enqueued", "planned",
       [](SmallQueues& s, HostSlot&, OutputSlot& output) {
         HostSlot& host = s.plan();
         s.queues->begin_filling(output);
         s.queues->micro_batch_enqueued(output, host, 0, now(), 0);
       }},
      {"micro_batch_enqueued", "ready",
       [](SmallQueues& s, HostSlot&, OutputSlot& output) {
         HostSlot& host = s.send(output, false);
         s.queues->micro_batch_enqueued(output, host, 1, now(), 0);
       }},
      {"begin_filling", "filling",
       [](SmallQueues& s, HostSlot&, OutputSlot& output) {
         s.queues->begin_filling(output);
         s.queues->begin_filling(output);
       }},
      {"release", "free",
       [](SmallQueues& s, HostSlot&, OutputSlot& output) { s.queues->release(output); }},
      {"use", "free",
       [](SmallQueues& s, HostSlot&, OutputSlot& output) {
         HostStream stream;
         s.queues->use(output, stream);
       }},
      {"wait_for_micro_batch", "free",
       [](SmallQueues& s, HostSlot&, OutputSlot& output) {
         s.queues->wait_for_micro_batch(output, 0);
       }},
      {"micro_batch_taken", "ready", [](SmallQueues& s, HostSlot&, OutputSlot& output) {
         s.send(output, true);
         s.queues->micro_batch_taken(output, 0, now(), now());
       }}};
  for (const Wrong& wrong : all) {
    SCOPED_TRACE(std::string(wrong.call) + ", " + wrong.state);
    SmallQueues small;
    OutputSlot& output = small.add_output();
    const Error error = error_of([&] { wrong.make(small, *small.queues->hosts()[0], output); });
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_THAT(error.what(), HasSubstr(std::string("::") + wrong.call + " "));
    EXPECT_THAT(error.what(), HasSubstr(std::string("that is ") + wrong.state));
  }
}

// If the workers' count alone decided, the slot could be used again before the worker that counted
// last has reported.
TEST(SlotQueues, AMicroBatchIsMadeOnlyWhenAWorkerHasSaidSo) {
  SmallQueues small;
  HostSlot& host = small.plan();
  host.unmade[0].store(0);
  EXPECT_EQ(small.next_made().host, nullptr);
  host.unmade[0].store(1);
  small.make(host, 1, 2);
  EXPECT_EQ(small.next_made().host, &host);
}

TEST(SlotQueues, MicroBatchesWithoutSamplesAreMadeAtOnce) {
  SmallQueues small;
  HostSlot& host = small.plan(2);
  small.make(host, 0, 2);
  EXPECT_EQ(small.next_made().micro_batch, 0U);
  EXPECT_EQ(small.next_made().micro_batch, 1U);
  EXPECT_EQ(small.plan(0).micro_batches_unmade, 0U);
}

TEST(SlotQueues, EndsBehindTheLastBatch) {
  SmallQueues small({.micro_batches = {4, 1}, .end = 1});
  OutputSlot& output = small.add_output();
  small.send(output, true);
  EXPECT_EQ(small.queues->take_free(), nullptr) << "one batch was all";
  EXPECT_EQ(small.queues->hand_out({}), &output);
  EXPECT_EQ(small.queues->hand_out({}), nullptr);
}

TEST(SlotQueues, SaysThatLiveBatchesHoldEverySlot) {
  SmallQueues small;
  small.queues->set_words({"device", "device_slots"});
  small.send(small.add_output(), true);
  (void)small.queues->hand_out({});
  const Error exhausted = error_of([&] { (void)small.queues->hand_out({}); });
  EXPECT_EQ(exhausted.code(), ErrorCode::slots_exhausted);
  EXPECT_THAT(exhausted.what(), HasSubstr("1 live batches hold every device slot"));
  const Error late = error_of([&] { (void)small.queues->hand_out({.timeout = 5ms}); });
  EXPECT_EQ(late.code(), ErrorCode::timeout);
  EXPECT_THAT(late.what(), HasSubstr("still after 5 ms"));
  EXPECT_THROW((void)small.queues->hand_out({.timeout = 5ms}), SlotsHeld);
}

TEST(SlotQueues, ATimeoutWithAFreeSlotIsOfAnotherType) {
  SmallQueues small;
  small.add_output();
  try {
    (void)small.queues->hand_out({.timeout = 5ms});
    ADD_FAILURE() << "it gave a batch";
  } catch (const SlotsHeld& held) {
    ADD_FAILURE() << held.what();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
  }
}

TEST(SlotQueues, ClosingEndsEveryWait) {
  SmallQueues small;
  OutputSlot& output = small.add_output();
  HostSlot& host = small.plan();
  small.make(host, 0, 2);
  (void)small.next_made();
  ASSERT_EQ(small.queues->wait_for_output(0), &output);
  small.queues->micro_batch_enqueued(output, host, 0, now(), 0);
  (void)small.queues->hand_out({.in_micro_batches = true});
  (void)small.plan();
  const auto run = [](auto function) { return std::async(std::launch::async, function); };
  SlotQueues& queues = *small.queues;
  auto upload_thread =
      run([&queues] { return !queues.next_made(now(), SlotQueues::Clock::time_point::max()); });
  auto delivery = run([&queues] { return queues.wait_for_output(1) == nullptr; });
  auto plan_recycle_thread = run([&queues] {
    std::vector<HostSlot*> leaving;
    return !queues.wait_for_leaving(leaving);
  });
  auto trainer = run([&queues] {
    return error_of([&] { (void)queues.hand_out({.timeout = patience}); }).code() ==
           ErrorCode::stopped;
  });
  auto in_micro_batches = run([&queues, &output] {
    return error_of([&] { queues.wait_for_micro_batch(output, 1); }).code() == ErrorCode::stopped;
  });
  std::this_thread::sleep_for(20ms);
  queues.close();
  for (auto* waiting :
       {&upload_thread, &delivery, &plan_recycle_thread, &trainer, &in_micro_batches}) {
    ASSERT_EQ(waiting->wait_for(patience), std::future_status::ready);
    EXPECT_TRUE(waiting->get());
  }
  EXPECT_FALSE(queues.begin_sample());
}

TEST(SlotQueues, KeepsTheFirstError) {
  SmallQueues small;
  const auto fail = [&small](const std::exception& error, const char* stage) {
    try {
      throw std::runtime_error(error.what());
    } catch (...) {
      small.queues->fail(stage);
    }
  };
  fail(std::runtime_error("first"), "make");
  fail(std::runtime_error("second"), "upload");
  const Error error = error_of([&] { small.queues->throw_if_closed(); });
  EXPECT_STREQ(error.what(), "make failed: first");
  EXPECT_EQ(error.stage(), "make");
}

TEST(SlotQueues, ForbidsBlockingCallsFromABatchOn) {
  SmallQueues small({.micro_batches = {4, 1}, .forbids_blocking_from = 1});
  small.send(small.add_output(), true);
  EXPECT_FALSE(small.queues->forbids_blocking());
  (void)small.queues->hand_out({});
  EXPECT_TRUE(small.queues->forbids_blocking());
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
  slots.outputs.push_back(std::make_unique<OutputSlot>());
  OutputSlot& output = *slots.outputs.front();
  output.memory = told(freed);
  output.uses.push_back({&stream, device->make_event()});
  output.used = 1;
  stream.launch([&gate] { (void)gate.pass(); });
  stream.record(*output.uses.front().done);

  EXPECT_FALSE(slots.wait_for_uses(now() + 5ms));
  free_when_unused(std::move(slots));
  EXPECT_EQ(is_freed.wait_for(20ms), std::future_status::timeout);
  gate.open();
  EXPECT_EQ(is_freed.wait_for(patience), std::future_status::ready);
}

TEST(Slots, AreFreedAtOnceIfNothingUsesThem) {
  std::promise<void> freed;
  std::future<void> is_freed = freed.get_future();
  Slots slots{std::make_shared<HostDevice>()};
  slots.outputs.push_back(std::make_unique<OutputSlot>());
  slots.outputs.front()->memory = told(freed);
  free_when_unused(std::move(slots));
  EXPECT_EQ(is_freed.wait_for(0s), std::future_status::ready);
}

}  // namespace
}  // namespace millrace
