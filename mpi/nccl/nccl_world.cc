#include "mpi/nccl/nccl_world.h"

#include <algorithm>

#include <cuda_flavour.h>
#include <fmt/core.h>

#include "mpi/links/nccl_log_file.h"
#include "mpi/nccl/nccl_check.h"
#include "mpi/nccl/nccl_communicator.h"
#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/language/kernel.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

std::string version_text(int code) {
  return fmt::format("NCCL {}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

// A connection has buffers for NCCL's three protocols (src/include/device.h and src/init.cc of NCCL
// 2.28): 4 MiB (simple), 0.5 MiB (LL) and 4.7 MiB (LL128) in each channel that uses it.
constexpr std::int64_t kConnectionBytes =
    (std::int64_t{4} << 20) + (std::int64_t{1} << 19) + 4'915'200;
// These numbers are assumptions, not measurements: the channels of a group, and the connections of
// a channel (the ring receives over one, the tree over up to three).
constexpr std::int64_t kChannels = 16;
constexpr std::int64_t kConnections = 3;
constexpr std::int64_t kSmallGroupBytes = std::int64_t{8} << 20;  // without connections
// A transfer between two ranks uses the simple protocol in at most this many channels.
constexpr std::int64_t kTransferBytes = 4 * (std::int64_t{4} << 20);

}  // namespace

std::int64_t nccl_group_bytes(int ranks) {
  if (cuda::back_end() == cuda::BackEnd::simulated) {
    return 0;  // the buffers of the simulated NCCL are in the host's memory
  }
  return kSmallGroupBytes + (ranks == 1 ? 0 : kChannels * kConnections * kConnectionBytes);
}

// There is a communicator for each neighbour, direction and lane of tags.
std::int64_t nccl_transfer_bytes(int ranks) {
  if (cuda::back_end() == cuda::BackEnd::simulated) {
    return 0;
  }
  const int edges = ranks > 2 ? 4 : 2;
  return edges * kTagLanes * (kSmallGroupBytes + kTransferBytes);
}

std::unique_ptr<Communicator> make_nccl_world(std::unique_ptr<Communicator> control,
                                              const NcclWorldOptions& options) {
  (void)NcclLogFile::of_process();  // must precede the first call of NCCL
  const int device = options.device.index;
  cuda::use_device(device);
  cuda::cuda_check(cuda::load_kernels(), "loading the kernels");
  return std::make_unique<NcclCommunicator>(NcclCommunicator::Parts{
      std::move(control), options.device, std::make_shared<NcclMonitor>(device),
      std::make_shared<NcclMemory>(device), "world", options.watch,
      std::min(options.deadline, kLongestNcclDeadline), options.links});
}

int nccl_version_code() {
  int version = 0;
  nccl_check(ncclGetVersion(&version), "ncclGetVersion");
  return version;
}

std::string nccl_version() { return version_text(nccl_version_code()); }

std::string nccl_build_version() { return version_text(NCCL_VERSION_CODE); }

std::string nccl_trouble() {
  const std::string why = cuda::flavour_nccl_error();
  if (why.empty()) {
    return "";
  }
  return fmt::format(
      "NCCL, which connects GPUs, cannot be loaded ({}): install NCCL 2.22 or newer on this node "
      "(for example the package libnccl2), or name its folder in LD_LIBRARY_PATH",
      why);
}

}  // namespace trireme
