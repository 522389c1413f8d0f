// Widens stored tokens to i32: the inner loop of the loader. A pure function; private to io/data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trireme {

// raw: u16 (token_bytes 2) or u32 (4) [count]. to: i32 [count]. Returns the largest token.
std::uint32_t widen_tokens(const std::byte* raw, int token_bytes, std::int64_t count,
                           std::int32_t* to);

}  // namespace trireme
