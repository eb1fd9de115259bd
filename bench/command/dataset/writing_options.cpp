// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/writing_options.h"

#include "command/console/option_checks.h"

namespace millrace::cli {

void add_writing(CLI::App& app, PackOptions& options) {
  CLI::Option* force = app.add_flag("--force", options.force, "Replace OUT if it exists");
  app.add_flag(
         "--resume", options.resume,
         "Continue an interrupted " + app.get_name() + "; begin a new one if OUT does not exist")
      ->excludes(force);
  CLI::Option* shards = app.add_option("--shards", options.shards,
                                       "Number of files to write, which open as one dataset");
  shards->transform(between(1, 99999));
  app.add_option("--shard-bytes", options.shard_bytes,
                 "Most bytes of records in each file (such as 500MB, 2GiB)")
      ->transform(bytes_check(1000))
      ->excludes(shards);
  app.add_option("--commit-bytes", options.commit_bytes,
                 "Commit after this many bytes; a " + app.get_name() +
                     " that is killed loses at most these (default 32MiB)")
      ->transform(bytes_check(1000));
  app.add_flag("--skip-bad", options.skip_bad, "Exit with 0 even if files were left out");
  app.add_option("--workers", options.workers,
                 "Threads that read and check images; default: one per processor")
      ->transform(between(1, 4096));
}

CLI::Option* add_store(CLI::App& app, PackOptions& options, const std::string& text) {
  return app
      .add_option_function<std::string>(
          "--store",
          [&options](const std::string& form) {
            options.store = form == "coefficients" ? StoredForm::coefficients : StoredForm::jpeg;
          },
          text)
      ->type_name("coefficients|jpeg")
      ->check(CLI::IsMember({"coefficients", "jpeg"}).description(""));
}

}  // namespace millrace::cli
