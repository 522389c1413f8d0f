// Array is test data of one element type in memory of exactly its size, not aligned to vectors, so
// that the address sanitizer detects an access to one element too many.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/base/philox.h"
#include "src/device/device.h"

namespace trireme::testing {

class Array {
 public:
  Array(std::int64_t count, DType dtype)
      : bytes_(static_cast<std::size_t>((count + 1) * size_of(dtype))),
        count_(count),
        dtype_(dtype) {}

  // Returns normally distributed numbers of a fixed sequence.
  static Array random(std::int64_t count, DType dtype, std::uint32_t seed, double deviation = 1) {
    Array array(count, dtype);
    std::mt19937 bits(seed);
    std::normal_distribution<double> normal(0, deviation);
    for (std::int64_t i = 0; i < count; ++i) {
      array.set(i, normal(bits));
    }
    return array;
  }
  // Returns numbers evenly distributed over [-bound, bound), from the counter-based generator.
  static Array uniform(std::int64_t count, DType dtype, std::uint64_t seed, double bound) {
    Array array(count, dtype);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto word = philox({static_cast<std::uint32_t>(i), 0, 0, 0}, philox_key(seed))[0];
      array.set(i, bound * (2 * static_cast<double>(uniform_float(word)) - 1));
    }
    return array;
  }
  // Returns whole numbers from 0 to limit - 1.
  static Array ids(std::int64_t count, std::int64_t limit, std::uint32_t seed) {
    Array array(count, DType::i32);
    std::mt19937 bits(seed);
    std::uniform_int_distribution<std::int32_t> any(0, static_cast<std::int32_t>(limit - 1));
    for (std::int64_t i = 0; i < count; ++i) {
      as<std::int32_t>(array.view())[i] = any(bits);
    }
    return array;
  }

  std::int64_t count() const { return count_; }
  DType dtype() const { return dtype_; }
  View view() { return {bytes_.data() + size_of(dtype_), count_, dtype_, Device{}}; }
  ConstView view() const { return {bytes_.data() + size_of(dtype_), count_, dtype_}; }
  operator View() { return view(); }
  operator ConstView() const { return view(); }

  double operator[](std::int64_t i) const {
    return dtype_ == DType::bf16 ? static_cast<double>(to_float(as<bf16>(view())[i]))
                                 : static_cast<double>(as<float>(view())[i]);
  }
  void set(std::int64_t i, double value) {
    if (dtype_ == DType::bf16) {
      as<bf16>(view())[i] = to_bf16(static_cast<float>(value));
    } else {
      as<float>(view())[i] = static_cast<float>(value);
    }
  }
  bool same_bits(const Array& other) const { return bytes_ == other.bytes_; }

 private:
  std::vector<char> bytes_;
  std::int64_t count_;
  DType dtype_;
};

// The arrays that a kernel wrote, by name.
using Results = std::vector<std::pair<std::string, Array>>;

}  // namespace trireme::testing
