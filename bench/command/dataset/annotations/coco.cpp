// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/annotations/coco.h"

#include <fmt/format.h>
#include <millrace/detail/json_text.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "command/dataset/annotations/json_entries.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t numbers_of_a_box = 4;
constexpr std::size_t numbers_of_a_keypoint = 3;
constexpr std::size_t max_keypoints = 1000;
/// Maximal bytes of all boxes of one image. Without this limit a short file could need much memory,
/// because boxes without keypoints get zeros.
constexpr std::size_t max_bytes = std::size_t{64} << 20;

/// An annotation, kept until all images and categories are known. Its index in the list is its
/// number in the file.
struct CocoAnnotation {
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  std::array<float, numbers_of_a_box> corners{};
  std::uint64_t keypoints = CocoBox::no_keypoints;
  bool is_kept = true;
};

bool is_relative_file_path(const std::string& path) {
  const fs::path parts(path);
  return path.find('\0') == std::string::npos && parts.is_relative() && parts.has_filename() &&
         std::ranges::find(parts, fs::path("..")) == parts.end();
}

class CocoReader {
 public:
  explicit CocoReader(const fs::path& path) : path_(path) {}

  CocoFile run() {
    const std::vector<EntryList> lists = {
        {"images",
         {{"id", "an integer"},
          {"file_name", "a relative path below the folder of the images"},
          {"width", "an integer from 1 up", false},
          {"height", "an integer from 1 up", false}},
         [this](const JsonEntry& entry) { take_image(entry); }},
        {"annotations",
         {{"image_id", "an integer"},
          {"category_id", "an integer"},
          {"bbox", "4 numbers of float32: x, y, width, height", true, numbers_of_a_box},
          {"iscrowd", "0 or 1", false},
          {"keypoints", "three numbers of float32 for each keypoint: x, y, visibility", false,
           numbers_of_a_keypoint * max_keypoints}},
         [this](const JsonEntry& entry) { take_annotation(entry); }},
        {"categories", {{"id", "an integer"}, {"name", "a text"}}, [this](const JsonEntry& entry) {
           take_category(entry);
         }}};
    file_.hash = read_json_entries(path_, lists);
    connect();
    return std::move(file_);
  }

 private:
  void take_image(const JsonEntry& entry) {
    CocoImage image{.id = entry.integer("id"), .file = entry.text("file_name")};
    const auto [first, is_new] = images_.try_emplace(image.id, file_.images.size());
    if (!is_new)
      entry.place().fail(
          fmt::format("\"id\" is {}, which images[{}] has, too", image.id, first->second));
    if (!is_relative_file_path(image.file)) entry.refuse("file_name");
    const auto read = [&](const char* key, std::int64_t& into) {
      if (entry.find(key) == nullptr) return;
      into = entry.integer(key);
      if (into < 1) entry.refuse(key);
    };
    read("width", image.width);
    read("height", image.height);
    file_.images.push_back(std::move(image));
  }

  void take_category(const JsonEntry& entry) {
    const std::int64_t id = entry.integer("id");
    if (!categories_.try_emplace(id, entry.text("name"), 0).second)
      entry.place().fail(fmt::format("\"id\" is {}, which another category has, too", id));
  }

  static std::vector<double> numbers_of(const JsonEntry& entry, const char* key) {
    std::vector<double> numbers;
    for (const EntryValue& number : entry.numbers(key)) {
      numbers.push_back(number.get<double>());
      if (!(std::abs(numbers.back()) <= FLT_MAX)) entry.refuse(key);
    }
    return numbers;
  }

  void take_annotation(const JsonEntry& entry) {
    CocoAnnotation& annotation = annotations_.emplace_back();
    annotation.image_id = entry.integer("image_id");
    annotation.category_id = entry.integer("category_id");
    const std::vector<double> box = numbers_of(entry, "bbox");
    if (box.size() != numbers_of_a_box) entry.refuse("bbox");
    for (std::size_t side : {0U, 1U}) {
      const double end = box[side] + box[side + 2];
      if (!(std::abs(end) <= FLT_MAX)) entry.refuse("bbox");
      annotation.corners[side] = static_cast<float>(box[side]);
      annotation.corners[side + 2] = static_cast<float>(end);
    }
    if (entry.find("keypoints") != nullptr) take_keypoints(entry, annotation);

    const std::int64_t crowd = entry.find("iscrowd") == nullptr ? 0 : entry.integer("iscrowd");
    if (crowd != 0 && crowd != 1) entry.refuse("iscrowd");
    const bool is_empty = !(annotation.corners[2] > annotation.corners[0] &&
                            annotation.corners[3] > annotation.corners[1]);
    file_.crowds += crowd == 1 ? 1 : 0;
    file_.empty_boxes += crowd == 0 && is_empty ? 1 : 0;
    annotation.is_kept = crowd == 0 && !is_empty;
  }

