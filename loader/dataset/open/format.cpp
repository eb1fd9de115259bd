// SPDX-License-Identifier: Apache-2.0
#include "dataset/open/format.h"

#include <millrace/detail/json_text.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace millrace {
namespace {

const Format& format_of(std::span<const Format> formats, std::string_view name) {
  std::string names;
  for (const Format& format : formats) {
    if (format.name == name) return format;
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  }
  throw Error(ErrorCode::invalid_argument,
              "there is no format \"" + cut(std::string(name)) + "\"; there are: " + names);
}

std::shared_ptr<const Dataset> open_as(const Format& format, const std::filesystem::path& path,
                                       const OpenOptions& options) {
  if (!format.has_databases && !(options.images.empty() && options.labels.empty()))
    throw Error(ErrorCode::invalid_argument,
                path.string() + " is of the format \"" + std::string(format.name) +
                    "\", which has no databases with names: give none for images and labels");
  return format.open(path, options);
}

}  // namespace

std::shared_ptr<const Dataset> open_by_format(std::span<const Format> formats,
                                              const std::filesystem::path& path,
                                              const OpenOptions& options) {
  std::error_code ignored;
  const bool is_there =
      std::filesystem::status(path, ignored).type() != std::filesystem::file_type::not_found;
  const auto takes_name = [&](const Format& format) {
    return format.probe_name != nullptr && format.probe_name(path).is_ok();
  };
  if (!is_there && std::ranges::none_of(formats, takes_name))
    throw Error(ErrorCode::not_found,
                path.string() + " does not exist; make it with `millrace pack`");
  if (!options.format.empty()) return open_as(format_of(formats, options.format), path, options);
  std::string reasons, names, last;
  for (const Format& format : formats) {
    if (!is_there) {
      if (takes_name(format)) return open_as(format, path, options);
      continue;
    }
    const Status found = format.probe(path);
    if (found.is_ok()) return open_as(format, path, options);
    // Consecutive formats with the same reason are listed together.
    if (!names.empty() && found.reason() != last) {
      reasons += names + ": " + last + "; ";
      names.clear();
    }
    names += (names.empty() ? "" : ", ") + std::string(format.name);
    last = found.reason();
  }
  reasons += names + ": " + last;
  throw Error(ErrorCode::corrupt,
              path.string() + " is not a dataset in a known format (" + reasons +
                  "); make one with `millrace pack`",
              "", {}, reasons);
}

}  // namespace millrace
