// SPDX-License-Identifier: Apache-2.0
#include "pipeline/outlet.h"

#include <gtest/gtest.h>
#include <millrace/host_device.h>

#include <cstring>
#include <memory>
#include <optional>

#include "loader/pipeline/road/small_road.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using testing::Gate;
using testing::now;
using testing::OpensAtEnd;
using testing::SmallRoad;

/// Plans a batch of four samples with records 10 to 13, and makes its first `samples`.
HostSlot& made(SmallRoad& small, std::size_t samples) {
  HostSlot& host = small.plan();
  for (std::size_t sample = 0; sample < 4; ++sample) host.records.indices[sample] = 10 + sample;
  small.make(host, 0, samples);
  return host;
}

TEST(InPlace, TheHostSlotItselfIsHandedOut) {
  SmallRoad small;
  InPlaceOutlet outlet(small.road, nullptr);
  HostSlot& host = made(small, 2);
  outlet.pass_on(host, small.next_made().micro_batch);
  Lease* lease = small.road->hand_out({.in_parts = true});
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->base, host.memory.data());
  EXPECT_TRUE(lease->copied.empty());
  EXPECT_EQ(lease->records.indices[1], 11U);
  EXPECT_EQ(lease->records.indices.size(), 4U);
  small.make(host, 2, 4);
  outlet.pass_on(host, small.next_made().micro_batch);
  EXPECT_EQ(lease->records.indices[3], 13U);
  EXPECT_EQ(lease->on_way, 2U);
  EXPECT_EQ(outlet.staging_bytes(), 0U);
}

TEST(InPlace, TheSlotHasLeftWhenTheTrainersStreamsAreDoneWithIt) {
  SmallRoad small;
  InPlaceOutlet outlet(small.road, nullptr);
  HostSlot& host = made(small, 4);
  for (std::size_t number = 0; number < 2; ++number)
    outlet.pass_on(host, small.next_made().micro_batch);
  Lease& lease = *small.road->hand_out({});
  Gate gate;
  HostStream stream;
  const OpensAtEnd opens(gate);
  EXPECT_FALSE(small.road->use(lease, stream)) << "there is no event for it yet";
  EXPECT_TRUE(small.road->use(lease, stream, small.device->make_event()));
  EXPECT_TRUE(small.road->use(lease, stream)) << "it is known now";
  EXPECT_EQ(lease.used, 1U);
  stream.launch([&gate] { EXPECT_TRUE(gate.pass()); });
  stream.record(*lease.uses.front().done);
  small.road->release(lease);
  EXPECT_EQ(host.state, HostState::leaving);
  EXPECT_FALSE(outlet.wait_until_left(host, 5ms));
  EXPECT_FALSE(small.road->wait_for_uses(now() + 5ms));
  gate.open();
  EXPECT_TRUE(outlet.wait_until_left(host, testing::patience));
  EXPECT_TRUE(small.road->wait_for_uses(now()));
}

/// Batches of eight bytes a sample, copied to one device slot.
class Copies : public ::testing::TestWithParam<std::size_t> {
 protected:
  static SampleSpec spec() { return SampleSpec({{"bytes", DType::uint8, {64}, false}}); }
  SlotLayout layout(std::size_t micro_batches) const { return {spec(), {4, micro_batches}}; }

  SmallRoad small{{.micro_batches = {4, GetParam()}},
                  std::make_shared<HostDevice>(HostDeviceOptions{.copies = true})};
  CopyOutlet outlet{small.road, *small.device,
                    std::make_unique<Upload>(small.device, layout(GetParam()), layout(1),
                                             BatchFields(spec(), std::nullopt), std::nullopt, 2),
                    1, layout(1).bytes()};
};
INSTANTIATE_TEST_SUITE_P(MicroBatches, Copies, ::testing::Values(1, 2));

TEST_P(Copies, AMicroBatchIsCopiedToTheDeviceSlot) {
  for (const auto& host : small.road->hosts())
    host->memory = small.device->allocate_host(layout(GetParam()).bytes(), NumaNode{});
  HostSlot& host = made(small, 4);
  std::memset(host.memory.data(), 42, host.memory.bytes());
  for (std::size_t number = 0; number < GetParam(); ++number)
    outlet.pass_on(host, small.next_made().micro_batch);
  EXPECT_EQ(host.state, HostState::leaving);
  ASSERT_TRUE(outlet.wait_until_left(host, testing::patience));
  EXPECT_TRUE(host.copies.back().ended_at);
  small.road->left(host);

  Lease& lease = *small.road->hand_out({});
  ASSERT_TRUE(lease.copied.back()->wait(testing::patience));
  EXPECT_NE(lease.base, host.memory.data());
  for (std::size_t byte = 0; byte < 4 * 64; ++byte)
    ASSERT_EQ(lease.base[byte], std::byte{42}) << byte;
  EXPECT_EQ(lease.records.indices[3], 13U);
  EXPECT_TRUE(outlet.drain(now() + testing::patience));
  EXPECT_EQ(outlet.staging_bytes() > 0, GetParam() > 1);
}

TEST_P(Copies, NothingGoesOnItsWayOnAClosedRoad) {
  for (const auto& host : small.road->hosts())
    host->memory = small.device->allocate_host(layout(GetParam()).bytes(), NumaNode{});
  HostSlot& host = made(small, 4);
  (void)small.next_made();
  ASSERT_NE(small.road->wait_for_lease(0), nullptr) << "the only one";
  small.road->close();
  outlet.pass_on(host, 0);
  EXPECT_EQ(host.state, HostState::planned);
}

}  // namespace
}  // namespace millrace
