// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <millrace/dataset.h>
#include <millrace/detail/page_table.h>
#include <millrace/detail/tar_members.h>
#include <millrace/runtime.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "command/console/command.h"
#include "command/console/dataset_option.h"
#include "command/console/interrupt.h"
#include "command/console/option_checks.h"
#include "command/console/streams.h"
#include "command/dataset/bad_records.h"
#include "command/dataset/index_run.h"
#include "command/run/pipeline_options.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

struct IndexOptions {
  /// Stored hints are replaced, so they are not loaded.
  DatasetArguments dataset{.options = {.hints = false}};
  IndexPoints points = IndexPoints::tiles;
  unsigned workers = 0;
  DecodeLimits limits;
};

int run_index(const IndexOptions& options) {
  const std::shared_ptr<const Dataset> dataset = open_as_given(options.dataset);
  if (const std::size_t tars = save_tar_members(*dataset); tars > 0)
    print_text(fmt::format("stored where the samples of {} lie\n", count_text(tars, "tar")));
  const Interrupt interrupt;
  Runtime runtime({.workers = options.workers});
  // An LMDB file of another program gets a page table, so that opening it does not read its pages.
  if (save_page_table(*dataset))
    print_text(printable(fmt::format("stored where the pages of {} lie", options.dataset.path)) +
               "\n");
  const std::vector<std::string> fields = dataset->facts().fields;
  if (!fields.empty() && std::ranges::find(fields, "image") == fields.end()) {
    print_text("its records have no images to index\n");
    return 0;
  }
  const IndexResult result =
      write_index(dataset, options.points, options.limits, runtime, interrupt);
  if (result.interrupted) {
    print_note("interrupted; stored indices stay, except those of shards that were done");
    return interrupt.exit_code();
  }
  print_text(bad_records_text(result.bad, max_bad_records_shown,
                              "`millrace verify --json FILE` lists all") +
             printable(fmt::format("indexed {} in {:.1f} s: {}", options.dataset.path,
                                   result.seconds, index_text(result))) +
             "\n");
  return result.bad.empty() ? 0 : 1;
}

}  // namespace

Command add_index(CLI::App& millrace) {
  auto options = std::make_shared<IndexOptions>();
  CLI::App* app = millrace.add_subcommand(
      "index", "Store a seek index of each JPEG, so that crops are decoded faster");
  add_dataset(*app, options->dataset);
  app->add_option_function<std::string>(
         "--index",
         [options](const std::string& kind) {
           options->points = kind == "rows" ? IndexPoints::rows : IndexPoints::tiles;
         },
         "Where decoders can begin: at each eighth block (MCU) of a row, or only at rows. With "
         "rows, the index of images 500 pixels wide has an eighth of the bytes, and crops take 8% "
         "longer; the wider the images, the larger both effects")
      ->type_name("tiles|rows")
      ->default_str("tiles")
      ->check(CLI::IsMember({"tiles", "rows"}).description(""));
  app->add_option("--workers", options->workers,
                  "Threads that read images; default: one per processor")
      ->transform(between(1, 4096));
  add_decode_limits(*app, options->limits);
  app->footer(
      R"(Writes a file beside the dataset, or beside each of its shards: train.lmdb.index, about
1.5% of the images' bytes, or 0.2% with --index rows. The dataset is not touched. Pipelines find it
by themselves, and make the same batches with it and without. `millrace pack` makes it, too, unless
--index none is given. For another program's LMDB the command also stores the positions of its
pages, as data.mdb.pages, so that opening it need not read them. Existing files are replaced. A
record whose index is damaged or belongs to another image is decoded without it; `millrace verify
--deep` finds such records. Records that are bad or whose image does not decode get no index. They
are listed, and the exit code is 1.

Examples:
  millrace index train.lmdb
  millrace index train.lmdb --workers 8)");
  return {app, [options] { return run_index(*options); }};
}

}  // namespace millrace::cli
