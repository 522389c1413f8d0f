// Device says where memory is and where work runs, and View refers to elements in its memory. Only
// as<T>() returns a pointer to elements; it refuses memory that the host can't read.
#pragma once

#include <cstdint>

#include "src/base/check.h"
#include "src/device/dtype.h"

namespace trireme {

enum class DeviceKind : std::uint8_t {
  cpu,
  cuda,
  counting,  // has sizes but no bytes: predicts how much memory a step takes
};

// There is no default device: who makes one says which.
struct Device {
  constexpr Device(DeviceKind its_kind, int its_index) : kind(its_kind), index(its_index) {}
  static constexpr Device cpu() { return {DeviceKind::cpu, 0}; }

  DeviceKind kind;
  int index;  // of a CUDA device: its place among those that the process sees
  // Returns whether the host can dereference pointers into the device's memory.
  bool is_host() const { return kind == DeviceKind::cpu; }
  friend bool operator==(const Device&, const Device&) = default;
};

// View refers to elements of one type in a device's memory, and does not own them. Without a device
// it refers to memory of the host.
struct View {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;
  Device device = Device::cpu();

  bool empty() const { return data == nullptr; }
  std::int64_t bytes() const { return count * size_of(dtype); }
  View slice(std::int64_t first, std::int64_t n) const {
    check(first >= 0 && n >= 0 && first + n <= count, "a slice lies within its view");
    return {static_cast<char*>(data) + first * size_of(dtype), n, dtype, device};
  }
};

struct ConstView {
  const void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;
  Device device = Device::cpu();

  ConstView() = default;
  ConstView(const void* at, std::int64_t n, DType type, Device where = Device::cpu())
      : data(at), count(n), dtype(type), device(where) {}
  ConstView(const View& v) : data(v.data), count(v.count), dtype(v.dtype), device(v.device) {}
  bool empty() const { return data == nullptr; }
  std::int64_t bytes() const { return count * size_of(dtype); }
  ConstView slice(std::int64_t first, std::int64_t n) const {
    check(first >= 0 && n >= 0 && first + n <= count, "a slice lies within its view");
    return {static_cast<const char*>(data) + first * size_of(dtype), n, dtype, device};
  }
};

// Returns the element type for a C++ type.
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<f16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<std::uint16_t>() {
  return DType::u16;
}
template <>
constexpr DType dtype_of<std::uint32_t>() {
  return DType::u32;
}

// Returns the elements of a view of the host's memory, whose type must be T.

template <class T>
T* as(const View& view) {
  check(view.empty() || view.dtype == dtype_of<T>(), "a view is read as the type it has");
  check(view.empty() || view.device.is_host(), "the host reads only its own memory");
  return static_cast<T*>(view.data);
}
template <class T>
const T* as(const ConstView& view) {
  check(view.empty() || view.dtype == dtype_of<T>(), "a view is read as the type it has");
  check(view.empty() || view.device.is_host(), "the host reads only its own memory");
  return static_cast<const T*>(view.data);
}

}  // namespace trireme
