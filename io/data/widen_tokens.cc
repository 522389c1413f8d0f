// Compiled with -O3 (see CMakeLists.txt), because the loader spends most of its time here on data
// in the page cache. The same loop is compiled for the baseline and for AVX2, which widens and
// takes the maximum in one instruction each.
#include "io/data/widen_tokens.h"

#include <algorithm>
#include <cstring>

namespace trireme {
namespace {

template <class Stored>
[[gnu::always_inline]] inline std::uint32_t widen(const std::byte* __restrict__ raw,
                                                  std::int64_t count,
                                                  std::int32_t* __restrict__ to) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Stored token;
    std::memcpy(&token, raw + i * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
    largest = std::max<std::uint32_t>(largest, token);
    to[i] = static_cast<std::int32_t>(token);
  }
  return largest;
}

std::uint32_t widen_baseline(const std::byte* raw, int token_bytes, std::int64_t count,
                             std::int32_t* to) {
  return token_bytes == 2 ? widen<std::uint16_t>(raw, count, to)
                          : widen<std::uint32_t>(raw, count, to);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] std::uint32_t widen_avx2(const std::byte* raw, int token_bytes,
                                                 std::int64_t count, std::int32_t* to) {
  return token_bytes == 2 ? widen<std::uint16_t>(raw, count, to)
                          : widen<std::uint32_t>(raw, count, to);
}
using Widen = decltype(&widen_baseline);
const Widen kWiden = __builtin_cpu_supports("avx2") != 0 ? widen_avx2 : widen_baseline;
#else
constexpr auto kWiden = widen_baseline;
#endif

}  // namespace

std::uint32_t widen_tokens(const std::byte* raw, int token_bytes, std::int64_t count,
                           std::int32_t* to) {
  return kWiden(raw, token_bytes, count, to);
}

}  // namespace trireme
