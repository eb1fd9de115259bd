// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/report.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <stdexcept>
#include <string>
#include <string_view>

/// Returns the CRC-32C (Castagnoli) of the bytes.
inline std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

/// A callback of `millrace::measure::ReportFeed` that writes scalars for TensorBoard. Each report
/// is one event at the number of samples until then. The file is an event file: TFRecords of
/// protocol buffers of type `tensorflow.Event`.
class TensorBoardFile {
 public:
  /// Makes the folder if it is missing, and a new event file in it. Throws `std::runtime_error` if
  /// the file cannot be written.
  explicit TensorBoardFile(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    // TensorBoard requires "tfevents" in the name, and reads the file with the latest name.
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    path_ = folder / ("events.out.tfevents." + std::to_string(now / std::chrono::microseconds(1)) +
                      '.' + std::to_string(getpid()) + ".millrace");
    file_.open(path_, std::ios::binary | std::ios::trunc);
    write(event(0) + text(3, "brain.Event:2"));
  }

  /// Throws `std::runtime_error` if the file cannot be written.
  void operator()(const millrace::Report& delta) {
    samples_ += delta.samples;
    const double seconds = delta.seconds > 0 ? delta.seconds : 1;
    std::string summary;
    const auto scalar = [&](const std::string& tag, double value) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      summary += text(1, text(1, tag) + key(2, 5) + fixed(bits));
    };
    scalar("millrace/samples_per_second", static_cast<double>(delta.samples) / seconds);
    scalar("millrace/stall_share", delta.stall.total_ms / 1000 / seconds);
    scalar("millrace/worker_utilization", delta.worker_utilization);
    scalar("millrace/ready_batches", delta.ready_batches);
    scalar("millrace/bad_records", static_cast<double>(delta.bad_records));
    for (const millrace::StageReport& stage : delta.stages)
      scalar("millrace/occupancy/" + stage.name, stage.occupancy);
    write(event(samples_) + text(5, summary));
  }

 private:
  // Parts of a protocol buffer. A key is a field's number and wire type.
  static std::string varint(std::uint64_t value) {
    std::string bytes;
    for (; value >= 128; value >>= 7U) bytes += static_cast<char>(value | 128U);
    return bytes + static_cast<char>(value);
  }
  static std::string key(std::uint64_t field, std::uint64_t wire_type) {
    return varint(field << 3U | wire_type);
  }
  static std::string text(std::uint64_t field, const std::string& bytes) {
    return key(field, 2) + varint(bytes.size()) + bytes;
  }
  /// The value's bytes, little-endian.
  template <typename Value>
  static std::string fixed(Value value) {
    std::string bytes;
    for (std::size_t n = 0; n < sizeof value; ++n) bytes += static_cast<char>(value >> 8 * n);
    return bytes;
  }
  /// The beginning of an event: its time and step.
  static std::string event(std::uint64_t step) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    return key(1, 1) + fixed(std::bit_cast<std::uint64_t>(now.count())) + key(2, 0) + varint(step);
  }

  /// Appends a TFRecord: length, checksum of the length, bytes, checksum of the bytes.
  void write(const std::string& bytes) {
    const auto masked = [](std::string_view of) {
      return fixed(std::rotr(crc32c(of), 15) + 0xA282EAD8U);
    };
    const std::string length = fixed(std::uint64_t{bytes.size()});
    file_ << length << masked(length) << bytes << masked(bytes) << std::flush;
    if (!file_) throw std::runtime_error("cannot write " + path_.string());
  }

  std::filesystem::path path_;
  std::ofstream file_;
  std::uint64_t samples_ = 0;
};
