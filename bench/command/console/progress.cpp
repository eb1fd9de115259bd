// SPDX-License-Identifier: Apache-2.0
#include "command/console/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace millrace::cli {
namespace {

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

double share(const ProgressState& state) {
  return state.total == 0 ? 1 : static_cast<double>(state.done) / static_cast<double>(state.total);
}

int columns_of(std::FILE* stream) {
  winsize size{};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_text(const ProgressState& state) {
  std::string text =
      fmt::format("{} of {} ({:.0f}%)", state.done, state.total, std::floor(100 * share(state)));
  if (state.done == 0 || state.seconds <= 0) return text;
  const double rate = static_cast<double>(state.done) / state.seconds;
  text += fmt::format(", {:.0f} images/s, {:.1f} MB/s", rate,
                      static_cast<double>(state.bytes) / 1e6 / state.seconds);
  return text + ", " + clock_text(static_cast<double>(state.total - state.done) / rate) + " left";
}

std::string progress_bar(const ProgressState& state, int columns) {
  constexpr int widest = 40;
  constexpr int narrowest = 5;
  const std::string text = progress_text(state);
  const auto room = static_cast<std::size_t>(std::max(0, columns));
  if (text.size() + narrowest + 3 > room) return text.substr(0, room);
  const int width = std::min(widest, static_cast<int>(room - text.size()) - 3);
  const auto filled = static_cast<std::size_t>(share(state) * width);
  return "[" + std::string(filled, '#') +
         std::string(static_cast<std::size_t>(width) - filled, ' ') + "] " + text;
}

Progress::Progress(std::FILE* stream, std::string verb, std::uint64_t total)
    : stream_(stream), verb_(std::move(verb)), terminal_(isatty(fileno(stream)) == 1) {
  state_.total = total;
}

Progress::~Progress() {
  if (line_open_) std::fputc('\n', stream_);
}

void Progress::advance(std::uint64_t bytes) {
  ++state_.done;
  state_.bytes += bytes;
  const Clock::time_point now = Clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000);
  if (now - shown_ >= pause || (terminal_ && state_.done == state_.total)) show(now);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::show(Clock::time_point now) {
  state_.seconds = seconds();
  shown_ = now;
  std::string line = fmt::format("{} {}\n", verb_, progress_text(state_));
  if (terminal_) {
    const int columns = columns_of(stream_) - 1;
    line = fmt::format("\r{:<{}}", progress_bar(state_, columns), columns);
    line_open_ = true;
  }
  std::fputs(line.c_str(), stream_);
  std::fflush(stream_);
}

}  // namespace millrace::cli
