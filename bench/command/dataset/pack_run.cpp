// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/pack_run.h"

#include <fmt/core.h>
#include <millrace/dataset.h>
#include <millrace/detail/stored_hints.h>
#include <millrace/detail/worker_pool.h>
#include <millrace/error.h>
#include <millrace/runtime.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "command/console/interrupt.h"
#include "command/console/output_file.h"
#include "command/console/progress.h"
#include "command/console/streams.h"
#include "command/dataset/images/pack_image.h"
#include "command/dataset/index_run.h"
#include "command/dataset/pack_listing.h"
#include "command/dataset/pack_source.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

/// Returns a text that distinguishes the stored forms in which one input can be packed.
const char* stored_text(StoredForm form) {
  constexpr const char* texts[] = {"", ", stored as coefficients", ", stored as JPEGs"};
  return texts[static_cast<std::size_t>(form)];
}

/// One run of the command. Workers read and check images; this thread writes them in order.
class Packing {
 public:
  explicit Packing(const PackOptions& options) : options_(options) {}
  int run();

 private:
  void check_arguments() const;
  void check_free() const;
  void open_writer();
  void tell_annotations_left_out() const;
  void take_up();
  void pack_all();
  void append(const CheckedImage& image);
  template <typename Call>
  auto read(const Call& call) const;
  bool store_index() const;
  int end_interrupted() const;
  int end_complete(const std::string& done) const;
  void report_left_out() const;
  std::string classes_text() const;
  bool is_indexed() const { return options_.index.has_value() && source_->has_images(); }
  std::string kept_text() const;
  const Listing& listing() const { return source_->listing(); }

  const PackOptions& options_;
  /// Set after the source is opened: from then on an interrupt must leave files complete. Until
  /// then a signal ends the process.
  std::optional<Interrupt> interrupt_;
  std::optional<PackSource> source_;
  std::optional<Progress> progress_;
  /// Made with the first image, so that no file is created if no image can be packed. To resume a
  /// dataset, it is made at the start.
  std::optional<DatasetWriter> writer_;
  /// Files left out by the listing, then those left out by checks, in the order of the listing.
  std::vector<LeftOut> left_out_;
  std::set<std::int64_t> labels_;
  std::uint64_t bytes_ = 0;
  /// Number of images that a library decodes instead of millrace's own stages, for each
  /// `ImageHeader::decoder`. Counts only this run.
  std::map<std::string, std::uint64_t> other_decoders_;
  std::uint64_t repaired_ = 0;
  /// Number of images that this run stored as coefficients, with their bytes before and after.
  std::uint64_t recoded_ = 0;
  std::uint64_t recoded_from_ = 0;
  std::uint64_t recoded_to_ = 0;
  /// Number of JPEGs that are not stored as coefficients, for each reason. Counts only this run.
  std::map<std::string, std::uint64_t> staying_;
  /// Number of the listing's images that are done, including those before a resume.
  std::size_t done_ = 0;
  std::uint64_t records_before_ = 0;
};

