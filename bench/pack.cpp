// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <millrace/dataset_writer.h>
#include <millrace/error.h>
#include <millrace/runtime.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "interrupt.h"
#include "pack_image.h"
#include "pack_listing.h"
#include "progress.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct PackOptions {
  std::string folder;
  std::string out;
  std::string list;
  bool force = false;
  bool skip_bad = false;
  unsigned workers = 0;
};

/// One run of the command. Files are read and checked in parallel and written in their order.
class Packing {
 public:
  explicit Packing(const PackOptions& options) : options_(options) {}
  int run();

 private:
  void check_arguments() const;
  void pack_all();
  void append(const ListedImage& listed, const CheckedImage& image);
  int end_interrupted() const;
  void report_left_out() const;
  std::string classes_text() const;

  const PackOptions& options_;
  Listing listing_;
  Interrupt interrupt_;
  std::optional<Progress> progress_;
  /// Made with the first image, so that no file is left where there is none.
  std::optional<DatasetWriter> writer_;
  std::set<std::int64_t> labels_;
  std::uint64_t bytes_ = 0;
  std::size_t done_ = 0;
};

int Packing::run() {
  check_arguments();
  listing_ = options_.list.empty() ? list_folder(options_.folder, options_.out) : read_list(options_.list);
  if (listing_.hidden > 0) fmt::print(stderr, "millrace: passed over, with names that begin with a dot: {}\n", listing_.hidden);

  progress_.emplace(stderr, "packed", listing_.images.size());
  pack_all();
  const double seconds = progress_->seconds();
  progress_.reset();
  if (done_ < listing_.images.size()) return end_interrupted();

  if (!writer_) {
    report_left_out();
    const std::string& where = options_.list.empty() ? options_.folder : options_.list;
    throw Error(ErrorCode::not_found, fmt::format("there is no image to pack in {}; {} was not written", where, options_.out));
  }
  writer_->set_classes(listing_.classes);
  writer_->finish();
  report_left_out();
  fmt::print("packed {} records ({}, {:.1f} MB) in {:.1f} s: {}\n", writer_->size(), classes_text(),
             static_cast<double>(bytes_) / 1e6, seconds, options_.out);
  if (listing_.left_out.empty() || options_.skip_bad) return 0;
  fmt::print(stderr, "millrace: {} is complete without what was left out; --skip-bad makes that no error\n", options_.out);
  return 1;
}

void Packing::check_arguments() const {
  if (!fs::exists(options_.folder)) throw Error(ErrorCode::not_found, options_.folder + " does not exist");
  if (!fs::is_directory(options_.folder)) throw Error(ErrorCode::invalid_argument, options_.folder + " is no folder");
  if (fs::is_directory(options_.out))
    throw Error(ErrorCode::invalid_argument, options_.out + " is a folder; OUT is the dataset's file");
  if (!options_.force && fs::exists(fs::symlink_status(options_.out)))
    throw Error(ErrorCode::already_exists, options_.out + " exists; --force replaces it");
}

void Packing::pack_all() {
  Runtime runtime({.workers = options_.workers});
  const auto decoders = std::make_shared<std::vector<JpegDecoder>>(runtime.workers());
  std::deque<std::shared_ptr<ReadImages>> reading;
  std::size_t begun = 0;
  // Workers have something to do while this thread writes, and no more is in memory than that.
  const auto read_on = [&](WorkerPool& pool) {
    const std::size_t end = std::min(listing_.images.size(), begun + std::size_t{4} * pool.workers());
    std::vector<fs::path> files;
    for (; begun < end; ++begun) files.push_back(fs::path(options_.folder) / listing_.images[begun].path);
    if (files.empty()) return;
    reading.push_back(std::make_shared<ReadImages>(std::move(files), decoders));
    pool.submit(this, reading.back());
  };
  for (int ahead = 0; ahead < 2; ++ahead)
    for (const auto& pool : runtime.pools()) read_on(*pool);
  for (std::size_t turn = 0; !reading.empty(); ++turn) {
    const std::shared_ptr<ReadImages> images = std::move(reading.front());
    reading.pop_front();
    for (std::size_t item = 0; item < images->items(); ++item) {
      if (interrupt_.requested()) return;
      append(listing_.images[done_], images->take(item));
      ++done_;
    }
    read_on(*runtime.pools()[turn % runtime.pools().size()]);
  }
}

