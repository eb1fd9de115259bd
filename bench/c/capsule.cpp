// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <millrace/detail/dlpack_versioned.h>
#include <millrace/millrace.h>

namespace millrace::c {
namespace {

/// Functions of Python's stable interface in this process; null without Python.
struct Python {
  template <typename Function>
  static Function found(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }

  using Get = void* (*)(void* capsule, const char* name);
  using IsValid = int (*)(void* capsule, const char* name);
  using Fetch = void (*)(void** type, void** value, void** trace);
  using Restore = void (*)(void* type, void* value, void* trace);

  Get get = found<Get>("PyCapsule_GetPointer");
  IsValid is_valid = found<IsValid>("PyCapsule_IsValid");
  Fetch fetch = found<Fetch>("PyErr_Fetch");
  Restore restore = found<Restore>("PyErr_Restore");
};

template <typename Tensor>
void delete_unused(const Python& python, void* capsule, const char* name) {
  if (python.is_valid(capsule, name) == 0) return;
  auto* const tensor = static_cast<Tensor*>(python.get(capsule, name));
  tensor->deleter(tensor);
}

}  // namespace
}  // namespace millrace::c

void millrace_capsule_free(void* capsule) {
  using namespace millrace::c;
  static const Python python;
  if (python.get == nullptr || python.is_valid == nullptr || python.fetch == nullptr ||
      python.restore == nullptr)
    return;
  // A consumer that refuses a tensor drops the capsule while its exception is pending. A deleter
  // may run callbacks in Python, which would clear the exception.
  void* type = nullptr;
  void* value = nullptr;
  void* trace = nullptr;
  python.fetch(&type, &value, &trace);
  delete_unused<DLManagedTensor>(python, capsule, "dltensor");
  delete_unused<DLManagedTensorVersioned>(python, capsule, "dltensor_versioned");
  python.restore(type, value, trace);
}
