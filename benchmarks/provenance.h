// Describes the machine and the surroundings of a benchmark for its JSON document.
#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/device/cuda_device.h"

namespace trireme {

// Returns {name, kernel, machine, processor, cores, threads, sockets, numa_nodes,
// last_level_cache_bytes, memory_bytes, frequency_governor, huge_pages, gpus, gpu_driver}. What
// this system does not tell is null. gpus: those that this process may use; empty for a program
// without CUDA.
nlohmann::ordered_json host_json();

// Returns [{name, uuid, bus, memory_bytes, multiprocessors, compute_capability}].
nlohmann::ordered_json gpus_json(const std::vector<cuda::DeviceFacts>& gpus);

// Returns those variables of the environment that can change a result and hold no secret:
// kVariables in provenance.cc, as a map from name to value.
nlohmann::ordered_json environment_json();

// Returns {name, source, resolution_ns, call_ns}: the clock that takes all times, and how finely.
nlohmann::ordered_json clock_json();

// Returns the size of all last-level caches together, in bytes; 0 if the system does not tell.
// root: the folder that contains sys.
std::int64_t last_level_cache_bytes(const std::filesystem::path& root = "/");

}  // namespace trireme
