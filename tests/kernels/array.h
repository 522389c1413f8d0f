// Array is test data of one element type in memory of exactly its size, not aligned to vectors, so
// that the address sanitizer detects an access to one element too many.
#pragma once

#include <cstring>
#include <memory>
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

  // Returns numbers of a fixed sequence. Their distribution is nearly normal: each is the sum of
  // the four quarters of a random word, which is cheaper than an exact method.
  static Array random(std::int64_t count, DType dtype, std::uint32_t seed, double deviation = 1) {
    constexpr double mean = 4 * 65535.0 / 2;
    constexpr double root_of_variance = 37837.22;  // of the sum: sqrt(4 * (65536^2 - 1) / 12)
    const double scale = deviation / root_of_variance;
    Array array(count, dtype);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t word = word_of(seed, i);
      const std::uint64_t pairs = (word & kEvenQuarters) + ((word >> 16) & kEvenQuarters);
      array.set(i, (static_cast<double>((pairs >> 32) + (pairs & 0xFFFFFFFF)) - mean) * scale);
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
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t number = word_of(seed, i) % static_cast<std::uint64_t>(limit);
      as<std::int32_t>(array.view())[i] = static_cast<std::int32_t>(number);
    }
    return array;
  }

  std::int64_t count() const { return count_; }
  DType dtype() const { return dtype_; }
  View view() { return {bytes_.data() + size_of(dtype_), count_, dtype_, Device::cpu()}; }
  ConstView view() const { return {bytes_.data() + size_of(dtype_), count_, dtype_}; }
  operator View() { return view(); }
  operator ConstView() const { return view(); }

  double operator[](std::int64_t i) const {
    return dtype_ == DType::bf16  ? static_cast<double>(to_float(as<bf16>(view())[i]))
           : dtype_ == DType::f16 ? static_cast<double>(to_float(as<f16>(view())[i]))
                                  : static_cast<double>(as<float>(view())[i]);
  }
  void set(std::int64_t i, double value) {
    if (dtype_ == DType::bf16) {
      as<bf16>(view())[i] = to_bf16(static_cast<float>(value));
    } else if (dtype_ == DType::f16) {
      as<f16>(view())[i] = to_f16(static_cast<float>(value));
    } else {
      as<float>(view())[i] = static_cast<float>(value);
    }
  }
  bool same_bits(const Array& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr std::uint64_t kEvenQuarters = 0x0000FFFF0000FFFF;

  static std::uint64_t word_of(std::uint32_t seed, std::int64_t i) {
    return mix64(static_cast<std::uint64_t>(i) ^ std::uint64_t{seed} << 40);
  }

  std::vector<char> bytes_;
  std::int64_t count_;
  DType dtype_;
};

// Results are the arrays that a kernel wrote, by name.
using Results = std::vector<std::pair<std::string, Array>>;

}  // namespace trireme::testing
