// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/resample.h>
#include <millrace/image_decoder.h>
#include <millrace/image_transform.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/program.h"
#include "targets/targets.h"

namespace millrace {
namespace {

constexpr std::size_t image_field = 0;
constexpr std::size_t first_target = 1;
constexpr std::size_t augment_stage = 1;

/// A very narrow image would grow to gigabytes when its shorter side is resized.
constexpr std::int64_t max_resized_pixels = 100'000'000;

SampleSpec spec_of(const Recipe& recipe, const Program& program) {
  const Size output = recipe.output;
  const auto height = static_cast<std::size_t>(output.height);
  const auto width = static_cast<std::size_t>(output.width);
  const auto views = static_cast<std::size_t>(program.views());
  const Shape image{height, width, 3};
  std::vector<FieldSpec> fields{
      {"image", DType::uint8, views > 1 ? image.with_outer(views) : image}};
  for (FieldSpec& field : fields_of(recipe.targets, output)) fields.push_back(std::move(field));
  for (FieldSpec& field : program.fields()) fields.push_back(std::move(field));
  return SampleSpec(std::move(fields));
}

/// What decides the pixels of the image that a recipe's geometric operations make; none if these
/// differ from sample to sample.
FixedPart fixed_part_of(const Recipe& recipe, const DecodeLimits& limits, const Program& program) {
  if (const ImageOperation* random = program.random_geometry(); random != nullptr)
    return {.why_none = std::string("the recipe's ") + random->name() +
                        " gives an image other pixels each time"};
  if (has_moving(recipe.targets))
    return {.why_none = "the recipe has masks, boxes or keypoints, which are made with the image"};
  Recipe geometry = recipe;
  geometry.mix.reset();
  geometry.targets = Recipe().targets;
  std::erase_if(geometry.ops, [](const Operation& op) {
    return dynamic_cast<const GeometricOperation*>(&op.held()) == nullptr;
  });
  std::string decides = geometry.to_json();
  // An image beyond them is bad, and must not be found as that of a transform with others.
  for (const std::uint64_t limit :
       {limits.max_pixels_per_byte, limits.max_scan_pixels, limits.max_decode_bytes})
    decides += " " + std::to_string(limit);
  return {.bytes = 3 * static_cast<std::size_t>(recipe.output.width) *
                   static_cast<std::size_t>(recipe.output.height) *
                   static_cast<std::size_t>(program.views()),
          .fingerprint = XXH3_64bits(decides.data(), decides.size())};
}

class ImageWorker : public TransformWorker {
 public:
  ImageWorker(const Program& program, const Recipe& recipe,
              const std::shared_ptr<DecodeBudget>& budget)
      : program_(program),
        output_(recipe.output),
        resolution_(recipe.resolution),
        views_(static_cast<std::size_t>(program.views())),
        may_be_kept_(program.random_geometry() == nullptr && !has_moving(recipe.targets)),
        needs_orientation_(program.needs_orientation()),
        decoder_(make_image_decoder(budget)),
        targets_(recipe.targets, first_target, budget) {}

  Status make(const Record& record, Random& random, Sample& sample) override {
    if (Status taken = targets_.take(record); !taken.is_ok()) return taken;
    SampleImage image{static_cast<std::uint8_t*>(sample[image_field].data), output_, sample,
                      scratch_, targets_.move() ? &targets_ : nullptr};
    const std::size_t bytes = views_ * image.bytes();
    std::span<const std::byte> kept;
    if (may_be_kept_) kept = sample.cached();
    if (kept.size() == bytes) {
      sample.enter_stage(augment_stage);
    } else {
      std::span<std::byte> room;
      if (may_be_kept_) room = sample.room_in_cache();
      // What a transform that wraps this one keeps is none of its business.
      if (room.size() != bytes) room = {};
      if (Status made = make_pixels(record, random, sample, room, image.pixels); !made.is_ok())
        return made;
      kept = room;
    }
    if (!kept.empty()) {
      const Program::Flips flips = program_.flips(random);
      for (std::size_t view = 0; view < views_; ++view)
        take_kept(kept.subspan(view * image.bytes(), image.bytes()), flips, view_of(image, view));
    }
    // Each has the same random numbers.
    const Random begin = random;
    for (std::size_t view = 0; view < views_; ++view) {
      random = begin;
      SampleImage one = view_of(image, view);
      program_.run(one, random);
    }
    return targets_.write(sample);
  }

