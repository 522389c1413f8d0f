// The environment variables of the simulated device. They are read once, when the process starts;
// with a wrong one, it ends with exit code 2.
//
//   TRIREME_SIM_SEED     0 (default): blocks, warps and lanes run in ascending order, and the
//                        operations of streams in the order in which the host enqueued them. Any
//                        other number shuffles all of them; equal seeds shuffle blocks, warps and
//                        lanes equally.
//   TRIREME_SIM_MEMORY   the memory of each device in bytes, 1 MiB to 1 TiB (default: 1 GiB)
//   TRIREME_SIM_DEVICES  the number of devices of a process, 0 to 64 (default: 8)
//   TRIREME_SIM_DELAYS   1: sleep for up to 0.3 ms before each operation of a stream; with a seed,
//                        also let streams fall behind others for long (default: 0)
//   TRIREME_SIM_CONNECTIONS  the number of queues of the hardware, 0 to 32, which the streams
//   share:
//                        an operation starts only after those that were put before it into its
//                        queue, and so waits for what they wait for (default: 0, a queue for each
//                        stream)
//   TRIREME_SIM_LEAKS    1: report memory that was not freed at the end of the process (default: 0)
//   TRIREME_SIM_FAULT    faults to inject, separated by commas (see fault.h)
//   TRIREME_SIM_LINKS    what connects the devices (see links.h)
//   TRIREME_SIM_NAMES    the devices' names, separated by commas, such as "A,B MIG 1g.10gb"
//                        (default: "simulated device")
//   TRIREME_SIM_CAPABILITY  the devices' compute capability (default: 90); the program holds code
//                        for 8.x and 9.x
//   TRIREME_SIM_DRIVER   the version of CUDA that the driver runs (default: 13000); 0: no driver
//   TRIREME_SIM_CUBLASLT 0: no cuBLASLt (default: 1)
//   TRIREME_SIM_NCCL     the version of NCCL (default: 22809); 0: none
//   TRIREME_SIM_CUDNN    the version of cuDNN (default: 91900); 0: none
//   CUDA_VISIBLE_DEVICES as with CUDA: which of the devices the process sees, by number or UUID, in
//                        which order; the list ends before the first entry that is no device
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sim {

struct Environment {
  std::uint64_t seed = 0;
  std::size_t memory_bytes = std::size_t{1} << 30;
  int devices = 8;
  bool delays = false;
  std::size_t connections = 0;  // 0: one for each stream
  bool report_leaks = false;
  std::string faults = {};
  std::string links = {};
  std::vector<std::string> names = {};  // of the first devices
  int capability = 90;
  int driver_version = 13000;
  bool has_cublaslt = true;
  int nccl_version = 22809;
  int cudnn_version = 91900;
  std::vector<int> visible = {};  // numbers of the devices that the process sees, of `devices`
};

const Environment& environment();

// Ends the process with exit code 2, because of the variable's value. Prints `what` in one
// printable line.
[[noreturn]] void refuse_variable(const std::string& what);

// Returns the device's UUID in hexadecimal, as in "GPU-73696d75-...". device: its number among all.
std::string uuid_text(int device);

std::vector<std::string> split(const std::string& text, char separator);

}  // namespace sim