int Packing::run() {
  check_arguments();
  source_.emplace(options_);
  interrupt_.emplace();
  if (listing().hidden_folders > 0)
    print_note(fmt::format("ignored {} hidden folder{}", listing().hidden_folders,
                           listing().hidden_folders == 1 ? "" : "s"));
  if (listing().hidden > 0)
    print_note(fmt::format("passed over, with names that begin with a dot: {}", listing().hidden));
  tell_annotations_left_out();
  if (options_.shards > listing().images.size() && !listing().images.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--shards {} is more than there are images ({})", options_.shards,
                            listing().images.size()));
  left_out_ = listing().left_out;
  if (options_.resume && (fs::exists(options_.out) || fs::exists(options_.out + ".replacement")))
    take_up();
  if (writer_ && writer_->complete()) {
    const int code = end_complete(fmt::format("{} is complete already, with {} records ({})",
                                              options_.out, writer_->size(), classes_text()));
    // The earlier run may have been interrupted while it made the index.
    const bool indexed = !is_indexed() || open_dataset(options_.out)->has_stored_hints();
    return indexed || store_index() ? code : interrupt_->exit_code();
  }
  progress_.emplace(stderr, options_.done, listing().images.size() - done_);
  pack_all();
  const double seconds = progress_->seconds();
  progress_.reset();
  if (done_ < listing().images.size()) return end_interrupted();
  if (!writer_) {
    report_left_out();
    throw Error(ErrorCode::not_found,
                fmt::format("there is no image to pack in {}; {} was not written",
                            !options_.list.empty()   ? options_.list
                            : !options_.coco.empty() ? options_.coco
                                                     : options_.inputs[0],
                            options_.out));
  }
  writer_->finish();
  const std::string before =
      records_before_ == 0 ? "" : fmt::format(", {} of them before", records_before_);
  const int code = end_complete(fmt::format(
      "{} {} records ({}, {:.1f} MB) in {:.1f} s{}: {}", options_.done, writer_->size(),
      classes_text(), static_cast<double>(bytes_) / 1e6, seconds, before, options_.out));
  return is_indexed() && !store_index() ? interrupt_->exit_code() : code;
}

/// Returns false if it was interrupted.
bool Packing::store_index() const {
  try {
    Runtime runtime({.workers = options_.workers});
    const IndexResult result = write_index(open_dataset(options_.out, {.hints = false}),
                                           *options_.index, options_.limits, runtime, *interrupt_);
    if (!result.interrupted)
      print_text(fmt::format("indexed in {:.1f} s: {}{}\n", result.seconds, index_text(result),
                             result.bad.empty() ? "" : "; `millrace verify` lists them"));
    else
      print_note(options_.out + " is complete, its index is not; `millrace index` makes it");
    return !result.interrupted;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}; {} is complete without its index, which `millrace "
                                          "index` makes",
                                          error.what(), options_.out));
  }
}

void Packing::check_arguments() const {
  const std::string& input = options_.inputs[0];
  std::error_code ignored;
  if (!fs::exists(input, ignored) && !is_pattern(input))
    throw Error(ErrorCode::not_found, input + " does not exist");
  if (fs::is_directory(fs::status(options_.out, ignored)))
    throw Error(ErrorCode::invalid_argument,
                options_.out + " is a folder; OUT is the dataset's file");
  if (fs::path(options_.out).extension() == ".tar")
    throw Error(ErrorCode::invalid_argument,
                options_.out + " is named as a tar; OUT, the dataset's file, comes last");
  const bool is_there = fs::exists(options_.out, ignored);
  if (is_there && !fs::is_regular_file(options_.out))
    throw Error(ErrorCode::invalid_argument, options_.out + " is not a regular file");
  // An index file has the name of its dataset or tar with this extension.
  fs::path indexed = options_.out;
  indexed.replace_extension();
  if ((is_there && is_hints_file(options_.out)) ||
      (fs::path(options_.out).extension() == ".index" && fs::is_regular_file(indexed, ignored)))
    throw Error(ErrorCode::invalid_argument,
                options_.out + ": it is the index of a dataset; take another name for OUT");
  if (!options_.force && !options_.resume && fs::exists(fs::symlink_status(options_.out, ignored)))
    check_free();
  if (!is_there) check_can_create(options_.out);
}

void Packing::check_free() const {
  std::string advice = "exists; --force replaces it";
  try {
    (void)open_dataset(options_.out);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::incomplete)
      advice = "is there, incomplete; --resume goes on with it, --force replaces it";
  }
  throw Error(ErrorCode::already_exists, options_.out + " " + advice);
}

void Packing::open_writer() {
  WriterOptions options;
  options.overwrite = options_.force;
  options.resume = options_.resume;
  options.commit_bytes = options_.commit_bytes;
  options.source = source_->identity() + stored_text(options_.store);
  options.shards = options_.shards;
  options.source_items = listing().images.size();
  options.shard_bytes = options_.shard_bytes;
  options.field_specs = source_->field_specs();
  writer_.emplace(options_.out, std::move(options));
  if (!writer_->complete()) writer_->set_classes(listing().classes);
}