  void take_keypoints(const JsonEntry& entry, CocoAnnotation& annotation) {
    const std::vector<double> numbers = numbers_of(entry, "keypoints");
    if (numbers.empty()) return;
    if (numbers.size() % numbers_of_a_keypoint != 0) entry.refuse("keypoints");
    const std::size_t keypoints = numbers.size() / numbers_of_a_keypoint;
    if (file_.keypoints != 0 && file_.keypoints != keypoints)
      entry.place().fail(fmt::format("\"keypoints\" has {} keypoints, and those before have {}",
                                     keypoints, file_.keypoints));
    file_.keypoints = keypoints;
    annotation.keypoints = file_.keypoint_numbers.size();
    for (const double number : numbers)
      file_.keypoint_numbers.push_back(static_cast<float>(number));
  }

  /// Assigns annotations to images and labels.
  void connect() {
    std::int64_t label = 0;
    for (auto& [id, category] : categories_) {
      file_.classes.push_back(category.first);
      category.second = label++;
    }
    file_.boxes.reserve(annotations_.size() - file_.crowds - file_.empty_boxes);
    for (std::size_t number = 0; number < annotations_.size(); ++number) {
      const CocoAnnotation& annotation = annotations_[number];
      const EntryLocation place{path_, "annotations", number};
      const auto image = images_.find(annotation.image_id);
      if (image == images_.end())
        place.fail("image_id", annotation.image_id, "the \"id\" of an image in \"images\"");
      const auto category = categories_.find(annotation.category_id);
      if (category == categories_.end())
        place.fail("category_id", annotation.category_id,
                   "the \"id\" of a category in \"categories\"");
      if (annotation.is_kept)
        file_.boxes.push_back(
            {image->second, category->second.second, annotation.corners, annotation.keypoints});
    }
    std::ranges::stable_sort(file_.boxes, {}, &CocoBox::image);
    check_bytes();
  }

  void check_bytes() const {
    const std::size_t each = sizeof(CocoBox::corners) + sizeof(CocoBox::label) +
                             file_.keypoints * numbers_of_a_keypoint * sizeof(float);
    std::size_t count = 0;
    for (std::size_t box = 0; box < file_.boxes.size(); ++box) {
      const std::uint64_t image = file_.boxes[box].image;
      count = box > 0 && file_.boxes[box - 1].image == image ? count + 1 : 1;
      if (count * each > max_bytes)
        EntryLocation{path_, "images", image}.fail(
            fmt::format("its boxes with {} keypoints each take more than 64 MiB", file_.keypoints));
    }
  }

  const fs::path& path_;
  CocoFile file_;
  /// Index of each image, by id.
  std::unordered_map<std::int64_t, std::size_t> images_;
  /// Name and label of each category, by id.
  std::map<std::int64_t, std::pair<std::string, std::int64_t>> categories_;
  std::vector<CocoAnnotation> annotations_;
};

template <typename Value>
RecordRest::Field field_of(const char* name, const std::vector<Value>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {name, {bytes.begin(), bytes.end()}};
}

}  // namespace

CocoFile read_coco(const fs::path& file) { return CocoReader(file).run(); }

RecordRest coco_fields(const CocoFile& file, std::size_t image) {
  const std::size_t numbers = file.keypoints * numbers_of_a_keypoint;
  std::vector<float> corners, keypoints;
  std::vector<std::int64_t> labels;
  auto box = std::ranges::lower_bound(file.boxes, std::uint64_t{image}, {}, &CocoBox::image);
  for (; box != file.boxes.end() && box->image == image; ++box) {
    corners.insert(corners.end(), box->corners.begin(), box->corners.end());
    labels.push_back(box->label);
    keypoints.resize(keypoints.size() + numbers);
    if (box->keypoints != CocoBox::no_keypoints)
      std::copy_n(file.keypoint_numbers.begin() + static_cast<std::ptrdiff_t>(box->keypoints),
                  numbers, keypoints.end() - static_cast<std::ptrdiff_t>(numbers));
  }
  RecordRest rest{.fields = {field_of("image_id", std::vector{file.images[image].id}),
                             field_of("boxes", corners), field_of("labels", labels)}};
  if (file.keypoints > 0) rest.fields.push_back(field_of("keypoints", keypoints));
  return rest;
}

}  // namespace millrace::cli
