// SPDX-License-Identifier: Apache-2.0
#include <millrace/batch_transform.h>
#include <millrace/c_batch_transform.h>
#include <millrace/mix.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "c/callback_owner.h"
#include "c/calls.h"
#include "c/field_spec.h"
#include "c/handles.h"

namespace millrace::c {
namespace {

struct BatchCallbacks : CallbackOwner<millrace_batch_transform_callbacks> {
  std::vector<FieldSpec> fields;
  std::string stage = "batch";
};

/// Returns the batch's fields as C structs. Their names point to those of the batch's spec.
std::vector<millrace_made_field> c_fields(const MadeBatch& batch) {
  std::vector<millrace_made_field> fields;
  for (const FieldSpec& spec : batch.spec().fields()) {
    const Tensor& tensor = batch[spec.name];
    millrace_made_field field{
        spec.name.c_str(), to_string(tensor.dtype), tensor.data, tensor.shape.rank(), {}};
    std::ranges::copy(tensor.shape.extents(), field.shape);
    fields.push_back(field);
  }
  return fields;
}

class CallbackBatchTransform final : public BatchTransform {
 public:
  explicit CallbackBatchTransform(std::shared_ptr<const BatchCallbacks> callbacks)
      : callbacks_(std::move(callbacks)) {}

  std::vector<FieldSpec> fields(const SampleSpec&) const override { return callbacks_->fields; }
  std::string stage() const override { return callbacks_->stage; }
  std::optional<std::uint64_t> fingerprint() const override {
    if (callbacks_->calls.fingerprint == 0) return std::nullopt;
    return callbacks_->calls.fingerprint;
  }
  void run(MadeBatch& batch, Random& random) const override {
    const std::vector<millrace_made_field> fields = c_fields(batch);
    const millrace_made_batch made{
        batch.size(),  batch.indices().data(), batch.valid().data(),
        fields.data(), fields.size(),          reinterpret_cast<millrace_random*>(&random)};
    millrace_error error{};
    const auto& calls = callbacks_->calls;
    if (const millrace_status status = calls.run(calls.user, &made, &error); status != MILLRACE_OK)
      throw callback_error({}, status, error);
  }

 private:
  const std::shared_ptr<const BatchCallbacks> callbacks_;
};

Mix mix_of(const millrace_mix& from) {
  return {.classes = from.classes,
          .mixup = from.mixup,
          .cutmix = from.cutmix,
          .cutmix_share = from.cutmix_share,
          .p = from.p,
          .on = from.on_device != 0 ? MixOn::device : MixOn::worker};
}

}  // namespace
}  // namespace millrace::c

using namespace millrace::c;

millrace_status millrace_batch_transform_create(const millrace_batch_transform_callbacks* callbacks,
                                                millrace_batch_transform** transform,
                                                millrace_error* error) {
  return guarded(error, [&] {
    millrace_batch_transform*& handle = result_at(transform, "transform");
    const auto owner = std::make_shared<BatchCallbacks>();
    owner->calls = copied(callbacks, "callbacks");
    required(owner->calls.run, "callbacks->run");
    owner->fields = fields_of(owner->calls.fields, owner->calls.n_fields);
    if (owner->calls.stage != nullptr) owner->stage = owner->calls.stage;
    handle = put<millrace_batch_transform>(std::make_shared<CallbackBatchTransform>(owner));
    owner->take();
  });
}

millrace_status millrace_batch_transform_mix(const millrace_mix* mix,
                                             millrace_batch_transform** transform,
                                             millrace_error* error) {
  return guarded(error, [&] {
    millrace_batch_transform*& handle = result_at(transform, "transform");
    handle = put<millrace_batch_transform>(millrace::mix_transform(mix_of(copied(mix, "mix"))));
  });
}

void millrace_batch_transform_free(millrace_batch_transform* transform) { drop(transform); }
