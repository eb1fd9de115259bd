// SPDX-License-Identifier: Apache-2.0
#include "command/run/ceiling.h"

#include <fmt/core.h>
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/error.h>
#include <millrace/image.h>
#include <millrace/sampler.h>
#include <turbojpeg.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "command/run/threads.h"
#include "measure/machine/process.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Limits for the length of a window. Within these limits it is long enough for
/// `images_per_thread`.
constexpr std::chrono::milliseconds shortest_window{200};
constexpr std::chrono::milliseconds longest_window{1600};
constexpr std::uint64_t images_per_thread = 25;
/// Minimum number of pairs. Further pairs are measured until both intervals are within this share
/// of their medians, or until the time is over.
constexpr std::size_t fewest_pairs = 20;
constexpr double well_known = 0.02;

/// Result of a window; empty if no image was finished in it. An image that is not finished at the
/// window's end counts only in the processor time.
struct Window {
  std::uint64_t images = 0;
  double per_second = 0;
  double cpu_seconds_each = 0;
};

Window window_of(std::uint64_t in_time, Clock::duration length, std::uint64_t all,
                 double cpu_seconds) {
  if (in_time == 0) return {};
  return {in_time, static_cast<double>(in_time) / std::chrono::duration<double>(length).count(),
          cpu_seconds / static_cast<double>(all)};
}

/// The pipeline, paused between its windows.
class LoaderSide {
 public:
  explicit LoaderSide(const BenchSettings& settings)
      : settings_(settings),
        runtime_(*settings.pipeline.runtime),
        workers_(settings.pipeline.runtime->concurrency()),
        trainer_(settings.device->make_trainer_stream({})),
        pipeline_(make_bench_pipeline(settings)) {
    pause();
  }
  ~LoaderSide() { runtime_.set_concurrency(workers_); }
  LoaderSide(const LoaderSide&) = delete;
  LoaderSide& operator=(const LoaderSide&) = delete;

  /// Position in the order where the next window begins.
  std::uint64_t position() const {
    const std::uint64_t epoch = pipeline_.batches_per_epoch() * settings_.pipeline.batch_size;
    const std::uint64_t records = settings_.dataset->size();
    return made() / epoch * records + made() % epoch % records;
  }

  Window run(Clock::duration length) {
    const std::uint64_t made_before = made();
    const double cpu_before = processor_times().process_seconds;
    const Clock::time_point begin = Clock::now();
    runtime_.set_concurrency(workers_);
    while (Clock::now() < begin + length) take_one(begin + length - Clock::now());
    const std::uint64_t in_time = made() - made_before;
    const Clock::duration taken = Clock::now() - begin;
    pause();
    return window_of(in_time, taken, made() - made_before,
                     processor_times().process_seconds - cpu_before);
  }

 private:
  std::uint64_t made() const { return pipeline_.report().samples_made; }

  bool take_one(std::chrono::nanoseconds timeout) {
    try {
      return static_cast<bool>(pipeline_.next(trainer_->stream(), timeout));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout) throw;
      return false;
    }
  }

  /// Waits until all batches are taken and the process uses hardly any processor time.
  void pause() {
    constexpr std::chrono::milliseconds look{20};
    constexpr double next_to_nothing = 0.001;  // seconds
    runtime_.set_concurrency(0);
    const Clock::time_point begin = Clock::now();
    for (double used = 1; used > next_to_nothing && Clock::now() < begin + longest_window;) {
      while (take_one(std::chrono::milliseconds(1))) continue;
      trainer_->stream().synchronize();
      const double before = processor_times().process_seconds;
      std::this_thread::sleep_for(look);
      used = processor_times().process_seconds - before;
    }
  }

  const BenchSettings& settings_;
  Runtime& runtime_;
  const unsigned workers_;
  std::unique_ptr<TrainerStream> trainer_;
  Pipeline pipeline_;
};

/// Returns the reason why T does not decode images of this kind; empty if it does.
std::string why_not_decoded(ImageKind kind) {
  if (kind == ImageKind::jpeg || kind == ImageKind::coefficients || kind == ImageKind::unknown)
    return {};
  return fmt::format("a {} image; the ceiling T is the rate of libjpeg-turbo, so of JPEGs alone",
                     to_string(kind));
}

/// T, the reference decode: whole images to RGB by libjpeg-turbo's simple interface, with handle
/// and buffer reused. Not thread-safe.
class TurboJpeg {
 public:
  TurboJpeg() : handle_(tjInitDecompress()) {
    if (handle_ == nullptr) throw Error(ErrorCode::internal, "libjpeg-turbo gives no decompressor");
  }

