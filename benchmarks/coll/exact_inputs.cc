#include "benchmarks/coll/exact_inputs.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "src/base/error.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

constexpr std::int64_t kPeriod = 8191;
constexpr std::int64_t kMostMagnitude = 1000;

// Returns the largest n such that the type represents all whole numbers up to n exactly.
std::int64_t exact_up_to(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return std::int64_t{1} << 8;
    case DType::f32:
      return std::int64_t{1} << 24;
    default:
      return std::int64_t{1} << 30;
  }
}

void store(char* at, DType dtype, std::int64_t value) {
  const auto put = [at](auto number) { std::memcpy(at, &number, sizeof number); };
  switch (dtype) {
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::f64:
      return put(static_cast<double>(value));
    case DType::bf16:
      return put(to_bf16(static_cast<float>(value)));
    case DType::i32:
      return put(static_cast<std::int32_t>(value));
    case DType::i64:
      return put(value);
    default:
      throw InternalError("a type that no benchmark takes");
  }
}

// Calls visit(byte offset in the data, byte offset in the period, bytes) for each piece.
void over_pieces(std::int64_t count, std::int64_t size, std::int64_t first,
                 const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit) {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t at = (first + done) % kPeriod;
    const std::int64_t n = std::min(kPeriod - at, count - done);
    visit(done * size, at * size, n * size);
    done += n;
  }
}

std::int64_t differing(const char* data, const char* expected, std::int64_t bytes,
                       std::int64_t size) {
  if (std::memcmp(data, expected, static_cast<std::size_t>(bytes)) == 0) {
    return 0;
  }
  std::int64_t wrong = 0;
  for (std::int64_t at = 0; at < bytes; at += size) {
    wrong += std::memcmp(data + at, expected + at, static_cast<std::size_t>(size)) == 0 ? 0 : 1;
  }
  return wrong;
}

std::int64_t wrong_elements(const ConstView& data, const std::vector<char>& period,
                            std::int64_t first) {
  const std::int64_t size = size_of(data.dtype);
  std::int64_t wrong = 0;
  over_pieces(data.count, size, first, [&](std::int64_t at, std::int64_t from, std::int64_t bytes) {
    wrong += differing(static_cast<const char*>(data.data) + at, period.data() + from, bytes, size);
  });
  return wrong;
}

}  // namespace

std::int64_t ExactInputs::limit() const {
  return std::clamp<std::int64_t>(exact_up_to(dtype_) / ranks_, 1, kMostMagnitude);
}

std::int64_t ExactInputs::value(int rank, std::int64_t i) const {
  // If even sums of ones exceed the exact range, only every `givers`-th rank has nonzero inputs.
  const std::int64_t givers = (ranks_ + exact_up_to(dtype_) - 1) / exact_up_to(dtype_);
  if (rank % givers != 0) {
    return 0;
  }
  const std::uint64_t bits = mix64(static_cast<std::uint64_t>(rank * kPeriod + i % kPeriod));
  const std::int64_t span = 2 * limit() + 1;
  return static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(span)) - limit();
}

ExactInputs::Period ExactInputs::encode(const std::vector<std::int64_t>& values) const {
  const std::int64_t size = size_of(dtype_);
  Period period(static_cast<std::size_t>(kPeriod * size));
  for (std::size_t i = 0; i < values.size(); ++i) {
    store(period.data() + static_cast<std::int64_t>(i) * size, dtype_, values[i]);
  }
  return period;
}

ExactInputs::Period ExactInputs::period_of(int rank) const {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < kPeriod; ++i) {
    values.push_back(value(rank, i));
  }
  return encode(values);
}

ExactInputs::Period ExactInputs::reduced_period(ReduceOp op) const {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < kPeriod; ++i) {
    std::int64_t all = value(0, i);
    for (int rank = 1; rank < ranks_; ++rank) {
      const std::int64_t other = value(rank, i);
      all = op == ReduceOp::sum   ? all + other
            : op == ReduceOp::max ? std::max(all, other)
                                  : std::min(all, other);
    }
    values.push_back(all);
  }
  return encode(values);
}

void ExactInputs::fill(const View& data, int rank, std::int64_t first) const {
  const Period period = period_of(rank);
  over_pieces(data.count, size_of(dtype_), first,
              [&](std::int64_t at, std::int64_t from, std::int64_t bytes) {
                std::memcpy(static_cast<char*>(data.data) + at, period.data() + from,
                            static_cast<std::size_t>(bytes));
              });
}

std::int64_t ExactInputs::count_wrong(const ConstView& data, int rank, std::int64_t first) const {
  return wrong_elements(data, period_of(rank), first);
}

std::int64_t ExactInputs::count_wrong(const ConstView& data, ReduceOp op,
                                      std::int64_t first) const {
  return wrong_elements(data, reduced_period(op), first);
}

}  // namespace trireme
