// SPDX-License-Identifier: Apache-2.0
//
// Two named databases: one has the records, the other their labels under the same keys.
#include <utility>

#include "dataset/lmdb/foreign_file.h"
#include "dataset/lmdb/lmdb_formats.h"

namespace millrace {
namespace {

constexpr std::string_view format = "databases";

struct NamedSchema {
  std::string_view name;
  std::unique_ptr<LmdbSchema> (*make)();
};
/// The schemas in the order in which they are probed.
constexpr NamedSchema schemas[] = {{"images", plain_images},
                                   {"caffe-datum", caffe_datum},
                                   {"caffe2-tensors", caffe2_tensors},
                                   {"tuples", tuples}};

std::string names_of(const std::vector<std::string>& all) {
  std::string names;
  for (const std::string& name : all) names += (names.empty() ? "" : ", ") + KeyNames().name(name);
  return names;
}

}  // namespace

Status probe_databases(const std::filesystem::path& path) {
  return look_at_main(path, [](const LmdbFile& file, const LmdbTree& main) {
    return holds_databases(file, main) ? Status::ok()
                                       : Status::bad("its main database holds no others");
  });
}

std::shared_ptr<const Dataset> open_databases(const std::filesystem::path& path,
                                              const OpenOptions& given) {
  OpenOptions options = given;
  if (options.images.empty()) {
    const ForeignFile file(path, options);
    const std::vector<std::string> names =
        file.guarded([&] { return database_names(file.file()); });
    if (names.size() != 1)
      throw Error(ErrorCode::corrupt,
                  file.file().name() + " has several databases (" + names_of(names) +
                      "); say which one has the images (--images NAME), and which one their labels "
                      "(--labels NAME)");
    options.images = names.front();
  }
  ForeignFile file(path, options);
  const LmdbTree tree = file.database(options.images);
  std::string reasons;
  for (const auto& [name, make] : schemas) {
    const Survey found = survey(file.file(), tree, *make());
    if (found.fits()) return file.open(make(), format);
    reasons += (reasons.empty() ? "" : "; ") + std::string(name) + ": " + found.why_not();
  }
  throw Error(ErrorCode::corrupt,
              file.file().name() + ": the database " + options.images +
                  " has records of an unknown kind (" + reasons + ")",
              "", {}, reasons);
}

}  // namespace millrace
