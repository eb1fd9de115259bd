// SPDX-License-Identifier: Apache-2.0
#include "measure/ceiling.h"

#include <millrace/error.h>
#include <millrace/sampler.h>
#include <turbojpeg.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "measure/process.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int windows = 5;
constexpr std::chrono::seconds window_length{2};

/// What was done in a window.
struct Window {
  double per_second = 0;
  double cpu_seconds_each = 0;
};

Window window_of(std::uint64_t images, Clock::duration length, double cpu_seconds) {
  if (images == 0)
    throw Error(ErrorCode::internal,
                "no image was made within a window of the ceiling measurement");
  const auto count = static_cast<double>(images);
  return {count / std::chrono::duration<double>(length).count(), cpu_seconds / count};
}

/// The pipeline, paused between its windows.
class LoaderSide {
 public:
  explicit LoaderSide(const BenchSettings& settings)
      : runtime_(*settings.runtime),
        workers_(settings.runtime->concurrency()),
        trainer_(settings.device->make_trainer_stream({})),
        pipeline_(make_bench_pipeline(settings)) {
    pause_and_drain();
  }
  ~LoaderSide() { runtime_.set_concurrency(workers_); }
  LoaderSide(const LoaderSide&) = delete;
  LoaderSide& operator=(const LoaderSide&) = delete;

  Window run() {
    const std::uint64_t made_before = pipeline_.report().samples_made;
    const double cpu_before = processor_times().process_seconds;
    const Clock::time_point begin = Clock::now();
    runtime_.set_concurrency(workers_);
    while (Clock::now() < begin + window_length) take_one(begin + window_length - Clock::now());
    const std::uint64_t made = pipeline_.report().samples_made - made_before;
    const Clock::duration length = Clock::now() - begin;
    const double cpu = processor_times().process_seconds - cpu_before;
    pause_and_drain();
    return window_of(made, length, cpu);
  }

 private:
  bool take_one(std::chrono::nanoseconds timeout) {
    try {
      return static_cast<bool>(pipeline_.next(trainer_->stream(), timeout));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout) throw;
      return false;
    }
  }

  void pause_and_drain() {
    runtime_.set_concurrency(0);
    while (take_one(std::chrono::milliseconds(200))) continue;
    trainer_->stream().synchronize();
  }

  Runtime& runtime_;
  const unsigned workers_;
  std::unique_ptr<TrainerStream> trainer_;
  Pipeline pipeline_;
};

/// The decode of T: of whole images to RGB by libjpeg-turbo's own simple interface, with handle and
/// buffer reused. Not for two threads at once.
class TurboJpeg {
 public:
  TurboJpeg() : handle_(tjInitDecompress()) {
    if (handle_ == nullptr) throw Error(ErrorCode::internal, "libjpeg-turbo gives no decompressor");
  }

  /// Throws `Error` (`bad_record`) with libjpeg-turbo's text if it fails.
  void decode(std::span<const std::byte> encoded) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(encoded.data());
    int width = 0;
    int height = 0;
    int subsampling = 0;
    int colorspace = 0;
    if (tjDecompressHeader3(handle_.get(), bytes, encoded.size(), &width, &height, &subsampling,
                            &colorspace) != 0)
      throw Error(ErrorCode::bad_record, tjGetErrorStr2(handle_.get()));
    pixels_.resize(std::max(
        pixels_.size(), static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3));
    if (tjDecompress2(handle_.get(), bytes, encoded.size(), pixels_.data(), width, 0, height,
                      TJPF_RGB, 0) != 0 &&
        tjGetErrorCode(handle_.get()) == TJERR_FATAL)
      throw Error(ErrorCode::bad_record, tjGetErrorStr2(handle_.get()));
  }

 private:
  struct Destroy {
    void operator()(void* handle) const { tjDestroy(handle); }
  };
  std::unique_ptr<void, Destroy> handle_;
  std::vector<unsigned char> pixels_;
};

/// T, on as many threads.
class ReferenceSide {
 public:
  ReferenceSide(const Dataset& dataset, std::uint64_t seed, unsigned threads)
      : sampler_(Order::shuffled(), dataset.size(), seed), readers_(threads) {
    for (Reader& reader : readers_) reader.records = dataset.make_reader();
  }

  Window run() {
    std::atomic<std::uint64_t> decoded{0};  // a count, read after the threads have ended
    const double cpu_before = processor_times().process_seconds;
    const Clock::time_point begin = Clock::now();
    std::vector<std::thread> threads;
    for (Reader& reader : readers_)
      threads.emplace_back([&] {
        decoded.fetch_add(decode_until(begin + window_length, reader), std::memory_order_relaxed);
      });
    for (std::thread& thread : threads) thread.join();
    const Clock::duration length = Clock::now() - begin;
    if (error_) std::rethrow_exception(error_);
    return window_of(decoded.load(std::memory_order_relaxed), length,
                     processor_times().process_seconds - cpu_before);
  }

 private:
  struct Reader {
    TurboJpeg decoder;
    std::unique_ptr<DatasetReader> records;
  };

  std::uint64_t decode_until(Clock::time_point end, Reader& reader) {
    std::uint64_t count = 0;
    try {
      for (; Clock::now() < end; ++count) {
        const std::uint64_t index = sampler_(position_.fetch_add(1, std::memory_order_relaxed));
        reader.decoder.decode(reader.records->read(index)["image"]);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    return count;
  }

  Sampler sampler_;
  std::vector<Reader> readers_;
  std::atomic<std::uint64_t> position_{0};  // only handed out, orders nothing
  std::mutex mutex_;
  std::exception_ptr error_;
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

}  // namespace

CeilingResult measure_ceiling(const BenchSettings& settings) {
  LoaderSide loader(settings);
  // T reads without comparing checksums, which the loader does: it is the plain decode.
  ReferenceSide reference(*open_dataset(settings.dataset->name(), {.verify_checksums = false}),
                          settings.seed, settings.runtime->workers());
  std::vector<double> rate_ratios;
  std::vector<double> cpu_ratios;
  std::vector<double> loader_rates;
  std::vector<double> reference_rates;
  for (int window = 0; window < windows; ++window) {
    const Window made = loader.run();
    const Window decoded = reference.run();
    rate_ratios.push_back(made.per_second / decoded.per_second);
    cpu_ratios.push_back(decoded.cpu_seconds_each / made.cpu_seconds_each);
    loader_rates.push_back(made.per_second);
    reference_rates.push_back(decoded.per_second);
  }
  return {spread_of(rate_ratios), spread_of(cpu_ratios), spread_of(loader_rates).median,
          spread_of(reference_rates).median};
}

}  // namespace millrace::cli
