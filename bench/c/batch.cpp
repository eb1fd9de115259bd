// SPDX-License-Identifier: Apache-2.0
#include <millrace/batch.h>
#include <millrace/dlpack.h>

#include <nlohmann/json.hpp>

#include "c/calls.h"
#include "c/device.h"
#include "c/handles.h"

namespace millrace::c {
namespace {

/// Returns a share of the handle's batch for the calling thread.
Batch share_of(const millrace_batch* handle) {
  const auto held = get(handle);
  const auto lock = held->lock();
  return held->batch;
}

}  // namespace
}  // namespace millrace::c

using namespace millrace::c;

millrace_status millrace_batch_describe(const millrace_batch* batch, millrace_batch_facts* facts,
                                        millrace_error* error) {
  return guarded(error, [&] {
    const std::size_t bytes = copied(facts, "facts").struct_bytes;
    result_at(facts, "facts").struct_bytes = bytes;
    const millrace::Batch share = share_of(batch);
    facts->size = share.size();
    facts->valid = share.valid_count();
    facts->global_size = share.global_size();
    facts->number = share.number();
    facts->epoch = share.epoch();
    facts->slot = share.slot();
    facts->last_in_epoch = share.last_in_epoch() ? 1 : 0;
  });
}

millrace_status millrace_batch_field(const millrace_batch* batch, const char* name,
                                     DLManagedTensor** tensor, millrace_error* error) {
  return guarded(error, [&] {
    DLManagedTensor*& into = result_at(tensor, "tensor");
    into = millrace::to_dlpack(share_of(batch)[required(name, "name")]);
  });
}

millrace_status millrace_batch_field_versioned(const millrace_batch* batch, const char* name,
                                               int32_t read_only, DLManagedTensorVersioned** tensor,
                                               millrace_error* error) {
  return guarded(error, [&] {
    DLManagedTensorVersioned*& into = result_at(tensor, "tensor");
    into = millrace::to_dlpack_versioned(share_of(batch)[required(name, "name")],
                                         {.read_only = read_only != 0});
  });
}

millrace_status millrace_batch_fields(const millrace_batch* batch, char** json,
                                      millrace_error* error) {
  return guarded(error, [&] {
    char*& text = result_at(json, "json");
    text = text_of(nlohmann::json(share_of(batch).field_names())
                       .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

millrace_status millrace_batch_state(const millrace_batch* batch, char** json,
                                     millrace_error* error) {
  return guarded(error, [&] {
    char*& text = result_at(json, "json");
    text = text_of(share_of(batch).state_after().to_json());
  });
}

millrace_status millrace_batch_record_stream(const millrace_batch* batch, uintptr_t stream,
                                             millrace_error* error) {
  return guarded(error, [&] {
    const auto held = get(batch);
    // A thread of the parent may have been changing the streams.
    if (!held->is_own()) throw_argument("the batch was made before fork()");
    const auto lock = held->lock();
    if (held->streams.contains(stream)) return;
    const auto on = stream_of(held->batch.device(), stream);
    if (on == nullptr) throw_argument("the stream is 0, the host");
    held->batch.record_stream(on);
    held->streams.emplace(stream, on);
  });
}

void millrace_batch_free(millrace_batch* batch) { drop(batch); }
