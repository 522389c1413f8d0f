// Sizes and durations, for people and from people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trireme {

// "64K", "4 MiB", "1.5GiB", "512" -> bytes. Suffixes are binary; anything else is a ConfigError.
std::int64_t parse_bytes(std::string_view text);
// 1536 -> "1.5 KiB".
std::string format_bytes(std::int64_t bytes);
// 3725.0 -> "1h02m", 75.2 -> "1m15s", 0.5 -> "0.5s".
std::string format_seconds(double seconds);
// 12345678 -> "12.35M" (decimal).
std::string format_count(double count);
// 9.68e8, "FLOP/s" -> "968 MFLOP/s" (decimal).
std::string format_rate(double rate, std::string_view unit);
// "1 shard", "2 shards", "0 batches", "3 entries": the noun's plural is regular.
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace trireme
