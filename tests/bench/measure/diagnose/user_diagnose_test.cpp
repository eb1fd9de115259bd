// SPDX-License-Identifier: Apache-2.0
//
// Diagnoses of datasets whose records are files of their own, some of which are bad.
#include <gmock/gmock.h>
#include <millrace/error.h>
#include <millrace/raw_transform.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "measure/bench/user_workload.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::UserWorkload;

/// A list of images of which the first is missing and another one is empty.
class BadFiles : public ::testing::Test {
 protected:
  static constexpr int records = 24;

  BadFiles() {
    std::ofstream list(list_);
    for (int number = 0; number < records; ++number) {
      const std::string name = std::to_string(number) + ".jpg";
      list << name << "," << number << "\n";
      if (number > 0) std::ofstream(folder_ / name) << (number == 5 ? "" : "bytes");
    }
  }

  measure::DiagnoseResult diagnose(BadRecords policy) {
    measure::Workload workload = own_.workload(std::make_shared<HostDevice>());
    workload.dataset = nullptr;
    workload.transform =
        raw_transform({{.spec = {.name = "label", .dtype = DType::int64, .shape = {}}}});
    workload.pipeline.bad_records = policy;
    return measure::diagnose(
        workload, {.rounds = 2, .batches = 3, .open = [this] { return open_dataset(list_); }});
  }

 private:
  TemporaryFolder folder_;
  const fs::path list_ = folder_ / "images.csv";
  UserWorkload own_;
};

TEST_F(BadFiles, AreReplacedByThePolicy) {
  EXPECT_THAT(diagnose(BadRecords::replace).text, HasSubstr("24 records"));
}

TEST_F(BadFiles, AreMarkedByThePolicy) {
  EXPECT_THAT(diagnose(BadRecords::mark).text, HasSubstr("24 records"));
}

TEST_F(BadFiles, EndTheDiagnosisByThePolicy) {
  try {
    (void)diagnose(BadRecords::fail);
    ADD_FAILURE() << "it has ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_record) << error.what();
  }
}

}  // namespace
}  // namespace millrace
