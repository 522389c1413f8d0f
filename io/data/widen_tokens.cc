// Compiled for vectors (see CMakeLists.txt): this is all the work the loader does on warm data.
#include "io/data/widen_tokens.h"

#include <algorithm>
#include <cstring>

namespace trireme {
namespace {

template <class Stored>
std::uint32_t widen(const std::byte* __restrict__ raw, std::int64_t count,
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

}  // namespace

std::uint32_t widen_tokens(const std::byte* raw, int token_bytes, std::int64_t count,
                           std::int32_t* to) {
  return token_bytes == 2 ? widen<std::uint16_t>(raw, count, to)
                          : widen<std::uint32_t>(raw, count, to);
}

}  // namespace trireme
