// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/measure.h>

#include <utility>

namespace millrace::measure {

ReportFeed::ReportFeed(Pipeline& pipeline, std::uint64_t every, Callback on_report)
    : pipeline_(pipeline), every_(every), on_report_(std::move(on_report)) {
  if (every_ == 0 || !on_report_)
    throw Error(ErrorCode::invalid_argument,
                "a ReportFeed needs a callback and at least one batch per report");
  const Report before = pipeline_.take_report();
  bad_records_ = before.bad_records;
  listed_ = before.bad_record_list.size();
}

void ReportFeed::count() {
  if (++counted_ == every_) call_back();
}

void ReportFeed::flush() {
  if (counted_ > 0) call_back();
}

void ReportFeed::call_back() {
  counted_ = 0;
  Report delta = pipeline_.take_report();
  // `take_report` does not restart the count and the list of bad records. The list has the first
  // bad records of the whole run.
  delta.bad_records -= std::exchange(bad_records_, delta.bad_records);
  std::vector<BadRecord>& list = delta.bad_record_list;
  const std::size_t already_reported = std::exchange(listed_, list.size());
  list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(already_reported));
  on_report_(delta);
}

}  // namespace millrace::measure