void Packing::tell_annotations_left_out() const {
  const CocoFile* coco = source_->coco();
  if (coco != nullptr && coco->crowds > 0)
    print_note(fmt::format("left out, as annotations of crowds (iscrowd 1): {}", coco->crowds));
  if (coco != nullptr && coco->empty_boxes > 0)
    print_note(fmt::format("left out, as boxes that are not wider and higher than 0: {}",
                           coco->empty_boxes));
}

/// Continues where an interrupted pack ended.
void Packing::take_up() {
  open_writer();
  records_before_ = writer_->size();
  if (writer_->items() > listing().images.size())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} cannot be resumed: {} files went into it, and there are {}; pack it "
                    "again with --force",
                    options_.out, writer_->items(), listing().images.size()));
  const auto take_records = [&](std::uint64_t end) {
    for (; done_ < end; ++done_) labels_.insert(listing().images.at(done_).label);
  };
  for (const LeftOutItem& item : writer_->left_out()) {
    take_records(item.item);
    left_out_.push_back({source_->path(done_++), item.reason});
  }
  take_records(writer_->items());
  if (!writer_->complete())
    print_note(fmt::format("going on behind {} of {} files, {} records", done_,
                           listing().images.size(), records_before_));
}

/// Calls `call`. If it throws, adds the number of images packed so far to the error's message.
template <typename Call>
auto Packing::read(const Call& call) const {
  const auto with_rest = [&](ErrorCode code, const std::string& what) {
    return Error(code, what + "; " + kept_text());
  };
  try {
    return call();
  } catch (const Error& error) {
    throw with_rest(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    throw with_rest(ErrorCode::io,
                    source_->path(done_) + " cannot be read: there is not enough memory");
  }
}

void Packing::pack_all() {
  Runtime runtime({.workers = options_.workers});
  const std::shared_ptr<Decoders> decoders =
      make_decoders(runtime.workers(), options_.limits, options_.store);
  std::deque<std::shared_ptr<ReadImages>> reading;
  std::size_t begun = done_;
  // Queues a job of images. The job is large enough to keep the workers busy while this thread
  // writes, and its memory is limited.
  const auto read_on = [&](WorkerPool& pool) {
    const std::size_t end =
        std::min(listing().images.size(), begun + std::size_t{4} * pool.workers());
    std::vector<UncheckedImage> images;
    // This thread itself reads the bytes of tars and datasets, so their number is limited.
    constexpr std::size_t max_bytes = 64 << 20;
    for (std::size_t bytes = 0; begun < end && bytes < max_bytes; ++begun)
      bytes += images.emplace_back(read([&] { return source_->image(begun); })).held_bytes();
    if (images.empty()) return;
    reading.push_back(std::make_shared<ReadImages>(std::move(images), decoders));
    pool.submit(this, reading.back());
  };
  for (int ahead = 0; ahead < 2; ++ahead)
    for (const auto& pool : runtime.pools()) read_on(*pool);
  for (std::size_t turn = 0; !reading.empty(); ++turn) {
    const std::shared_ptr<ReadImages> images = std::move(reading.front());
    reading.pop_front();
    for (std::size_t item = 0; item < images->items(); ++item) {
      if (interrupt_->requested()) return;
      append(read([&] { return images->take(item); }));
      ++done_;
    }
    read_on(*runtime.pools()[turn % runtime.pools().size()]);
  }
}

void Packing::append(const CheckedImage& image) {
  progress_->advance(image.bytes.size());
  if (!image.status.is_ok()) {
    left_out_.push_back({source_->path(done_), image.status.reason()});
    if (writer_) writer_->leave_out(image.status.reason());
    return;
  }
  if (!writer_) {
    open_writer();
    for (std::size_t item = 0; item < done_; ++item)
      writer_->leave_out(left_out_[listing().left_out.size() + item].reason);
  }
  const std::int64_t width = image.header.width;
  const std::int64_t height = image.header.height;
  std::int64_t label = listing().images[done_].label;
  const std::string path = source_->path(done_);
  std::vector<RecordField> fields;
  if (!image.rest || image.rest->has_image)
    fields = {{"image", image.bytes},
              {"label", std::as_bytes(std::span(&label, 1))},
              {"path", std::as_bytes(std::span(path))},
              {"width", std::as_bytes(std::span(&width, 1))},
              {"height", std::as_bytes(std::span(&height, 1))}};
  if (image.rest)
    for (const RecordRest::Field& field : image.rest->fields) {
      if (field.name == "label" && field.bytes.size() == sizeof label &&
          source_->has_integer_labels())
        std::memcpy(&label, field.bytes.data(), sizeof label);
      const auto there = std::ranges::find(fields, field.name, &RecordField::name);
      if (there == fields.end())
        fields.push_back({field.name, field.bytes});
      else
        there->bytes = field.bytes;
    }
  writer_->append(fields);
  labels_.insert(label);
  bytes_ += image.bytes.size();
  repaired_ += image.header.repaired ? 1 : 0;
  if (image.recoded_bytes > 0) {
    ++recoded_;
    recoded_from_ += image.recoded_bytes;
    recoded_to_ += image.bytes.size();
  }
  if (!image.reason_kept_as_jpeg.empty()) ++staying_[image.reason_kept_as_jpeg];
  const std::string_view decoder = image.header.decoder;
  if (!decoder.empty() && !decoder.starts_with("millrace")) ++other_decoders_[std::string(decoder)];
}

int Packing::end_interrupted() const {
  print_note("interrupted; " + kept_text());
  return interrupt_->exit_code();
}

std::string Packing::kept_text() const {
  if (!writer_) return "nothing was written";
  return fmt::format(
      "{} of {} files are committed to {}, which is incomplete: go on with --resume, or pack it "
      "again with --force",
      writer_->committed(), listing().images.size(), writer_->path().string());
}

int Packing::end_complete(const std::string& done) const {
  report_left_out();
  print_text(printable(done) + "\n");
  if (options_.store == StoredForm::coefficients)
    print_text(fmt::format("stored as coefficients: {} ({:.1f} MB, as JPEGs {:.1f} MB)\n",
                           count_text(recoded_, "image"), static_cast<double>(recoded_to_) / 1e6,
                           static_cast<double>(recoded_from_) / 1e6));
  for (const auto& [reason, images] : staying_)
    print_text(
        fmt::format("stays as JPEG: {}: {}\n", count_text(images, "image"), printable(reason)));
  for (const auto& [decoder, images] : other_decoders_)
    print_text(fmt::format("decoded by {}: {}\n", decoder, count_text(images, "image")));
  if (repaired_ > 0)
    print_text(fmt::format("repaired (stray bytes skipped): {}\n", count_text(repaired_, "image")));
  if (left_out_.empty() || options_.skip_bad) return 0;
  print_note(options_.out +
             " is complete without what was left out; --skip-bad makes that no error");
  return 1;
}

void Packing::report_left_out() const {
  if (left_out_.empty()) return;
  print_note(fmt::format("left out {}:", count_text(left_out_.size(), source_->noun())));
  for (const LeftOut& file : left_out_)
    print_error_text(fmt::format("  {}: {}\n", printable(file.path), printable(file.reason)));
}

std::string Packing::classes_text() const {
  const std::size_t used = labels_.size() - labels_.count(-1);
  const std::size_t all = listing().classes.size();
  if (source_->coco() != nullptr) return count_text(all, "class") + " of boxes";
  if (!source_->lists_labels() && records_before_ > 0)
    return all > 0 ? count_text(all, "class") : "classes not counted";
  if (all > used) return fmt::format("{} classes, {} of them empty", all, all - used);
  return used == 0 ? "no classes" : count_text(used, "class");
}

}  // namespace

int run_pack(const PackOptions& options) { return Packing(options).run(); }

}  // namespace millrace::cli
