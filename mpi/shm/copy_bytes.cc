#include "mpi/shm/copy_bytes.h"

#include <algorithm>

#include <emmintrin.h>

namespace trireme {
namespace {

constexpr std::int64_t kCacheLine = 64;

}  // namespace

void stream_bytes(const void* from, void* to, std::int64_t bytes) {
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  const auto past_line =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % kCacheLine);
  const std::int64_t head = std::min(bytes, (kCacheLine - past_line) % kCacheLine);
  copy_bytes(source, target, head);
  const std::int64_t lines = (bytes - head) / kCacheLine;
  source += head;
  target += head;
  for (std::int64_t i = 0; i < lines; ++i, source += kCacheLine, target += kCacheLine) {
    const auto* const in = reinterpret_cast<const __m128i*>(source);
    auto* const out = reinterpret_cast<__m128i*>(target);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  _mm_sfence();
  copy_bytes(source, target, bytes - head - lines * kCacheLine);
}

}  // namespace trireme