 private:
  /// Makes what the operations that fold make of the image; where there is room to keep it, what
  /// the geometric ones make, and there.
  Status make_pixels(const Record& record, Random& random, Sample& sample,
                     std::span<std::byte> room, std::uint8_t* output) {
    if (Status opened = decoder_->open(record["image"]); !opened.is_ok()) return opened;

    if (needs_orientation_)
      if (Status read = read_image_info(record["image"], info_); !read.is_ok()) return read;
    const Size stored = decoder_->header().size();
    const int orientation = info_.orientation.value_or(1);
    folds_.clear();
    const Random begin = random;
    for (int view = 0; view < static_cast<int>(views_); ++view) {
      random = begin;
      folds_.push_back(room.empty() ? program_.fold(stored, orientation, random, view)
                                    : program_.fold_geometry(stored, orientation, view));
      if (!folds_.back().problem.empty()) return Status::bad(folds_.back().problem);
    }
    // Views are windows of one resized image.
    const Size to = folds_.front().resampling.to;
    if (std::int64_t{to.width} * to.height > max_resized_pixels)
      return Status::bad("resized to " + std::to_string(to.width) + " x " +
                         std::to_string(to.height) + " pixels; at most " +
                         std::to_string(max_resized_pixels / 1'000'000) + " megapixels are made");

    if (targets_.move())
      if (Status placed = targets_.place(stored, folds_.front()); !placed.is_ok()) return placed;
    const int reduction = resolution_ == Resolution::reduced ? folds_.front().reduction() : 1;
    Region needed{};
    for (Fold& fold : folds_) {
      if (reduction > 1) fold.reduce(reduction);
      needed = needed.width > 0 ? around(needed, prepare(fold)) : prepare(fold);
    }
    // However this ends: others may wait for the memory.
    const struct Close {
      ImageDecoder& decoder;
      ~Close() { decoder.close(); }
    } at_end{*decoder_};
    if (sample.has_notes()) decoder_->use_index(sample.note(), image_checksum(record));
    PixelView pixels;
    Status decoded = reduction > 1 ? decoder_->decode_reduced(needed, reduction, pixels)
                                   : decoder_->decode(needed, pixels);
    if (!decoded.is_ok()) return decoded;

    if (const auto index = decoder_->new_index(); !index.empty()) sample.keep_note(index);
    sample.made_by(decoder_->header().decoder);
    sample.enter_stage(augment_stage);
    if (!room.empty()) output = reinterpret_cast<std::uint8_t*>(room.data());
    if (views_ == 1) {
      resample(folds_.front(), pixels, output);
      return Status::ok();
    }
    for (const Fold& fold : folds_) {
      const Region part = prepare(fold);
      resample(fold,
               {pixels.pixels + static_cast<std::size_t>(part.y - needed.y) * pixels.stride +
                    static_cast<std::size_t>(part.x - needed.x) * 3,
                part.width, part.height, pixels.stride},
               output);
      output +=
          3 * static_cast<std::size_t>(output_.width) * static_cast<std::size_t>(output_.height);
    }
    return Status::ok();
  }

  static SampleImage view_of(const SampleImage& image, std::size_t view) {
    SampleImage one = image;
    one.pixels += view * image.bytes();
    return one;
  }

  /// Makes the resampler's tables; returns which region of the stored image it needs.
  Region prepare(const Fold& fold) {
    Region needed = resampler_.prepare(fold.resampling);
    const Region box = fold.stored_box();
    needed.x += box.x;
    needed.y += box.y;
    return needed;
  }

  /// The smallest region with both.
  static Region around(const Region& a, const Region& b) {
    const int x = std::min(a.x, b.x);
    const int y = std::min(a.y, b.y);
    return {x, y, std::max(a.x + a.width, b.x + b.width) - x,
            std::max(a.y + a.height, b.y + b.height) - y};
  }

