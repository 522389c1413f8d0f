// What NVIDIA's driver says about the GPUs of a rank's host when a run starts: who uses them, and
// why one refuses to compute. All functions return an empty text if the driver does not tell.
#pragma once

#include <string>

namespace trireme {

// Returns what other processes do with a GPU. Waits for processes that are ending, such as the
// ranks of the previous attempt. Called before any rank uses the GPU.
std::string users_of_gpu(const std::string& uuid);

// Returns why no process can begin to use a GPU, for example "its compute mode prohibits computing:
// nvidia-smi -c 0 allows it".
std::string refusal_of_gpu(const std::string& uuid);

// Returns how many GPUs the host has, for example "the driver reports 4 GPUs on this host".
std::string gpus_of_host();

}  // namespace trireme
