// The generation: a number that grows with every run that writes to a checkpoint folder. It tells
// the attempts of one run from those of another, and a run that went back to an older step from the
// run that had gone further.
#pragma once

#include <cstdint>
#include <filesystem>

namespace trireme {

// More runs than a folder can see; a larger generation was damaged or planted.
inline constexpr std::int64_t kMostGeneration = 1'000'000'000;

// Larger than any that the folder knows of; recorded there before this returns. The caller holds
// the run lock. DataError naming the file if something there claims kMostGeneration or more.
std::int64_t next_generation(const std::filesystem::path& folder);

}  // namespace trireme