  /// Throws `Error` (`bad_record`) with libjpeg-turbo's message if decoding fails, or if the image
  /// is not a JPEG.
  void decode(std::span<const std::byte> encoded) {
    if (const std::string why = why_not_decoded(image_kind(encoded)); !why.empty())
      throw Error(ErrorCode::bad_record, why);
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

/// Runs T on the same number of threads.
class ReferenceSide {
 public:
  ReferenceSide(const Dataset& dataset, std::uint64_t seed, unsigned threads)
      : sampler_(Order::shuffled(), dataset.size(), seed), readers_(threads) {
    for (Reader& reader : readers_) {
      reader.decoder = std::make_unique<TurboJpeg>();
      reader.recoder = std::make_unique<JpegRecoder>(std::make_shared<DecodeBudget>());
      reader.records = dataset.make_reader();
    }
  }

  /// Decodes the records from position `first` of the order on.
  Window run(std::uint64_t first, Clock::duration length) {
    position_.store(first, std::memory_order_relaxed);
    run_on_threads(readers_.size(), [&](std::size_t number, const std::stop_token& stop) {
      decode_for(length, readers_[number], stop);
    });
    if (error_) std::rethrow_exception(error_);
    Reader sum;
    for (const Reader& reader : readers_) {
      sum.in_time += reader.in_time;
      sum.all += reader.all;
      sum.cpu += reader.cpu;
    }
    return window_of(sum.in_time, length, sum.all, std::chrono::duration<double>(sum.cpu).count());
  }

 private:
  struct Reader {
    std::unique_ptr<TurboJpeg> decoder;
    std::unique_ptr<JpegRecoder> recoder;
    std::unique_ptr<DatasetReader> records;
    /// The JPEG file that was restored from a record of coefficients.
    std::vector<std::byte> file;
    // Counts and processor time of the last window.
    std::uint64_t in_time = 0;
    std::uint64_t all = 0;
    std::chrono::nanoseconds cpu{0};
  };

  static std::span<const std::byte> file_of(std::span<const std::byte> image, Reader& reader) {
    const Status restored = reader.recoder->restore(image, reader.file);
    if (!restored.is_ok()) throw Error(ErrorCode::bad_record, restored.reason());
    return reader.file;
  }

  void decode_for(Clock::duration length, Reader& reader, const std::stop_token& stop) {
    try {
      const std::chrono::nanoseconds cpu_before = thread_time();
      Clock::time_point end = Clock::now() + length;
      std::chrono::nanoseconds restoring{0};
      reader.in_time = reader.all = 0;
      while (Clock::now() < end && !stop.stop_requested()) {
        const std::uint64_t index = sampler_(position_.fetch_add(1, std::memory_order_relaxed));
        const Record record = reader.records->read(index);
        std::span<const std::byte> image = record["image"];
        if (image_kind(image) == ImageKind::coefficients) {
          // T measures only the decoding of the JPEG file. The time to restore the file counts in
          // no window.
          const Clock::time_point begin = Clock::now();
          const std::chrono::nanoseconds cpu_begin = thread_time();
          image = file_of(image, reader);
          end += Clock::now() - begin;
          restoring += thread_time() - cpu_begin;
        }
        reader.decoder->decode(image);
        ++reader.all;
        if (Clock::now() < end) ++reader.in_time;
      }
      reader.cpu = thread_time() - cpu_before - restoring;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
  }

  Sampler sampler_;
  std::vector<Reader> readers_;
  std::atomic<std::uint64_t> position_{0};  // a mere counter: relaxed order suffices
  std::mutex mutex_;
  std::exception_ptr error_;
};

bool is_well_known(const Spread& spread) {
  return spread.low >= (1 - well_known) * spread.median &&
         spread.high <= (1 + well_known) * spread.median;
}

}  // namespace

void check_ceiling_images(const Dataset& dataset) {
  constexpr std::uint64_t max_looked_at = 64;
  const std::uint64_t size = dataset.size();
  const std::uint64_t looked_at = std::min(size, max_looked_at);
  const std::unique_ptr<DatasetReader> reader = dataset.make_reader();
  for (std::uint64_t n = 0; n < looked_at; ++n) {
    const std::uint64_t index = size / looked_at * n;
    std::string why;
    try {
      const Record record = reader->read(index);
      if (record.has("image")) why = why_not_decoded(image_kind(record["image"]));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_record) throw;
    }
    if (!why.empty())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--ceiling: record {} of {} is {}", index, dataset.name(), why));
  }
}

CeilingResult measure_ceiling(const BenchSettings& settings, const Dataset& unchecked,
                              double max_seconds) {
  const auto most =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(max_seconds));
  const Clock::time_point begin = Clock::now();
  LoaderSide loader(settings);
  ReferenceSide reference(unchecked, settings.pipeline.seed, settings.pipeline.runtime->workers());
  Clock::duration length = shortest_window;
  while (loader.run(length).images < images_per_thread * settings.pipeline.runtime->workers() &&
         length < longest_window)
    length *= 2;
  reference.run(0, length);

  std::mt19937_64 random(settings.pipeline.seed);
  std::vector<double> rate_ratios;
  std::vector<double> cpu_ratios;
  std::vector<double> loader_rates;
  std::vector<double> reference_rates;
  CeilingResult result;
  while (result.pairs < fewest_pairs ||
         (Clock::now() < begin + most &&
          !(is_well_known(result.rate_ratio) && is_well_known(result.cpu_ratio)))) {
    const std::uint64_t first = loader.position();
    const bool loader_first = random() % 2 == 0;
    Window made = loader_first ? loader.run(length) : Window();
    const Window decoded = reference.run(first, length);
    if (!loader_first) made = loader.run(length);
    if (made.images == 0 || decoded.images == 0)
      throw Error(ErrorCode::timeout,
                  fmt::format("--ceiling: no image was made within {} ms; the images are too large "
                              "for this machine, or it is too busy",
                              std::chrono::round<std::chrono::milliseconds>(length).count()));
    rate_ratios.push_back(made.per_second / decoded.per_second);
    cpu_ratios.push_back(decoded.cpu_seconds_each / made.cpu_seconds_each);
    loader_rates.push_back(made.per_second);
    reference_rates.push_back(decoded.per_second);
    result = {spread_of(rate_ratios), spread_of(cpu_ratios), spread_of(loader_rates).median,
              spread_of(reference_rates).median, result.pairs + 1};
  }
  return result;
}

}  // namespace millrace::cli
