// Chooses the device on which each rank of a benchmark computes, as a training run does, and
// connects the ranks for tensors on these devices.
#pragma once

#include <memory>
#include <string>

#include "mpi/session/mpi_session.h"
#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

// Adds --device with the words of train.device; the default is cpu.
void add_device_option(CommandLine& command, std::string& word);

// Returns the device of this rank for `word`, which is one of train.device, and notes the devices
// of all ranks in the context. Does not start MPI for cpu. Collective. Throws what
// agree_on_devices() throws (src/train/start/rank_devices.h).
Device measured_device(const std::string& word, AppContext& context);

// MeasuredGroup connects all ranks of a session. Must end before the session.
class MeasuredGroup {
 public:
  // On CPUs, connects the ranks over the backend; on CUDA devices, over NCCL, and the backend
  // serves their messages of the host. Collective.
  MeasuredGroup(MpiSession& session, Backend backend, Device device);

  // Exchanges tensors in the memory of the device.
  Communicator& data() const { return *data_; }
  // Exchanges memory of the host: the same group on CPUs.
  Communicator& control() const { return control_ != nullptr ? *control_ : *data_; }

 private:
  std::unique_ptr<Communicator> data_;
  std::unique_ptr<Communicator> control_;  // null on CPUs
};

}  // namespace trireme
