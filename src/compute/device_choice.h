// Chooses the device on which a process computes (train.device, --device). No other code does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/device/device.h"

namespace trireme {

// Returns "auto", "cpu" and "cuda".
std::vector<std::string> device_words();

// Chooses by one of these words. With auto, it is a CUDA device if this process can use one, else
// the CPU. local_rank: the process's number among the local_size ranks of its host; each gets a
// CUDA device of its own, or the only one that its launcher lets it see. Throws ConfigError if this
// program is built without CUDA, and DeviceError if there is no CUDA device for the rank.
Device choose_device(std::string_view word, int local_rank = 0, int local_size = 1);

// Returns "cpu" or, for example, "CUDA device 3 (NVIDIA H100 80GB HBM3, 79.2 GiB)".
std::string device_text(Device device);

}  // namespace trireme