  static void take_kept(std::span<const std::byte> kept, Program::Flips flips, SampleImage image) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(kept.data());
    if (!flips.flipped && !flips.mirrored) {
      std::memcpy(image.pixels, from, kept.size());
      return;
    }
    const std::size_t row = static_cast<std::size_t>(image.size.width) * 3;
    std::uint8_t* to = image.pixels + (flips.flipped ? kept.size() : 0);
    for (int y = 0; y < image.size.height; ++y, from += row) {
      if (flips.flipped) to -= row;
      if (flips.mirrored)
        mirror_rows(from, {image.size.width, 1}, to);
      else
        std::memcpy(to, from, row);
      if (!flips.flipped) to += row;
    }
  }

  void resample(const Fold& fold, const PixelView& pixels, std::uint8_t* output) {
    const std::size_t stride = static_cast<std::size_t>(fold.output.width) * 3;
    const Region& window = fold.resampling.window;
    const Frame& frame = fold.frame;
    if (frame.shown() && !frame.holds_window()) {
      const std::size_t row = static_cast<std::size_t>(window.width) * 3;
      const Scratch::Borrowed aside =
          scratch_.borrow(row * static_cast<std::size_t>(window.height));
      resampler_.run(pixels, aside.data(), row);
      frame.fill(fold.resampling, aside.data(), row, output);
      return;
    }
    if (!frame.shown() && (window.width < fold.output.width || window.height < fold.output.height))
      std::memset(output, 0, stride * static_cast<std::size_t>(fold.output.height));
    std::uint8_t* corner =
        output + static_cast<std::size_t>(fold.y) * stride + static_cast<std::size_t>(fold.x) * 3;
    resampler_.run(pixels, corner, stride);
    if (frame.shown()) frame.fill(fold.resampling, corner, stride, output);
  }

  const Program& program_;
  const Size output_;
  const Resolution resolution_;
  const std::size_t views_;
  const bool may_be_kept_;
  const bool needs_orientation_;
  ImageInfo info_;
  std::unique_ptr<ImageDecoder> decoder_;
  Resampler resampler_;
  /// Of the sample that is made, one for each of its images.
  std::vector<Fold> folds_;
  Scratch scratch_;
  TargetWorkers targets_;
};

class ImageTransform : public Transform {
 public:
  ImageTransform(const Recipe& recipe, const DecodeLimits& limits)
      : budget_(std::make_shared<DecodeBudget>(limits)),
        recipe_(recipe),
        json_(recipe.to_json()),
        program_(recipe.output, recipe.ops, recipe.like),
        mix_(recipe.mix ? mix_transform(*recipe.mix) : nullptr),
        spec_(spec_of(recipe, program_)),
        fixed_part_(fixed_part_of(recipe, limits, program_)) {}

  const SampleSpec& spec() const override { return spec_; }
  std::vector<std::string> stages() const override { return {"decode", "augment"}; }
  std::string description() const override { return json_; }
  std::string fingerprint_of() const override { return "recipe"; }
  std::optional<std::uint64_t> fingerprint() const override {
    return XXH3_64bits(json_.data(), json_.size());
  }
  std::shared_ptr<const BatchTransform> batch_transform() const override { return mix_; }
  FixedPart fixed_part() const override { return fixed_part_; }
  std::unique_ptr<TransformWorker> make_worker() const override {
    return std::make_unique<ImageWorker>(program_, recipe_, budget_);
  }

 private:
  std::shared_ptr<DecodeBudget> budget_;
  Recipe recipe_;
  std::string json_;
  Program program_;
  std::shared_ptr<const BatchTransform> mix_;
  SampleSpec spec_;
  FixedPart fixed_part_;
};

}  // namespace

std::optional<std::uint64_t> image_checksum(const Record& record) {
  // Another transform may note something of another field.
  constexpr std::uint64_t image = 0x696D616765;  // "image"
  const std::optional<std::uint64_t> checksum = record.checksum();
  return checksum ? std::optional(*checksum ^ image) : std::nullopt;
}

std::shared_ptr<const Transform> image_transform(const Recipe& recipe, const DecodeLimits& limits) {
  recipe.validate();
  return std::make_shared<const ImageTransform>(recipe, limits);
}

}  // namespace millrace
