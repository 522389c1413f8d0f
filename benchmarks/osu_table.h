// Formats results as OSU's micro-benchmarks 7.4 do, so that what reads their output reads this.
// Pure functions; every text ends a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

// OSU's column widths. Values have two decimals.
inline constexpr int kOsuSizeWidth = 10;
inline constexpr int kOsuValueWidth = 18;

// Returns the lines above the columns. test: "Latency"; datatype: "MPI_CHAR".
std::string osu_title(std::string_view test, std::string_view datatype);
// Returns the titles of the columns. Operations without data have no column of sizes. checks: with
// the column that OSU's option -c adds.
std::string osu_columns(std::string_view value, bool has_size, bool checks);
// wrong: elements, if there is a column for that.
std::string osu_row(std::optional<std::int64_t> bytes, double value,
                    std::optional<std::int64_t> wrong);

}  // namespace trireme
