// SPDX-License-Identifier: Apache-2.0
#include <millrace/c_stream.h>
#include <millrace/one_pass_dataset.h>
#include <millrace/tar_stream.h>

#include <memory>
#include <string>

#include "c/callback_owner.h"
#include "c/calls.h"
#include "c/handles.h"

namespace millrace::c {
namespace {

struct StreamCallbacks : CallbackOwner<millrace_stream_callbacks> {
  std::string name;
};

/// A stream that the caller's callbacks implement.
class CallbackStream final : public RecordStream {
 public:
  explicit CallbackStream(std::shared_ptr<const StreamCallbacks> callbacks)
      : callbacks_(std::move(callbacks)), calls_(callbacks_->calls) {}

  bool next(StreamRecord& into) override {
    millrace_record record{};
    std::int32_t ended = 0;
    millrace_error error{};
    check(calls_.next(calls_.user, &record, &ended, &error), error);
    if (ended != 0) return false;
    if (record.n_fields > 0 && record.fields == nullptr)
      throw Error(ErrorCode::invalid_argument, "the callback next gave n_fields, but no fields");
    for (std::size_t k = 0; k < record.n_fields; ++k) {
      const millrace_field& field = record.fields[k];
      if (field.name == nullptr || (field.data == nullptr && field.bytes > 0))
        throw Error(ErrorCode::invalid_argument, "the callback next gave field " +
                                                     std::to_string(k) + " without a name or data");
      const auto* const bytes = static_cast<const std::byte*>(field.data);
      into.fields.push_back({field.name, {bytes, bytes + field.bytes}});
    }
    return true;
  }
  void skip(std::uint64_t count) override {
    if (calls_.skip == nullptr) return RecordStream::skip(count);
    millrace_error error{};
    check(calls_.skip(calls_.user, count, &error), error);
  }
  bool can_restart() const override { return calls_.restart != nullptr; }
  void restart() override {
    millrace_error error{};
    check(calls_.restart(calls_.user, &error), error);
  }
  void interrupt() noexcept override {
    if (calls_.interrupt != nullptr) calls_.interrupt(calls_.user);
  }
  std::string name() const override { return callbacks_->name; }

 private:
  static void check(millrace_status status, millrace_error& error) {
    if (status != MILLRACE_OK) throw callback_error("", status, error);
  }

  const std::shared_ptr<const StreamCallbacks> callbacks_;
  const millrace_stream_callbacks& calls_;
};

OnePassOptions one_pass_options_of(const millrace_one_pass_options* options) {
  OnePassOptions to;
  if (options == nullptr) return to;
  const millrace_one_pass_options from = copied(options, "options");
  if (from.window_records > 0) to.window_records = from.window_records;
  if (from.memory_bytes > 0) to.memory_bytes = from.memory_bytes;
  return to;
}

}  // namespace
}  // namespace millrace::c

using namespace millrace::c;

millrace_status millrace_dataset_one_pass(const millrace_stream_callbacks* callbacks,
                                          const millrace_one_pass_options* options,
                                          millrace_dataset** dataset, millrace_error* error) {
  return guarded(error, [&] {
    millrace_dataset*& handle = result_at(dataset, "dataset");
    const auto owner = std::make_shared<StreamCallbacks>();
    owner->calls = copied(callbacks, "callbacks");
    owner->name = required(owner->calls.name, "callbacks->name");
    required(owner->calls.next, "callbacks->next");
    handle = put<millrace_dataset>(millrace::one_pass_dataset(
        std::make_shared<CallbackStream>(owner), one_pass_options_of(options)));
    owner->take();
  });
}

millrace_status millrace_dataset_tar_stream(const char* path,
                                            const millrace_one_pass_options* options,
                                            millrace_dataset** dataset, millrace_error* error) {
  return guarded(error, [&] {
    millrace_dataset*& handle = result_at(dataset, "dataset");
    required(path, "path");
    handle = put<millrace_dataset>(
        millrace::one_pass_dataset(millrace::tar_stream(path), one_pass_options_of(options)));
  });
}
