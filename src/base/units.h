// Parses and formats sizes and durations for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trireme {

// Converts "64K", "4 MiB", "1.5GiB", "512" to bytes. Suffixes are binary. Throws ConfigError for
// any other text.
std::int64_t parse_bytes(std::string_view text);
// Formats 1536 as "1.5 KiB".
std::string format_bytes(std::int64_t bytes);
// Formats 3725.0 as "1h02m", 75.2 as "1m15s" and 0.5 as "0.5s".
std::string format_seconds(double seconds);
// Formats 12345678 as "12.35M" (decimal prefixes).
std::string format_count(double count);
// Formats 9.68e8 with the unit "FLOP/s" as "968 MFLOP/s" (decimal prefixes).
std::string format_rate(double rate, std::string_view unit);
// Returns "1 shard", "2 shards", "0 batches", "3 entries". The noun must have a regular plural.
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace trireme
