// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <millrace/detail/dlpack_versioned.h>
#include <millrace/millrace.h>

#include "c/calls.h"

namespace millrace::c {
namespace {

/// Functions of Python's stable interface in this process; null without Python.
struct Python {
  template <typename Symbol>
  static Symbol found(const char* name) {
    return reinterpret_cast<Symbol>(dlsym(RTLD_DEFAULT, name));
  }

  using New = void* (*)(void* pointer, const char* name, void (*destructor)(void* capsule));
  using Get = void* (*)(void* capsule, const char* name);
  using IsValid = int (*)(void* capsule, const char* name);
  using Fetch = void (*)(void** type, void** value, void** trace);
  using Restore = void (*)(void* type, void* value, void* trace);
  using SetString = void (*)(void* type, const char* message);

  New make = found<New>("PyCapsule_New");
  Get get = found<Get>("PyCapsule_GetPointer");
  IsValid is_valid = found<IsValid>("PyCapsule_IsValid");
  Fetch fetch = found<Fetch>("PyErr_Fetch");
  Restore restore = found<Restore>("PyErr_Restore");
  SetString set_string = found<SetString>("PyErr_SetString");
  void** value_error = found<void**>("PyExc_ValueError");

  bool complete() const {
    return make != nullptr && get != nullptr && is_valid != nullptr && fetch != nullptr &&
           restore != nullptr && set_string != nullptr && value_error != nullptr;
  }
};

const Python& python() {
  static const Python found;
  return found;
}

// Names of capsules until a consumer takes the tensor
// (https://dmlc.github.io/dlpack/latest/python_spec.html).
constexpr const char* name_of(const DLManagedTensor* /*tensor*/) { return "dltensor"; }
constexpr const char* name_of(const DLManagedTensorVersioned* /*tensor*/) {
  return "dltensor_versioned";
}

template <typename Tensor>
void delete_unused(void* capsule) {
  const char* const name = name_of(static_cast<Tensor*>(nullptr));
  if (python().is_valid(capsule, name) == 0) return;
  auto* const tensor = static_cast<Tensor*>(python().get(capsule, name));
  tensor->deleter(tensor);
}

/// Destructor of a capsule. A consumer that refuses a tensor drops the capsule while its exception
/// is pending. A deleter may run callbacks in Python, which would clear the exception.
template <typename Tensor>
void free_capsule(void* capsule) {
  void* type = nullptr;
  void* value = nullptr;
  void* trace = nullptr;
  python().fetch(&type, &value, &trace);
  delete_unused<Tensor>(capsule);
  python().restore(type, value, trace);
}

/// Returns a capsule that owns the tensor; null, and an exception in Python, if there was an error.
template <typename Tensor>
void* capsule_of(Tensor* tensor, millrace_status status, const millrace_error* error) {
  if (status != MILLRACE_OK) {
    python().set_string(*python().value_error, error == nullptr ? "" : error->message);
    return nullptr;
  }
  void* const capsule = python().make(tensor, name_of(tensor), &free_capsule<Tensor>);
  if (capsule == nullptr) tensor->deleter(tensor);
  return capsule;
}

}  // namespace
}  // namespace millrace::c

void* millrace_batch_capsule(const millrace_batch* batch, const char* name, int32_t versioned,
                             millrace_error* error) {
  using namespace millrace::c;
  if (!python().complete()) {
    set_error(error, MILLRACE_INVALID_ARGUMENT, "this process has no Python interpreter");
    return nullptr;
  }
  if (versioned != 0) {
    DLManagedTensorVersioned* tensor = nullptr;
    const auto status = millrace_batch_field_versioned(batch, name, 0, &tensor, error);
    return capsule_of(tensor, status, error);
  }
  DLManagedTensor* tensor = nullptr;
  const auto status = millrace_batch_field(batch, name, &tensor, error);
  return capsule_of(tensor, status, error);
}
