#include "io/data/foreign_array.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "src/base/check.h"

namespace trireme {
namespace {

template <class T>
void widen(const std::byte* raw, std::int64_t count, std::int64_t* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    T value{};
    std::memcpy(&value, raw + i * static_cast<std::int64_t>(sizeof value), sizeof value);
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      to[i] = static_cast<std::int64_t>(std::min(value, kMost));
    } else {
      to[i] = value;
    }
  }
}

}  // namespace

void PlainArray::read(std::int64_t first, std::int64_t count, std::int64_t* to) {
  check(first >= 0 && count >= 0 && count <= elements_ - first, "elements lie within the array");
  raw_.resize(static_cast<std::size_t>(count * type_.bytes));
  file_.read_exactly_at(offset_ + first * type_.bytes, raw_.data(), count * type_.bytes);
  const auto widen_as = [&]<class Signed, class Unsigned>(Signed, Unsigned) {
    type_.is_signed ? widen<Signed>(raw_.data(), count, to)
                    : widen<Unsigned>(raw_.data(), count, to);
  };
  switch (type_.bytes) {
    case 1:
      return widen_as(std::int8_t{}, std::uint8_t{});
    case 2:
      return widen_as(std::int16_t{}, std::uint16_t{});
    case 4:
      return widen_as(std::int32_t{}, std::uint32_t{});
    default:
      return widen_as(std::int64_t{}, std::uint64_t{});
  }
}

void ArrayInMemory::read(std::int64_t first, std::int64_t count, std::int64_t* to) {
  check(first >= 0 && count >= 0 && count <= size() - first, "elements lie within the array");
  std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(first), count, to);
}

}  // namespace trireme
