#include "io/data/foreign_array.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "src/base/check.h"

namespace trireme {
namespace {

template <class T>
void widen_integers(std::byte* raw, bool is_reversed, std::int64_t count, std::int64_t* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::byte* const at = raw + i * static_cast<std::int64_t>(sizeof(T));
    if (is_reversed) {
      std::reverse(at, at + sizeof(T));
    }
    T value{};
    std::memcpy(&value, at, sizeof value);
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
    type_.is_signed ? widen_integers<Signed>(raw_.data(), type_.is_big_endian, count, to)
                    : widen_integers<Unsigned>(raw_.data(), type_.is_big_endian, count, to);
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

void ColumnMajorMatrix::read(std::int64_t first, std::int64_t count, std::int64_t* to) {
  check(first >= 0 && count >= 0 && count <= size() - first, "elements lie within the array");
  if (count == 0) {
    return;
  }
  const std::int64_t end = first + count;
  const std::int64_t first_row = first / columns_;
  const std::int64_t last_row = (end - 1) / columns_;
  for (std::int64_t column = 0; column < columns_; ++column) {
    // The first and last rows may be needed in part.
    const std::int64_t from = first_row + (first_row * columns_ + column < first ? 1 : 0);
    const std::int64_t stop = last_row + (last_row * columns_ + column < end ? 1 : 0);
    if (from >= stop) {
      continue;
    }
    column_.resize(static_cast<std::size_t>(stop - from));
    elements_.read(column * rows_ + from, stop - from, column_.data());
    for (std::int64_t row = from; row < stop; ++row) {
      to[row * columns_ + column - first] = column_[static_cast<std::size_t>(row - from)];
    }
  }
}

}  // namespace trireme
