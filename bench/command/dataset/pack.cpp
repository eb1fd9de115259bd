// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "command/console/command.h"
#include "command/console/option_checks.h"
#include "command/dataset/pack_run.h"
#include "command/dataset/pack_source.h"
#include "command/dataset/writing_options.h"
#include "command/run/pipeline_options.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* pack_footer =
    R"(Files are stored unchanged, in the order of class and path (with --list: as listed), with
label, path, width and height. Files that are not images or do not decode are left out. They are
listed at the end with the reason and give exit code 1; the dataset is complete without them. An
error of the system ends the pack, and --resume tries the file again. Names that begin with a dot
are skipped.

Members of a tar whose paths are the same up to the first dot of the file's name are a sample: an
image (.jpg, .jpeg, .png, .webp, .bmp, .gif, .pbm, .pgm, .ppm, .tif, .tiff) and its label, a number
from -1 up, in a .cls or as "label" or else "cls" of a .json. Samples come in the tars' order,
without class names. A sample without image or label is left out as above; a truncated tar is an
error.

With --masks each image gets a mask, stored unchanged: the PNG file with the same path below another
folder (a/b.png for a/b.jpg), as large as the image. An image without such a mask, or with one that
does not decode, is left out.

With --coco the images are those of a JSON file in COCO's format ("instances", "person_keypoints"),
in its order, with label -1. Their records have image_id, boxes (float32: x1, y1, x2, y2 in pixels),
labels (int64: indices into the categories, sorted by id) and, if any image has them, keypoints
(float32: x, y, visibility). Annotations of crowds and empty boxes are left out. Masks of objects
("segmentation") are not taken: --masks packs masks that are files.

The records of a dataset, of millrace's or another format, are stored with all their fields; path,
width and height are made anew. A record that cannot be read, does not decode or has other fields
than those before it is left out as above.

An interrupted pack, or one on a full disk, leaves a dataset that is refused as incomplete. The same
command with --resume continues after the last commit and makes the same records as a pack that was
not interrupted. It refuses to continue with another input.

With --store coefficients JPEGs are stored as their quantised coefficients: 1.3 times the bytes, and
decoded several times as fast, with the same pixels. Each is checked by restoring its file byte for
byte, and by decoding both forms if libjpeg-turbo decodes the JPEG. A JPEG for which that fails
stays as it is. `millrace recode --store jpeg` restores the files. No seek index is stored then
unless --index names one.

With --shards 4, OUT train.lmdb is the file to open: it lists the files beside it,
train-00000-of-00004.lmdb and so on.

Examples:
  millrace pack imagenet/train train.lmdb
  millrace pack photos train.lmdb --list train.csv --force
  millrace pack scraped all.lmdb --skip-bad --workers 8 2> left-out.txt
  millrace pack imagenet/train train.lmdb --shard-bytes 2GB --resume
  millrace pack photos train.lmdb --masks photos-masks
  millrace pack imagenet/train train.lmdb --store coefficients
  millrace pack train2017 train.lmdb --coco annotations/instances_train2017.json
  millrace pack 'cc3m/*.tar' cc3m.lmdb --shards 16)";

/// Makes the checks that CLI11 cannot express.
void check_usage(const PackOptions& options) {
  for (const auto& [name, value] :
       {std::pair{"--masks", options.masks}, {"--coco", options.coco}}) {
    if (value.empty()) continue;
    for (const std::string& input : options.inputs)
      if (options.inputs.size() > 1 || (fs::exists(input) && !is_image_folder(input)))
        throw CLI::ValidationError(
            name, fmt::format("needs one folder of images, which {} is not", input));
  }
  if (options.inputs.size() < 2) return;
  for (const std::string& input : options.inputs)
    if (!is_pattern(input) && !fs::is_regular_file(input))
      throw CLI::ValidationError(
          "INPUT", fmt::format("several inputs must all be tars, which {} is not", input));
}

}  // namespace

Command add_pack(CLI::App& millrace) {
  auto options = std::make_shared<PackOptions>();
  CLI::App* app = millrace.add_subcommand(
      "pack", "Pack a folder of images, WebDataset tars or any dataset into a dataset");
  CLI::Option* input = app->add_option_function<std::vector<std::string>>(
      "INPUT",
      [options, app](const std::vector<std::string>& paths) {
        options->inputs = paths;
        if (paths.size() < 2) return;
        // CLI11 assigns all values to the first option that accepts several, so the last one is
        // moved to OUT.
        app->get_option("OUT")->add_result(paths.back());
        options->inputs.pop_back();
      },
      "Folder of images: its sub-folders are classes with labels from 0, sorted by name; without "
      "sub-folders the label is -1. Or WebDataset tars, also compressed ones, or quoted patterns "
      "of them. Or any dataset, whose records are copied");
  input->required()->check(input_check());
  app->add_option("OUT", options->out, "The dataset file to write")
      ->required()
      ->check(output_check(false));
  app->add_option("--list", options->list,
                  "Take images and labels from this file: a line path,label for each image, with "
                  "paths relative to the folder")
      ->check(input_check());
  CLI::Option* masks =
      app->add_option("--masks", options->masks,
                      "Pack a mask with each image: the PNG file of the same path in this folder");
  masks->type_name("FOLDER")->check(input_check());
  CLI::Option* coco =
      app->add_option("--coco", options->coco,
                      "Pack the images of this JSON file in COCO's format with their boxes");
  coco->type_name("FILE")->check(input_check())->excludes("--list");
  const auto add_opening_option = [app](const char* option, std::string& value, const char* text) {
    app->add_option(option, value, text)->type_name("NAME")->check(input_check());
  };
  add_opening_option("--format", options->dataset.format, "Open INPUT as a dataset of this format");
  add_opening_option("--images", options->dataset.images,
                     "Database of the images, in an LMDB file with several databases");
  add_opening_option("--labels", options->dataset.labels, "Database of their labels");
  for (CLI::Option* option : {masks, coco})
    for (const char* other : {"--format", "--images", "--labels"}) option->excludes(other);
  add_writing(*app, *options);
  app->add_option_function<std::string>(
         "--index",
         [options](const std::string& kind) {
           if (kind == "none")
             options->index = std::nullopt;
           else
             options->index = kind == "rows" ? IndexPoints::rows : IndexPoints::tiles;
         },
         "Kind of the seek index to store beside OUT, as `millrace index` does, or none")
      ->type_name("tiles|rows|none")
      ->default_str("tiles")
      ->check(CLI::IsMember({"tiles", "rows", "none"}).description(""));
  add_store(
      *app, *options,
      "Form in which JPEGs are stored; default: as they are, and coefficients of a dataset, too");
  add_decode_limits(*app, options->limits);
  app->add_option("--max-expansion", options->max_expansion,
                  "Leave out images of a sparse or compressed tar beyond 64 MiB plus this many "
                  "times the tar's bytes")
      ->type_name("N")
      ->capture_default_str()
      ->transform(between(std::uint64_t{1}, UINT64_MAX));
  app->parse_complete_callback([options, app] {
    check_usage(*options);
    if (options->store == StoredForm::coefficients && app->count("--index") == 0)
      options->index = std::nullopt;
  });
  app->footer(pack_footer);
  return {app, [options] { return run_pack(*options); }};
}

}  // namespace millrace::cli
