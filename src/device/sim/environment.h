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
//   TRIREME_SIM_LEAKS    1: report memory that was not freed at the end of the process (default: 0)
//   TRIREME_SIM_FAULT    faults to inject, separated by commas (see fault.h)
//   TRIREME_SIM_LINKS    what connects the devices (see links.h)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sim {

struct Environment {
  std::uint64_t seed = 0;
  std::size_t memory_bytes = std::size_t{1} << 30;
  int devices = 8;
  bool delays = false;
  bool report_leaks = false;
  std::string faults = {};
  std::string links = {};
};

const Environment& environment();

}  // namespace sim
