// Examines the GPUs of a node for `trireme health`: what their driver reports, what the kernel's
// log says, and their speed. Does nothing on a node without GPUs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "src/app/site/node_measures.h"
#include "src/device/nvml/gpu_state.h"

namespace trireme {

// Adds what the driver reports about the GPUs: facts that should never change, counters of errors,
// and complaints about faults. Pure.
void add_gpu_states(const std::vector<GpuState>& gpus, Measures& measures,
                    std::vector<std::string>& complaints);

// Adds a complaint for each XID in the kernel's log that stands for broken hardware. A log that
// this user may not read is no fault of the node and becomes a note. gpus: those that can be named.
void add_logged_xids(const std::filesystem::path& log, const std::vector<GpuState>& gpus,
                     NodeExamination& result);

// Returns a complaint about a fact or a counter of add_gpu_states() with what identifies the GPU:
// its name, UUID and PCI address. The numbers of nvidia-smi differ from CUDA's, by which rates are
// named, and change when a GPU is lost. Pure.
std::string with_identity(const std::string& complaint, const Measures& measures,
                          const std::vector<GpuState>& gpus);

// Adds everything about the GPUs. Clocks and the reasons for low ones are read again under load.
// reported: as in examine_node(). root: the folder that contains dev. Rates are measured on real
// devices only: a simulated one has no speed, which becomes a note.
void examine_gpus(NodeExamination& result, const std::function<void(const char*)>& reported,
                  const std::filesystem::path& root = "/");

}  // namespace trireme
