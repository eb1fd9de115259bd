// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch_delivery.h"

#include <gtest/gtest.h>
#include <millrace/host_device.h>

#include <cstring>
#include <memory>
#include <optional>

#include "loader/pipeline/slots/small_queues.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::Gate;
using testing::now;
using testing::OpensAtEnd;
using testing::SmallQueues;

/// Plans a batch of four samples with records 10 to 13, and makes its first `samples`.
HostSlot& made(SmallQueues& small, std::size_t samples) {
  HostSlot& host = small.plan();
  for (std::size_t sample = 0; sample < 4; ++sample) host.records.indices[sample] = 10 + sample;
  small.make(host, 0, samples);
  return host;
}

TEST(InPlace, TheHostSlotItselfIsHandedOut) {
  SmallQueues small;
  InPlaceDelivery delivery(small.queues, nullptr);
  HostSlot& host = made(small, 2);
  delivery.deliver(host, small.next_made().micro_batch);
  OutputSlot* output = small.queues->hand_out({.in_micro_batches = true});
  ASSERT_NE(output, nullptr);
  EXPECT_EQ(output->base, host.memory.data());
  EXPECT_TRUE(output->copied.empty());
  EXPECT_EQ(output->records.indices[1], 11U);
  EXPECT_EQ(output->records.indices.size(), 4U);
  small.make(host, 2, 4);
  delivery.deliver(host, small.next_made().micro_batch);
  EXPECT_EQ(output->records.indices[3], 13U);
  EXPECT_EQ(output->micro_batches_enqueued, 2U);
  EXPECT_EQ(delivery.staging_bytes(), 0U);
}

TEST(InPlace, TheSlotHasLeftWhenTheTrainersStreamsAreDoneWithIt) {
  SmallQueues small;
  InPlaceDelivery delivery(small.queues, nullptr);
  HostSlot& host = made(small, 4);
  for (std::size_t number = 0; number < 2; ++number)
    delivery.deliver(host, small.next_made().micro_batch);
  OutputSlot& output = *small.queues->hand_out({});
  Gate gate;
  HostStream stream;
  const OpensAtEnd opens(gate);
  EXPECT_FALSE(small.queues->use(output, stream)) << "there is no event for it yet";
  EXPECT_TRUE(small.queues->use(output, stream, small.device->make_event()));
  EXPECT_TRUE(small.queues->use(output, stream)) << "it is known now";
  EXPECT_EQ(output.used, 1U);
  stream.launch([&gate] { EXPECT_TRUE(gate.pass()); });
  stream.record(*output.uses.front().done);
  small.queues->release(output);
  EXPECT_EQ(host.state, HostState::leaving);
  EXPECT_FALSE(delivery.wait_until_unused(host, 5ms));
  EXPECT_FALSE(small.queues->wait_for_uses(now() + 5ms));
  gate.open();
  EXPECT_TRUE(delivery.wait_until_unused(host, testing::patience));
  EXPECT_TRUE(small.queues->wait_for_uses(now()));
}

/// Batches of eight bytes a sample, copied to one device slot.
class Copies : public ::testing::TestWithParam<std::size_t> {
 protected:
  static SampleSpec spec() { return SampleSpec({{"bytes", DType::uint8, {64}, false}}); }
  SlotLayout layout(std::size_t micro_batches) const { return {spec(), {4, micro_batches}}; }

  SmallQueues small{{.micro_batches = {4, GetParam()}},
                    std::make_shared<HostDevice>(HostDeviceOptions{.copies = true})};
  CopyDelivery delivery{
      small.queues, *small.device,
      std::make_unique<Upload>(small.device, layout(GetParam()), layout(1),
                               BatchFields(spec(), std::nullopt), std::nullopt, 2),
      1, layout(1).bytes()};
};
INSTANTIATE_TEST_SUITE_P(MicroBatches, Copies, ::testing::Values(1, 2));

TEST_P(Copies, AMicroBatchIsCopiedToTheDeviceSlot) {
  for (const auto& host : small.queues->hosts())
    host->memory = small.device->allocate_host(layout(GetParam()).bytes(), NumaNode{});
  HostSlot& host = made(small, 4);
  std::memset(host.memory.data(), 42, host.memory.bytes());
  for (std::size_t number = 0; number < GetParam(); ++number)
    delivery.deliver(host, small.next_made().micro_batch);
  EXPECT_EQ(host.state, HostState::leaving);
  ASSERT_TRUE(delivery.wait_until_unused(host, testing::patience));
  EXPECT_TRUE(host.copies.back().ended_at);
  small.queues->free_host(host);

  OutputSlot& output = *small.queues->hand_out({});
  ASSERT_TRUE(output.copied.back()->wait(testing::patience));
  EXPECT_NE(output.base, host.memory.data());
  for (std::size_t byte = 0; byte < 4 * 64; ++byte)
    ASSERT_EQ(output.base[byte], std::byte{42}) << byte;
  EXPECT_EQ(output.records.indices[3], 13U);
  EXPECT_TRUE(delivery.drain(now() + testing::patience));
  EXPECT_EQ(delivery.staging_bytes() > 0, GetParam() > 1);
}

TEST_P(Copies, NothingIsDeliveredOnceTheQueuesAreClosed) {
  for (const auto& host : small.queues->hosts())
    host->memory = small.device->allocate_host(layout(GetParam()).bytes(), NumaNode{});
  HostSlot& host = made(small, 4);
  (void)small.next_made();
  ASSERT_NE(small.queues->wait_for_output(0), nullptr) << "the only one";
  small.queues->close();
  delivery.deliver(host, 0);
  EXPECT_EQ(host.state, HostState::planned);
}

}  // namespace
}  // namespace millrace
