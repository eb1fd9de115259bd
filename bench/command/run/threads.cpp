// SPDX-License-Identifier: Apache-2.0
#include "command/run/threads.h"

#include <fmt/core.h>
#include <millrace/error.h>

#include <system_error>
#include <thread>
#include <vector>

namespace millrace::cli {

void run_on_threads(std::size_t count,
                    const std::function<void(std::size_t number, const std::stop_token&)>& work) {
  std::vector<std::jthread> threads;
  threads.reserve(count);
  try {
    while (threads.size() < count)
      threads.emplace_back(
          [&work, number = threads.size()](const std::stop_token& stop) { work(number, stop); });
  } catch (const std::system_error& error) {
    const std::size_t started = threads.size();
    for (std::jthread& thread : threads) thread.request_stop();
    threads.clear();
    throw Error(ErrorCode::io, fmt::format("thread {} of {} cannot be started: {}; take fewer "
                                           "workers",
                                           started + 1, count, error.what()));
  }
  for (std::jthread& thread : threads) thread.join();
}

}  // namespace millrace::cli
