// SPDX-License-Identifier: Apache-2.0
#include "dataset/array/array_description.h"

#include <millrace/detail/json_text.h>
#include <millrace/error.h>

#include <algorithm>
#include <climits>
#include <map>
#include <optional>
#include <utility>

#include "base/file_descriptor.h"
#include "base/json_members.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Largest length of a field's name, since messages contain whole names.
constexpr std::size_t max_name_bytes = 200;
constexpr const char* arrays_format = "arrays";
constexpr const char* key_of_shards = "millrace_shards";
constexpr std::uint64_t max_count = max_value_bytes;

/// Reads the key "dtype". For an unknown name the error lists all dtypes.
DType read_dtype(const Members& members, const JsonLocation& location) {
  const Json* value = members.find("dtype");
  if (value == nullptr)
    location.fail(location.name("dtype") + " is missing; a raw file does not say it");
  if (value->is_string())
    if (const auto dtype = dtype_of(value->get_ref<const std::string&>())) return *dtype;
  std::string names;
  for (auto number = 0; number <= static_cast<int>(DType::boolean); ++number)
    names += (names.empty() ? "" : ", ") + std::string(to_string(static_cast<DType>(number)));
  location.fail("dtype", *value, "one of " + names);
}

std::vector<std::uint64_t> read_extents(const Members& members, const JsonLocation& location) {
  const Json* value = members.find("shape");
  if (value == nullptr) return {};
  const auto is_extent = [](const Json& extent) {
    return extent.is_number_unsigned() && extent.get<std::uint64_t>() > 0 &&
           extent.get<std::uint64_t>() <= max_count;
  };
  if (!value->is_array() || value->size() >= Shape::max_rank ||
      !std::ranges::all_of(*value, is_extent))
    location.fail(
        "shape", *value,
        "a list of up to " + std::to_string(Shape::max_rank - 1) + " extents of 1 or more");
  return value->get<std::vector<std::uint64_t>>();
}

/// Reads a list of texts. If `single` is set, a text counts as a list with one element.
std::vector<std::string> read_name_list(const Members& members, const JsonLocation& location,
                                        const char* key, bool single) {
  const Json* value = members.find(key);
  if (value == nullptr) return {};
  if (single && value->is_string()) return {value->get<std::string>()};
  const bool texts = value->is_array() && !value->empty() &&
                     std::ranges::all_of(*value, [](const Json& text) { return text.is_string(); });
  if (!texts) location.fail(key, *value, single ? "a name, or a list of names" : "a list of texts");
  return value->get<std::vector<std::string>>();
}

class DescriptionReader {
 public:
  DescriptionReader(const fs::path& path, bool mapped) : name_(path.string()), mapped_(mapped) {
    // If the path is a symbolic link, the files are in the folder of its target.
    folder_ = resolved(path).parent_path();
  }

  ArrayDescription read(const Json& json) {
    const JsonLocation location(name_, "");
    if (!json.is_object()) location.fail("it is not an object in { }");
    const Members members(json, location,
                          {"format", "classes", "raw", "header_bytes", "record_bytes", "fields"});
    const Json* format = members.find("format");
    if (format == nullptr) location.fail("\"format\" is missing, must be \"arrays\"");
    if (*format != arrays_format) location.fail("format", *format, "\"arrays\"");
    description_.classes = read_name_list(members, location, "classes", false);
    common_files_ = read_name_list(members, location, "raw", true);
    read_layout(members, common_);
    if (common_files_.empty() && (members.find("header_bytes") || members.find("record_bytes")))
      location.fail("\"raw\" is missing beside \"header_bytes\" or \"record_bytes\"");
    const Json* fields = members.object("fields");
    if (fields == nullptr || fields->empty())
      location.fail("\"fields\" is missing or empty; it has the fields by their names");
    for (const auto& [field, value] : fields->items()) {
      const JsonLocation of_field(name_, "fields." + field);
      if (field.empty() || field.size() > max_name_bytes)
        location.fail("\"fields\" has a name that is empty or longer than " +
                      std::to_string(max_name_bytes) + " bytes");
      if (!value.is_object()) location.fail("fields." + field, value, "an object in { }");
      try {
        description_.fields.push_back(read_field(field, value, of_field));
      } catch (const Error& error) {
        if (error.code() == ErrorCode::invalid_argument) throw;
        throw error.with_context(name_ + ": \"fields." + field + "\": ");
      }
    }
    check_lengths();
    return std::move(description_);
  }

 private:
  static void read_layout(const Members& members, RawLayout& layout) {
    members.read("header_bytes", 0, max_count, layout.header_bytes);
    if (members.find("record_bytes") != nullptr)
      members.read("record_bytes", 1, max_count, layout.record_bytes.emplace());
  }

