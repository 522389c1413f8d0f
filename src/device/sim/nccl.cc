// NCCL's interface over simulated devices. Operations of one communicator run in the order of their
// calls. A rank that does not come makes the others wait for ever, as with NCCL, while other
// streams go on.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <nccl.h>
#include <sys/random.h>

#include "src/device/sim/environment.h"
#include "src/device/sim/fault.h"
#include "src/device/sim/links.h"
#include "src/device/sim/machine.h"
#include "src/device/sim/nccl_communication.h"
#include "src/device/sim/nccl_reduction.h"
#include "src/device/sim/nccl_registrations.h"

struct GroupEntry {
  sim::Communication::Arguments arguments;
  ncclComm_t communicator;
  cudaStream_t stream;
};

// A communicator that does not block queues operations on their streams only when it is asked for
// its state, as NCCL does on a thread of its own: until then, the operations have not started, and
// other calls are refused.
struct ncclComm {
  explicit ncclComm(std::shared_ptr<sim::Communicator> communicator)
      : own(std::move(communicator)) {
    sim::machine().connected += own->ranks() > 1 ? 1 : 0;
  }
  ~ncclComm() { sim::machine().connected -= own->ranks() > 1 ? 1 : 0; }
  ncclComm(const ncclComm&) = delete;
  ncclComm& operator=(const ncclComm&) = delete;
  std::shared_ptr<sim::Communicator> own;
  std::vector<GroupEntry> held = {};
};

namespace {

using sim::CommunicationKind;
using sim::Communicator;

// The operations of one communicator within a group, which proceed side by side.
struct GroupWork {
  std::shared_ptr<Communicator> communicator;
  std::vector<sim::Communication> operations;
  std::optional<std::uint64_t> number;  // captured groups get theirs when they start

