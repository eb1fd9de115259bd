// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/pack_source.h"

#include <fmt/core.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/stored_hints.h>
#include <millrace/detail/webdataset_sample.h>
#include <millrace/error.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <regex>
#include <span>
#include <string_view>
#include <system_error>

#include "command/console/output_file.h"
#include "command/dataset/inspect_survey.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> matches_of(const std::string& pattern) {
  // Skipping an unreadable folder would leave out its files without a message.
  return glob_matches(pattern, [](const char*, int error) { return error == ENOENT ? 0 : 1; });
}

/// Throws `Error` (`io`) if a folder on the pattern's path cannot be searched. glob(3) would treat
/// such a folder as empty.
void check_searched(const std::string& pattern) {
  for (std::size_t slash = pattern.find('/', 1); slash != std::string::npos;
       slash = pattern.find('/', slash + 1))
    for (const std::string& folder : matches_of(pattern.substr(0, slash))) {
      struct stat found {};
      if (stat((fs::path(folder) / ".").c_str(), &found) != 0 && errno != ENOENT &&
          errno != ENOTDIR)
        throw Error(ErrorCode::io, folder + " cannot be searched: " + errno_text(errno));
    }
}

/// Returns the file that has this name, or the files that match it as a pattern. Braces expand in
/// their order; matches of wildcards are sorted by name.
std::vector<fs::path> expand(const std::string& name) {
  if (fs::exists(name)) return {name};
  if (!is_pattern(name)) throw Error(ErrorCode::not_found, name + " does not exist");
  std::vector<fs::path> found;
  for (const std::string& part : expand_braces(name)) {
    if (!has_wildcard(part)) {
      if (!fs::exists(part)) throw Error(ErrorCode::not_found, part + " does not exist");
      found.emplace_back(part);
      continue;
    }
    check_searched(part);
    const std::vector<std::string> matches = matches_of(part);
    if (matches.empty()) throw Error(ErrorCode::not_found, part + " matches no file");
    found.insert(found.end(), matches.begin(), matches.end());
  }
  return found;
}

std::vector<fs::path> tars_of(const std::vector<std::string>& inputs) {
  std::vector<fs::path> tars;
  for (const std::string& input : inputs)
    for (const fs::path& tar : expand(input)) {
      const auto refuse = [&](const char* what) {
        throw Error(ErrorCode::invalid_argument, tar.string() + what);
      };
      if (fs::is_directory(tar)) refuse(" is a folder; give one folder, or several tars");
      // The file is read twice, so it must not be a pipe.
      if (!fs::is_regular_file(tar)) refuse(" is neither a folder nor a file");
      if (fs::file_size(tar) == 0) refuse(" is empty, and not a tar");
      if (is_dataset(tar))
        refuse(" is an LMDB file or a list of shards, and not a tar; several inputs must be tars");
      tars.push_back(tar);
    }
  return tars;
}

/// Whether a file has the name of a shard of `out`, or of a shard's replacement or index.
bool is_shard_of(const fs::path& out, const fs::path& file) {
  static const std::regex digits("-[0-9]{5}(-of-[0-9]{5})?([.][1-9][0-9]*)?");
  const std::string begin = out.stem().string();
  std::string name = file.filename().string();
  for (const std::string_view end : {".replacement", ".index"})
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  const std::string end = out.extension().string();
  return name.size() > begin.size() + end.size() && name.starts_with(begin) &&
         name.ends_with(end) &&
         std::regex_match(name.substr(begin.size(), name.size() - begin.size() - end.size()),
                          digits);
}

/// Returns the files of a dataset that an earlier run made at `out`: the dataset, its shards,
/// replacements and indices.
std::vector<fs::path> datasets_at(const fs::path& out) {
  std::vector<fs::path> datasets = {out, out.string() + ".replacement"};
  std::erase_if(datasets, [](const fs::path& path) { return !is_dataset(path); });
  const std::string index = stored_hints_path(out).string();
  for (const std::string& name : {index, index + ".replacement"})
    if (fs::exists(name)) datasets.emplace_back(name);
  const fs::path folder = out.has_parent_path() ? out.parent_path() : ".";
  std::error_code ended;  // an error counts as the end of the folder
  for (fs::directory_iterator entry(folder, ended), end; !ended && entry != end;
       entry.increment(ended))
    if (is_shard_of(out, entry->path()) &&
        (is_dataset(entry->path()) || is_hints_file(entry->path())))
      datasets.push_back(entry->path());
  return datasets;
}

/// Whether `millrace pack` itself makes a field of this name for a record with an image.
bool is_made_anew(std::string_view field) {
  return field == "path" || field == "width" || field == "height";
}

/// Returns the path of an image's mask. `image` is the image's path within the input folder.
fs::path mask_of(const fs::path& masks, const std::string& image) {
  return (masks / image).replace_extension(".png");
}

}  // namespace

