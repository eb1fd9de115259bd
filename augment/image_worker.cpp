// SPDX-License-Identifier: Apache-2.0
#include "image_worker.h"

#include <utility>

namespace millrace {

Status ImageWorker::make(const Record& record, Random& random, Sample& sample) {
  Status begun = first_.maker.begin(record, random, sample);
  return begun.is_ok() ? first_.maker.finish() : begun;
}

void ImageWorker::make_interleaved(SampleSource& source) {
  first_.task = second_.task = nullptr;
  for (;;) {
    begin(first_, source);
    begin(second_, source);
    begin(first_, source);  // `begin(second_)` may have finished the sample of `first_`
    if (first_.task == nullptr && second_.task == nullptr) return;
    if (first_.task == nullptr || second_.task == nullptr) {
      finish(first_.task != nullptr ? first_ : second_, source);
      continue;
    }
    first_.task->sample.go_on();
    second_.task->sample.go_on();
    bool interleaved = false;
    try {
      interleaved = first_.maker.decode_interleaved(second_.maker);
    } catch (...) {
      source.failed(*std::exchange(first_.task, nullptr));
    }
    if (first_.task == nullptr) continue;
    first_.task->sample.pause(2);
    second_.task->sample.pause(2);
    for (InterleavedSample* lane : {&first_, &second_})
      if (!interleaved || !lane->maker.can_interleave()) finish(*lane, source);
  }
}

/// If the lane is free, begins samples on it until it holds one whose decode can be interleaved.
/// Earlier samples are made completely.
void ImageWorker::begin(InterleavedSample& lane, SampleSource& source) {
  while (SampleTask* const task = lane.task == nullptr ? source.next() : nullptr) {
    Status status = Status::ok();
    try {
      status = lane.maker.begin(task->record, task->random, task->sample);
      if (status.is_ok() && lane.maker.can_interleave()) {
        task->sample.pause();
        lane.task = task;
        return;
      }
      if (status.is_ok() && !lane.maker.declined()) status = lane.maker.finish();
    } catch (...) {
      source.failed(*task);
      continue;
    }
    if (status.is_ok() && lane.maker.declined())
      make_by_first(*task, source);
    else
      source.made(*task, status);
  }
}

/// Finishes the first maker's sample. Then the first maker makes the sample of `task`, which the
/// second maker declined.
void ImageWorker::make_by_first(SampleTask& task, SampleSource& source) {
  if (first_.task != nullptr) {
    task.sample.pause();
    finish(first_, source);
    task.sample.go_on();
  }
  source.make_and_return(task, [&] { return make(task.record, task.random, task.sample); });
}

void ImageWorker::finish(InterleavedSample& lane, SampleSource& source) {
  SampleTask& task = *std::exchange(lane.task, nullptr);
  task.sample.go_on();
  source.make_and_return(task, [&] { return lane.maker.finish(); });
}

}  // namespace millrace