  bool operator()() {
    if (!number.has_value()) {
      number = communicator->numbered++;
    }
    if (communicator->aborted) {
      return true;
    }
    const sim::RankFault fault = sim::rank_fault(communicator->rank(), *number);
    if (fault == sim::RankFault::error) {
      communicator->meeting().error = ncclRemoteError;
    }
    if (fault != sim::RankFault::none || communicator->finished != *number ||
        !communicator->is_complete()) {
      return false;
    }
    bool done = true;
    for (sim::Communication& operation : operations) {
      done = operation.advance(*communicator) && done;
    }
    if (done) {
      ++communicator->finished;
    }
    return done;
  }
};

struct Group {
  int depth = 0;
  std::vector<GroupEntry> entries;
  std::vector<std::shared_ptr<Communicator>> opened;  // to wait for
  std::set<int> freed;  // devices on which aborted communicators free memory
};
thread_local Group group;

ncclResult_t submit(std::vector<GroupEntry> entries) {
  const ncclComm_t handle = entries.front().communicator;
  const cudaStream_t stream = entries.front().stream;
  GroupWork work{handle->own, {}, std::nullopt};
  for (const GroupEntry& entry : entries) {
    if (entry.stream != stream) {
      return ncclInvalidUsage;  // NCCL would couple the streams; this program does not need it
    }
    work.operations.emplace_back(entry.arguments);
  }
  if (!sim::machine().is_capturing(stream)) {
    work.number = handle->own->numbered++;
  }
  const cudaError_t error = sim::machine().enqueue(stream, std::move(work));
  return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

void log_links(const std::vector<GroupEntry>& entries) {
  for (const GroupEntry& entry : entries) {
    Communicator& communicator = *entry.communicator->own;
    const bool is_send = entry.arguments.kind == CommunicationKind::send;
    if (is_send || entry.arguments.kind == CommunicationKind::receive) {
      communicator.log_peer(entry.arguments.peer, is_send);
    } else {
      communicator.log_ring();
    }
  }
}

ncclResult_t submit_group(std::vector<GroupEntry> entries) {
  ncclResult_t result = ncclSuccess;
  while (!entries.empty()) {
    const ncclComm_t first = entries.front().communicator;
    const auto others =
        std::stable_partition(entries.begin(), entries.end(),
                              [=](const GroupEntry& entry) { return entry.communicator == first; });
    std::vector<GroupEntry> own(entries.begin(), others);
    entries.erase(entries.begin(), others);
    log_links(own);
    if (!first->own->is_blocking()) {
      first->held = std::move(own);
      result = ncclInProgress;
      continue;
    }
    if (const ncclResult_t error = submit(std::move(own)); error != ncclSuccess) {
      return error;
    }
  }
  return result;
}

bool is_usable(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(sim::machine().mutex);
  const sim::DeviceMemory* device = sim::machine().memory_of(memory);
  return bytes == 0 || (device != nullptr && device->holds(memory, bytes));
}

// `arguments.bytes` holds a number of elements here.
ncclResult_t start(const char* call, sim::Communication::Arguments arguments, ncclComm_t handle,
                   cudaStream_t stream) {
  if (const int error = sim::take_fault(call).error; error != 0) {
    return static_cast<ncclResult_t>(error);
  }
  if (handle == nullptr || arguments.peer < 0 || arguments.peer >= handle->own->ranks()) {
    return ncclInvalidArgument;
  }
  if (!handle->own->is_complete() || !handle->held.empty()) {
    return ncclInvalidUsage;
  }
  if (arguments.kind == CommunicationKind::broadcast && arguments.peer != handle->own->rank()) {
    arguments.from = nullptr;
  }
  arguments.bytes *= sim::bytes_of(arguments.type);
  const auto ranks = static_cast<std::size_t>(handle->own->ranks());
  const bool scatters = arguments.kind == CommunicationKind::reduce_scatter;
  const bool gathers = arguments.kind == CommunicationKind::all_gather;
  const bool reads = arguments.from != nullptr;
  const bool writes = arguments.to != nullptr;
  if ((reads && !is_usable(arguments.from, arguments.bytes * (scatters ? ranks : 1))) ||
      (writes && !is_usable(arguments.to, arguments.bytes * (gathers ? ranks : 1)))) {
    return ncclInvalidArgument;
  }
  GroupEntry entry{arguments, handle, stream};
  if (group.depth > 0) {
    group.entries.push_back(entry);
    return ncclSuccess;
  }
  return submit_group({entry});
}

ncclResult_t finish_opening(std::shared_ptr<Communicator> opened, ncclComm_t* handle) {
  if (opened == nullptr) {
    return ncclSystemError;
  }
  sim::log_communicator(opened->rank(), opened->ranks(), opened->device());
  *handle = new ncclComm(opened);
  if (!opened->is_blocking()) {
    return ncclInProgress;
  }
  if (group.depth > 0) {
    group.opened.push_back(opened);
  } else {
    opened->wait_until_complete();
  }
  return ncclSuccess;
}

bool blocks(const ncclConfig_t* config, bool otherwise) {
  return config == nullptr || config->blocking == NCCL_CONFIG_UNDEF_INT ? otherwise
                                                                        : config->blocking != 0;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  if (const int error = sim::take_fault("ncclGetVersion").error; error != 0) {
    return static_cast<ncclResult_t>(error);
  }
  *version = sim::environment().nccl_version;
  return ncclSuccess;
}
const char* ncclGetLastError(ncclComm_t) { return "(the simulated device keeps no details)"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (const int error = sim::take_fault("ncclGetUniqueId").error; error != 0) {
    return static_cast<ncclResult_t>(error);
  }
  unsigned long long random[2];
  if (::getrandom(random, sizeof random, 0) != sizeof random) {
    return ncclSystemError;
  }
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "/nccl-sim-%016llx%016llx", random[0],
                random[1]);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(communicator, ranks, id, rank, nullptr);
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  *communicator = nullptr;
  if (const int error = sim::take_fault("ncclCommInitRankConfig").error; error != 0) {
    return static_cast<ncclResult_t>(error);
  }
  if (ranks < 1 || ranks > sim::kMaxRanks || rank < 0 || rank >= ranks) {
    return ncclInvalidArgument;
  }
  return finish_opening(Communicator::open(id.internal, ranks, rank, blocks(config, true)),
                        communicator);
}
ncclResult_t ncclCommSplit(ncclComm_t communicator, int color, int key, ncclComm_t* split,
                           ncclConfig_t* config) {
  *split = nullptr;
  if (const int error = sim::take_fault("ncclCommSplit").error; error != 0) {
    return static_cast<ncclResult_t>(error);
  }
  auto opened =
      communicator->own->split(color, key, blocks(config, communicator->own->is_blocking()));
  return color < 0 ? ncclSuccess : finish_opening(std::move(opened), split);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  if (const int injected = sim::take_fault("ncclCommGetAsyncError").error; injected != 0) {
    *error = static_cast<ncclResult_t>(injected);
    return ncclSuccess;
  }
  if (!communicator->held.empty() && communicator->own->is_complete()) {
    *error = submit(std::exchange(communicator->held, {}));
    return ncclSuccess;
  }
  const int seen = communicator->own->meeting().error.load();
  *error = seen != 0                          ? static_cast<ncclResult_t>(seen)
           : communicator->own->is_complete() ? ncclSuccess
                                              : ncclInProgress;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t communicator, int* ranks) {
  *ranks = communicator->own->ranks();
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t communicator, int* rank) {
  *rank = communicator->own->rank();
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t communicator, int* device) {
  *device = communicator->own->device();
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  if (communicator == nullptr) {
    return ncclSuccess;
  }
  if (communicator->own->finished != communicator->own->numbered) {
    return ncclInvalidUsage;  // operations are under way
  }
  sim::require_all_deregistered(communicator);
  delete communicator;
  return ncclSuccess;
}
// Operations that wait finish at once, without results. Then NCCL frees memory, for which CUDA
// waits until the device is idle: other communicators whose operations wait for other ranks must
// have been aborted in the same group, or before if this one is still connecting, or with NCCL
// before 2.22.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  if (communicator == nullptr) {
    return ncclSuccess;
  }
  constexpr int kAbortsInGroups = 22200;
  const int device = communicator->own->device();
  const bool is_connected = communicator->own->is_complete();
  communicator->own->aborted = true;
  sim::forget_registrations(communicator);
  delete communicator;
  if (group.depth > 0 && is_connected && sim::environment().nccl_version >= kAbortsInGroups) {
    group.freed.insert(device);
  } else {
    (void)sim::machine().synchronize_device(device);
  }
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes) {
  if (const int error = sim::take_fault("ncclMemAlloc").error; error != 0) {
    return static_cast<ncclResult_t>(error);
  }
  return cudaMalloc(memory, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* memory) {
  sim::require_not_registered(memory);
  return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(const ncclComm_t communicator, void* memory, std::size_t bytes,
                              void** handle) {
  *handle = nullptr;
  if (const int error = sim::take_fault("ncclCommRegister").error; error != 0) {
    return static_cast<ncclResult_t>(error);
  }
  if (!is_usable(memory, bytes)) {
    return ncclInvalidArgument;
  }
  sim::note_registration(communicator, memory);
  *handle = memory;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t communicator, void* handle) {
  return sim::drop_registration(communicator, handle) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  return start("ncclAllReduce",
               {CommunicationKind::all_reduce, from, to, count, type, operation, 0}, communicator,
               stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t received_count,
                               ncclDataType_t type, ncclRedOp_t operation, ncclComm_t communicator,
                               cudaStream_t stream) {
  return start("ncclReduceScatter",
               {CommunicationKind::reduce_scatter, from, to, received_count, type, operation, 0},
               communicator, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t sent_count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return start("ncclAllGather",
               {CommunicationKind::all_gather, from, to, sent_count, type, ncclSum, 0},
               communicator, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t communicator, cudaStream_t stream) {
  return start("ncclBroadcast",
               {CommunicationKind::broadcast, from, to, count, type, ncclSum, root}, communicator,
               stream);
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return start("ncclSend", {CommunicationKind::send, from, nullptr, count, type, ncclSum, peer},
               communicator, stream);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return start("ncclRecv", {CommunicationKind::receive, nullptr, to, count, type, ncclSum, peer},
               communicator, stream);
}
ncclResult_t ncclGroupStart() {
  if (const int error = sim::take_fault("ncclGroupStart").error; error != 0) {
    return static_cast<ncclResult_t>(error);
  }
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) {
    return ncclInvalidUsage;
  }
  if (--group.depth > 0) {
    return ncclSuccess;
  }
  if (const int error = sim::take_fault("ncclGroupEnd").error; error != 0) {
    group = {};
    return static_cast<ncclResult_t>(error);
  }
  for (const auto& opened : std::exchange(group.opened, {})) {
    opened->wait_until_complete();
  }
  for (const int device : std::exchange(group.freed, {})) {
    (void)sim::machine().synchronize_device(device);
  }
  return submit_group(std::exchange(group.entries, {}));
}
}
