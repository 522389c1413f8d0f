// The generation is a number that grows with every run that writes to a checkpoint folder. It
// distinguishes the attempts of one run from those of another, and the steps of a run that resumed
// from an older step from those of the run that had gone further.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace trireme {

// No folder sees this many runs; this generation and larger ones are damaged or forged.
inline constexpr std::int64_t kMostGeneration = 1'000'000'000;
// A start warns if fewer generations than this are left below kMostGeneration.
inline constexpr std::int64_t kFewGenerations = 1'000'000;

struct Generation {
  std::int64_t number = 0;
  std::string warning;  // describes damage of GENERATION or an implausible number; or empty
};

// Returns what the file GENERATION of a folder holds, or nothing if there is no such file. A number
// that overflows counts as kMostGeneration. Throws DataError if it holds anything but a number.
std::optional<std::int64_t> read_generation(const std::filesystem::path& file);

// Returns a generation larger than any that appears in the folder, after recording it there. The
// caller holds the run lock. Throws DataError that names the file if one claims kMostGeneration or
// more.
Generation next_generation(const std::filesystem::path& folder);

}  // namespace trireme