  ArrayField read_field(const std::string& name, const Json& json, const JsonLocation& location) {
    const bool npy = json.contains("npy");
    const bool raw = json.contains("raw");
    if (npy && raw)
      location.fail(location.name("npy") + " and " + location.name("raw") + " exclude each other");
    if (!npy && !raw && common_files_.empty())
      location.fail("neither " + location.name("npy") + " nor " + location.name("raw") +
                    " is there");
    // Allows only the keys that apply. A .npy file states its own layout. A field without its own
    // file has the layout of the common files.
    const Members members =
        npy   ? Members(json, location, {"npy", "window", "offsets", "max_length", "image", "as"})
        : raw ? Members(json, location,
                        {"raw", "header_bytes", "record_bytes", "offset", "dtype", "shape",
                         "window", "offsets", "max_length", "image", "as"})
              : Members(
                    json, location,
                    {"offset", "dtype", "shape", "window", "offsets", "max_length", "image", "as"});
    std::optional<StoredArray> array;
    const auto add = [&](StoredArray more) {
      if (array)
        append(*array, std::move(more));
      else
        array = std::move(more);
    };
    if (npy) {
      for (const std::string& file : read_name_list(members, location, "npy", true))
        add(npy_array(open(file)));
    } else {
      RawLayout layout = raw ? RawLayout() : common_;
      if (raw) read_layout(members, layout);
      members.read("offset", 0, max_count, layout.offset);
      layout.dtype = read_dtype(members, location);
      layout.extents = read_extents(members, location);
      for (const std::string& file :
           raw ? read_name_list(members, location, "raw", true) : common_files_)
        add(raw_array(open(file), layout));
    }
    return shaped(name, std::move(*array), members, location);
  }

  /// Applies the field's keys to its array: windows, offsets, image and int64.
  ArrayField shaped(const std::string& name, StoredArray array, const Members& members,
                    const JsonLocation& location) {
    if (const Json* window = members.object("window")) {
      const JsonLocation of_window(name_, "fields." + name + ".window");
      const Members lengths(*window, of_window, {"length", "stride"});
      std::uint64_t length = 0;
      lengths.read("length", 1, max_count, length);
      if (length == 0) of_window.fail(of_window.name("length") + " is missing");
      std::uint64_t stride = length;
      lengths.read("stride", 1, max_count, stride);
      if (members.find("offsets") != nullptr)
        location.fail(location.name("window") + " and " + location.name("offsets") +
                      " exclude each other");
      array = windows_of(std::move(array), length, stride);
    }
    ArrayField field(name, std::move(array));
    std::uint64_t max_length = 0;
    members.read("max_length", 1, UINT32_MAX, max_length);
    if (const Json* offsets = members.find("offsets")) {
      if (!offsets->is_string()) location.fail("offsets", *offsets, "the name of a .npy file");
      field.vary_by(npy_array(open(offsets->get<std::string>())), max_length);
    } else if (max_length > 0) {
      location.fail(location.name("max_length") + " needs " + location.name("offsets") +
                    " beside it");
    }
    const Json* image = members.find("image");
    const Json* as = members.find("as");
    if (image != nullptr && as != nullptr)
      location.fail(location.name("image") + " and " + location.name("as") + " exclude each other");
    if (as != nullptr) {
      if (*as != "int64") location.fail("as", *as, "\"int64\"");
      field.widen();
    }
    if (image != nullptr) {
      constexpr std::pair<const char*, PixelOrder> orders[] = {
          {"chw", PixelOrder::chw}, {"hwc", PixelOrder::hwc}, {"grey", PixelOrder::grey}};
      const auto* const order =
          std::ranges::find_if(orders, [&](const auto& one) { return *image == one.first; });
      if (order == std::end(orders)) location.fail("image", *image, R"("chw", "hwc" or "grey")");
      field.encode(order->second);
    }
    return field;
  }

  /// Returns the file of that name. Opens it at the first call.
  std::shared_ptr<const ArrayFile> open(const std::string& name) {
    if (name.empty() || name.size() > PATH_MAX || name.find('\0') != std::string::npos)
      throw Error(ErrorCode::corrupt, "\"" + cut(name.c_str()) + "\" is not a file name");
    const fs::path path = folder_ / name;
    std::shared_ptr<const ArrayFile>& file = files_[path];
    if (!file) {
      file = ArrayFile::open(path, mapped_);
      description_.files.push_back(file->name());
      for (const std::string& warning : file->warnings())
        if (std::ranges::find(description_.warnings, warning) == description_.warnings.end())
          description_.warnings.push_back(warning);
    }
    return file;
  }

  void check_lengths() const {
    const ArrayField& first = description_.fields.front();
    for (const ArrayField& field : description_.fields)
      if (field.records() != first.records())
        throw Error(ErrorCode::corrupt, name_ + ": the field \"" + first.spec().name + "\" has " +
                                            std::to_string(first.records()) + " records and \"" +
                                            field.spec().name + "\" has " +
                                            std::to_string(field.records()) +
                                            "; fields that are read side by side have as many");
  }

  std::string name_;
  fs::path folder_;
  bool mapped_;
  ArrayDescription description_;
  std::map<fs::path, std::shared_ptr<const ArrayFile>> files_;
  std::vector<std::string> common_files_;
  RawLayout common_;
};

}  // namespace

bool is_array_description(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  if (json_problem(text).empty()) {
    const Json json = Json::parse(text);
    const auto format = json.find("format");
    return !json.contains(key_of_shards) &&
           (json.contains("fields") || (format != json.end() && *format == arrays_format));
  }
  // Damaged JSON that contains "fields" counts as a description: opening it then throws an error
  // that locates the mistake.
  return text.find("\"fields\"") != std::string_view::npos &&
         text.find(key_of_shards) == std::string_view::npos;
}

ArrayDescription read_array_description(const std::string& text, const fs::path& path,
                                        bool mapped) {
  if (const std::string problem = json_problem(text); !problem.empty())
    throw Error(ErrorCode::corrupt, path.string() + ", a description of arrays, " + problem);
  try {
    return DescriptionReader(path, mapped).read(Json::parse(text));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    throw Error(ErrorCode::corrupt, error.what());
  }
}

}  // namespace millrace
