// SPDX-License-Identifier: Apache-2.0
#include "dataset/open/format.h"

#include <string>
#include <system_error>

namespace millrace {

std::shared_ptr<const Dataset> open_by_format(std::span<const Format> formats,
                                              const std::filesystem::path& path,
                                              OpenOptions options) {
  std::error_code ignored;
  if (std::filesystem::status(path, ignored).type() == std::filesystem::file_type::not_found)
    throw Error(ErrorCode::not_found,
                path.string() + " does not exist; make it with `millrace pack`");
  std::string reasons;
  for (const Format& format : formats) {
    const Status found = format.probe(path);
    if (found.is_ok()) return format.open(path, options);
    reasons += (reasons.empty() ? "" : "; ") + std::string(format.name) + ": " + found.reason();
  }
  throw Error(ErrorCode::corrupt,
              path.string() + " is no dataset of a format that millrace knows (" + reasons +
                  "); make one of a folder of images with `millrace pack`",
              "", {}, reasons);
}

}  // namespace millrace
