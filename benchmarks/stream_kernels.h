// The four kernels of STREAM (McCalpin, https://www.cs.virginia.edu/stream), over a part of arrays
// of doubles, with ordinary stores and with stores that bypass the caches (x86). An ordinary store
// first reads the line that it writes, which STREAM does not count. Any thread may call them; the
// sums and products are those of IEEE 754 without contraction, so results can be compared exactly.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace trireme {

enum class StreamKernel : std::uint8_t { copy, scale, add, triad };
inline constexpr std::array kStreamKernels = {StreamKernel::copy, StreamKernel::scale,
                                              StreamKernel::add, StreamKernel::triad};
enum class StreamStores : std::uint8_t { ordinary, streaming };

// With this factor, 2 s + s^2 is 1, so that a round of copy, scale, add and triad leaves the values
// where they were, however many rounds there are.
inline constexpr double kStreamFactor = 0.41421356237309503;

std::string_view name_of(StreamKernel kernel);
std::string_view name_of(StreamStores stores);
// Returns the bytes that STREAM counts per element: 16, 16, 24 and 24.
std::int64_t stream_bytes_per_element(StreamKernel kernel);

// The arrays a, b and c: each [count], aligned to 64 bytes.
struct StreamArrays {
  double* a = nullptr;
  double* b = nullptr;
  double* c = nullptr;
  std::int64_t count = 0;
};

// Computes copy: c = a, scale: b = s c, add: c = a + b, triad: a = b + s c, with s = kStreamFactor.
void run_stream(StreamKernel kernel, StreamStores stores, const StreamArrays& arrays);
// Does the same with one element of each array.
void run_stream_once(StreamKernel kernel, double& a, double& b, double& c);

}  // namespace trireme
