// SPDX-License-Identifier: Apache-2.0
#include "c/device.h"

#include <millrace/error.h>
#include <millrace/host_device.h>

#include <charconv>
#include <string>
#include <string_view>

namespace millrace::c {

std::shared_ptr<Device> open_device(const char* name) {
  const std::string_view text = name == nullptr ? "host" : name;
  if (text == "host") return std::make_shared<HostDevice>();
  constexpr std::string_view cuda = "cuda:";
  int ordinal = -1;
  if (text.starts_with(cuda)) {
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + cuda.size(), end, ordinal);
    if (problem == std::errc() && stop == end && ordinal >= 0) return open_cuda(ordinal);
  }
  throw Error(ErrorCode::invalid_argument,
              "the device is \"" + std::string(text) + "\", must be \"host\" or \"cuda:N\"");
}

std::shared_ptr<Stream> stream_of(const DeviceId& device, std::uintptr_t stream) {
  if (stream == 0) return nullptr;
  if (device.kind != DeviceId::Kind::cuda)
    throw Error(ErrorCode::invalid_argument,
                "the stream is " + std::to_string(stream) +
                    ", but the batches are on the host, which has none: it must be 0");
  return cuda_stream(device.index, stream);
}

}  // namespace millrace::c
