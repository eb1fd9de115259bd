// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/conversion_work.h>
#include <millrace/detail/export.h>
#include <millrace/device.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace MILLRACE_API millrace {

/// Work of the device on one field of a batch, after the copy to the device and before the
/// conversion. Workers fill the field with the first stage's input (`FieldSpec::device_stages`).
///
/// Threads: immutable; all methods may be called by several threads at the same time. Lifetimes:
/// each `FieldSpec` shares ownership of its stages.
class DeviceStage {
 public:
  virtual ~DeviceStage() = default;
  /// Name for messages, the report, the trace and profilers; not "copy", "move" or "convert", the
  /// pipeline's own. It must outlive the stage's pipelines.
  virtual const char* name() const = 0;
  /// Bytes of device memory that `launch` uses for `samples` samples, beside input and result. It
  /// must not decrease with `samples`. The report states it before the run starts
  /// (`MemoryReport::staging_bytes`).
  virtual std::size_t scratch_bytes(std::size_t samples) const = 0;

  /// Whether the samples' inputs vary in length and are packed one behind the other
  /// (`Sample::packed_room`). Only the used bytes are then copied to the device. Only a field's
  /// first stage may be packed. It may mark samples that it cannot make from their inputs. The
  /// upload thread makes marked samples again on the host, and what it writes replaces the stage's
  /// result. So bad records are found and replaced as without stages. The transform's own batch
  /// transform then runs again. The fields that it adds are zero again. Other fields of the marked
  /// samples are made again; those of other samples are as its first run left them. A batch is
  /// handed out after its marks are known.
  virtual bool packed() const { return false; }
  /// Packed inputs begin at multiples of this, in bytes.
  static constexpr std::size_t input_unit = 16;
  /// Value in `Samples::offsets` of a sample whose input had no room: the stage must mark it.
  static constexpr std::uint32_t no_input = UINT32_MAX;

  /// Samples of one micro-batch, in device memory.
  struct Samples {
    std::size_t count = 0;
    /// [count, ...]: the field as the workers filled it, or the result of the previous stage,
    /// aligned to 256 bytes as in the host slot. If the stage is `packed`: the packed inputs.
    const std::byte* from = nullptr;
    /// [count]: offsets of the packed inputs from `from`, in units of `input_unit` bytes, or
    /// `no_input`. Null unless the stage is `packed`.
    const std::uint32_t* offsets = nullptr;
    /// Memory for the result, of the same size, aligned to 256 bytes.
    std::byte* to = nullptr;
    /// [count]: `launch` sets samples that it cannot make to 1. All are 0 before `launch`. Null
    /// unless the stage is `packed`.
    std::uint8_t* marks = nullptr;
    /// `scratch_bytes(count)` bytes, aligned to 256 bytes. Their content is unspecified.
    std::byte* scratch = nullptr;
    /// All fields of the samples as the workers filled them, in the order of the `SampleSpec`. A
    /// packed field is at `from`.
    std::span<const std::byte* const> fields;
    /// Threads that help if the host is the device; may be null.
    HostWorkers* workers = nullptr;
  };
  /// Enqueues the work on `stream`. Must neither wait nor allocate memory of the device. `samples`
  /// is valid during the call, and its memory until the stream has done the work.
  virtual void launch(Stream& stream, const Samples& samples) const = 0;
};

}  // namespace millrace