/// Hash of everything that the records depend on.
class ListingHash {
 public:
  void add(std::string_view text) {
    add(text.size());
    XXH3_64bits_update(state_.get(), text.data(), text.size());
  }
  void add(std::uint64_t number) { XXH3_64bits_update(state_.get(), &number, sizeof number); }
  void add(const Listing& listing) {
    add(listing.images.size());
    for (const ListedImage& image : listing.images) {
      add(image.path);
      add(static_cast<std::uint64_t>(image.label));
    }
    for (const LeftOut& file : listing.left_out) add(file.path);
    for (const std::string& name : listing.classes) add(name);
  }
  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Deleter {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  static XXH3_state_t* begin() {
    XXH3_state_t* state = XXH3_createState();
    XXH3_64bits_reset(state);
    return state;
  }
  std::unique_ptr<XXH3_state_t, Deleter> state_{begin()};
};

namespace {

/// Adds the size and the modification time of a file.
void add_state_of(const std::string& file, ListingHash& hash) {
  struct stat found {};
  if (stat(file.c_str(), &found) != 0)
    throw Error(ErrorCode::io, file + " cannot be read: " + errno_text(errno));
  hash.add(static_cast<std::uint64_t>(found.st_size));
  hash.add(static_cast<std::uint64_t>(found.st_mtim.tv_sec));
  hash.add(static_cast<std::uint64_t>(found.st_mtim.tv_nsec));
}

}  // namespace

bool is_image_folder(const fs::path& input) {
  return fs::is_directory(input) && !fs::exists(input / "data.mdb");
}

bool is_pattern(const std::string& name) { return has_wildcard(name) || has_braces(name); }

std::shared_ptr<const Dataset> PackSource::open(const std::string& input,
                                                const OpenOptions& options) {
  if (!options.format.empty() || !options.images.empty()) return open_dataset(input, options);
  if (fs::is_directory(input))
    return is_image_folder(input) ? nullptr : open_dataset(input, options);
  // Returns null for a tar: other code packs tars, and can also decompress them.
  if (!fs::is_regular_file(input) || fs::path(input).extension() == ".tar") return nullptr;
  if (is_dataset(input)) return fs::file_size(input) == 0 ? nullptr : open_dataset(input, options);
  try {
    std::shared_ptr<const Dataset> found = open_dataset(input, options);
    const std::vector<std::string> files = found->facts().files;
    const bool is_tar = found->facts().format == "tars" && files == std::vector{input};
    return is_tar ? nullptr : found;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    return nullptr;  // it may be a compressed tar
  }
}

PackSource::PackSource(const PackOptions& options) {
  const std::vector<std::string>& inputs = options.inputs;
  if (inputs.size() == 1 && options.list.empty()) dataset_ = open(inputs[0], options.dataset);
  const bool is_folder = inputs.size() == 1 && fs::is_directory(inputs[0]);
  if ((dataset_ || !is_folder) && !(options.masks.empty() && options.coco.empty()))
    throw Error(ErrorCode::invalid_argument,
                inputs[0] + " is not a folder of images, which --masks and --coco need");
  ListingHash hash;
  const std::string what = dataset_    ? take_dataset(options, hash)
                           : is_folder ? take_folder(options, hash)
                                       : take_tars(options, hash);
  hash.add(listing_);
  // The identity is printable, since the dataset stores it as text.
  identity_ = fmt::format("{}: {} images, listing {:016x}", printable(what), listing_.images.size(),
                          hash.value());
}

std::string PackSource::take_dataset(const PackOptions& options, ListingHash& hash) {
  const std::string& input = options.inputs[0];
  const DatasetFacts facts = dataset_->facts();
  for (const std::string& file : facts.files) check_not_input(options.out, file);
  check_not_input(options.out, input);
  reader_ = dataset_->make_reader();
  kept_ = facts.fields;
  has_integer_labels_ = may_be_integer(dataset_->field_specs(), "label");
  if (const auto image = std::ranges::find(kept_, "image"); image != kept_.end()) {
    kept_.erase(image);
    has_images_ = true;
    // `millrace pack` makes these fields itself.
    std::erase_if(kept_, is_made_anew);
  }
  listing_.images.resize(static_cast<std::size_t>(dataset_->size()));
  listing_.classes = dataset_->classes();
  hash.add(facts.fingerprint.value_or(0));
  if (!facts.fingerprint)
    for (const std::string& file : facts.files) add_state_of(file, hash);
  std::error_code is_pattern_or_gone;
  const fs::path real = fs::canonical(input, is_pattern_or_gone);
  return is_pattern_or_gone ? input : real.string();
}

std::string PackSource::take_tars(const PackOptions& options, ListingHash& hash) {
  std::vector<fs::path> tars = tars_of(options.inputs);
  for (const fs::path& tar : tars) check_not_input(options.out, tar);
  if (!options.list.empty())
    throw Error(ErrorCode::invalid_argument,
                tars[0].string() + " is not a folder, which --list needs");
  listing_ = list_tars(tars, options.max_expansion);
  for (const fs::path& tar : tars) {
    hash.add(fs::canonical(tar).string());
    hash.add(fs::file_size(tar));
  }
  std::string what = fs::canonical(tars[0]).string() +
                     (tars.size() == 1 ? "" : fmt::format(" and {} more tars", tars.size() - 1));
  tars_.emplace(std::move(tars));
  return what;
}

std::string PackSource::take_folder(const PackOptions& options, ListingHash& hash) {
  const fs::path out = options.out;
  folder_ = options.inputs[0];
  std::string what = fs::canonical(folder_).string();
  if (!options.coco.empty()) {
    check_not_input(out, options.coco);
    coco_ = read_coco(options.coco);
    for (const CocoImage& image : coco_->images) listing_.images.push_back({.path = image.file});
    listing_.classes = coco_->classes;
    hash.add(coco_->hash);
    what += " by " + fs::canonical(options.coco).string();
  } else if (!options.list.empty()) {
    check_not_input(out, options.list);
    listing_ = read_list(options.list);
    what += " by a list";
  } else {
    listing_ = list_folder(folder_, datasets_at(out));
  }
  if (!options.masks.empty()) what += take_masks(options, hash);
  if (fs::exists(out) && !is_dataset(out))
    for (const ListedImage& image : listing_.images) {
      check_not_input(out, folder_ / image.path);
      if (!masks_.empty()) check_not_input(out, mask_of(masks_, image.path));
    }
  return what;
}

std::string PackSource::take_masks(const PackOptions& options, ListingHash& hash) {
  masks_ = options.masks;
  const auto refuse = [&](ErrorCode code, const char* what) {
    throw Error(code, options.masks + what);
  };
  if (!fs::exists(masks_)) refuse(ErrorCode::not_found, " does not exist");
  if (!fs::is_directory(masks_))
    refuse(ErrorCode::invalid_argument, " is not a folder; --masks names the folder of the masks");
  const fs::path masks = fs::canonical(masks_), images = fs::canonical(folder_);
  const bool is_listed = !options.coco.empty() || !options.list.empty();
  if (!is_listed && std::ranges::mismatch(images, masks).in1 == images.end())
    refuse(ErrorCode::invalid_argument,
           " lies in the folder of the images, of which every file is packed; move it elsewhere");
  hash.add(masks.string());
  return " with masks of " + masks.string();
}

UncheckedImage PackSource::image(std::size_t item) {
  if (dataset_) return record(item);
  const ListedImage& listed = listing_.images[item];
  if (tars_) return {.bytes = tars_->read(listed)};
  UncheckedImage image{.file = folder_ / listed.path};
  if (!masks_.empty()) image.mask = mask_of(masks_, listed.path);
  if (coco_) {
    image.rest = coco_fields(*coco_, item);
    image.width = coco_->images[item].width;
    image.height = coco_->images[item].height;
  }
  return image;
}

std::vector<FieldSpec> PackSource::field_specs() const {
  if (!dataset_) return {};
  std::vector<FieldSpec> specs = dataset_->field_specs();
  std::erase_if(specs, [&](const FieldSpec& spec) {
    return std::ranges::find(kept_, spec.name) == kept_.end();
  });
  return specs;
}

std::string PackSource::path(std::size_t item) const {
  return dataset_ ? dataset_->key(item) : listing_.images[item].path;
}

bool PackSource::is_packed(std::string_view field) const {
  return (has_images_ && (field == "image" || is_made_anew(field))) ||
         std::ranges::find(kept_, field) != kept_.end();
}

UncheckedImage PackSource::record(std::uint64_t index) {
  UncheckedImage image{.rest = RecordRest{.has_image = has_images_}};
  // After an I/O error the record must not be left out, because a later attempt may read it.
  const auto check_read = [&] {
    if (const Status intact = reader_->intact(); !intact.is_ok())
      throw Error(ErrorCode::io,
                  fmt::format("record {} of {}: {}", index, dataset_->name(), intact.reason()));
  };
  try {
    const Record record = reader_->read(index);
    const auto copy_of = [&](const std::string& name) {
      if (!record.has(name) && image.status.is_ok())
        image.status = Status::bad("has no field \"" + name + "\", unlike those before it");
      const auto bytes = record.has(name) ? record[name] : std::span<const std::byte>();
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    if (has_images_) image.bytes = copy_of("image");
    for (const std::string& name : kept_) image.rest->fields.push_back({name, copy_of(name)});
    for (const RecordField& field : record.fields())
      if (image.status.is_ok() && !is_packed(field.name))
        image.status = Status::bad("has a field \"" + std::string(field.name) +
                                   "\", which those before it do not have");
    check_read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_record) throw;
    check_read();
    image.status = Status::bad(error.reason());
  }
  return image;
}

}  // namespace millrace::cli