void Packing::append(const ListedImage& listed, const CheckedImage& image) {
  progress_->advance(image.bytes.size());
  if (!image.status.is_ok()) {
    listing_.left_out.push_back({listed.path, image.status.reason()});
    return;
  }
  if (!writer_) writer_.emplace(options_.out, WriterOptions{.overwrite = options_.force});
  const std::int64_t width = image.header.width;
  const std::int64_t height = image.header.height;
  const RecordField fields[] = {{"image", image.bytes},
                                {"label", std::as_bytes(std::span(&listed.label, 1))},
                                {"path", std::as_bytes(std::span(listed.path))},
                                {"width", std::as_bytes(std::span(&width, 1))},
                                {"height", std::as_bytes(std::span(&height, 1))}};
  writer_->append(fields);
  labels_.insert(listed.label);
  bytes_ += image.bytes.size();
}

int Packing::end_interrupted() const {
  if (writer_)
    fmt::print(stderr,
               "millrace: interrupted; {} of {} files are committed to {}, which is incomplete: pack it again with --force\n",
               writer_->committed(), listing_.images.size(), options_.out);
  else
    fmt::print(stderr, "millrace: interrupted; nothing was written\n");
  return Interrupt::exit_code;
}

void Packing::report_left_out() const {
  if (listing_.left_out.empty()) return;
  fmt::print(stderr, "millrace: left out {} file{}:\n", listing_.left_out.size(), listing_.left_out.size() == 1 ? "" : "s");
  for (const LeftOut& file : listing_.left_out) fmt::print(stderr, "  {}: {}\n", file.path, file.reason);
}

std::string Packing::classes_text() const {
  const std::size_t used = labels_.size() - labels_.count(-1);
  if (const std::size_t all = listing_.classes.size(); all > used)
    return fmt::format("{} classes, {} of them empty", all, all - used);
  return used == 0 ? "no classes" : fmt::format("{} class{}", used, used == 1 ? "" : "es");
}

}  // namespace

Command add_pack(CLI::App& millrace) {
  auto options = std::make_shared<PackOptions>();
  CLI::App* app = millrace.add_subcommand("pack", "Pack a folder of JPEG images into a dataset file");
  app->add_option(
         "FOLDER", options->folder,
         "Folder of images. Folders in it are classes and become labels from 0, sorted by name; without any, the label is -1")
      ->required();
  app->add_option("OUT", options->out, "The dataset file to write")->required();
  app->add_option("--list", options->list,
                  "Take images and labels from this file: a line path,label for each, with paths relative to FOLDER");
  app->add_flag("--force", options->force, "Replace OUT where it exists");
  app->add_flag("--skip-bad", options->skip_bad, "Exit with 0 although files were left out");
  app->add_option("--workers", options->workers, "Threads that read and check images; default: one per core")
      ->check(CLI::Range(1, 4096));
  app->footer(
      "Files go in untouched, in the order of class and path (with --list: as listed), with label, path, width and height.\n"
      "Files that are no JPEG or do not decode are left out; they are listed at the end with the reason and make the exit\n"
      "code 1. The dataset is complete without them. Names that begin with a dot are passed over. A pack that was\n"
      "interrupted leaves a file that is refused as incomplete.\n"
      "\n"
      "Examples:\n"
      "  millrace pack imagenet/train train.lmdb\n"
      "  millrace pack photos train.lmdb --list train.csv --force\n"
      "  millrace pack scraped all.lmdb --skip-bad --workers 8 2> left-out.txt");
  return {app, [options] { return Packing(*options).run(); }};
}

}  // namespace millrace::cli
