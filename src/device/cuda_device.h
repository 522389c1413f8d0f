// Declares what CUDA devices provide: memory, streams and facts. The program is linked with one of
// three implementations: src/device/cuda over the CUDA runtime, the same over the simulated device
// (src/device/sim), or src/device/cuda_absent, in which everything that needs a device throws
// ConfigError. No header of CUDA is needed to use this one. Callable from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "src/device/memory_source.h"
#include "src/device/stream.h"

namespace trireme::cuda {

enum class BackEnd : std::uint8_t { none, simulated, real };

// Says which implementation is linked.
BackEnd back_end();
// Returns, for example, "CUDA 13.0", "simulated CUDA device" or "no CUDA".
std::string back_end_text();
// DeviceSearch says how many devices this process can use and, if none, why.
struct DeviceSearch {
  enum class Trouble : std::uint8_t {
    none,
    absent,      // no back end, no driver, or no device that this process may see
    old_driver,  // there is a driver, which this program cannot use
    library,     // there is a device, but cuBLASLt is missing on this host
    fault,       // the driver reports an error of a device or of itself
  };
  int count = 0;
  Trouble trouble = Trouble::none;
  std::string why;  // empty without trouble
};
DeviceSearch find_devices();
// Asks CUDA for as many queues per device as it has (32), unless CUDA_DEVICE_MAX_CONNECTIONS is set
// or processes share the device by MPS, whose clients divide the queues among them. With CUDA's 8,
// the streams of a run and those of NCCL share queues, and work of one stream waits for what the
// streams beside it wait for. Call it before CUDA is first used, on the only thread.
void ask_for_queues();
// Returns the number of devices that this process can use.
int device_count();

struct DeviceFacts {
  std::string name;             // for example "NVIDIA H100 80GB HBM3"
  std::string uuid;             // for example "GPU-5b2e..."
  std::string bus;              // PCI address, for example "0000:1b:00.0"
  std::int64_t bytes = 0;       // memory of the device
  std::int64_t free_bytes = 0;  // the part that no process uses; set by device_facts() only
  int multiprocessors = 0;
  int compute_capability = 0;  // 90 for 9.0
};
// Returns what can be known without using the device; free_bytes is 0.
DeviceFacts device_identity(int index);
// Makes the process a user of the device. Throws DeviceError if another one has it exclusively, and
// ConfigError if this program holds no code for it.
DeviceFacts device_facts(int index);
// Returns whether two devices that this process sees can read each other's memory.
bool can_access_peer(int device, int peer);

// CudaVersions holds versions of CUDA as numbers: 13000 stands for 13.0, and 0 for none.
struct CudaVersions {
  int runtime = 0;
  int driver = 0;  // the newest that the driver can run
};
CudaVersions cuda_versions();
// Returns, for example, "13.0" for 13000.
std::string cuda_version_text(int version);
// Returns the file name of NVIDIA's management library (src/device/nvml); empty if there is none.
std::string management_library();

// Returns the memory of a device, and memory of the host from and to which it copies while the host
// computes.
MemorySource& device_memory(int index);
MemorySource& pinned_memory(int index);
// Returns whether these bytes were taken from device_memory() at once. CUDA copies nothing that
// spans two allocations, even if they touch each other.
bool is_one_allocation(const void* data, std::int64_t bytes);
// QueueUse says what a stream is for.
enum class QueueUse : std::uint8_t {
  work,    // kernels
  copies,  // long copies that kernels of other streams are not to wait for
};
// Makes a stream of the device. Throws what device_facts() throws.
std::shared_ptr<StreamQueue> make_queue(int index, QueueUse use = QueueUse::work);

// DeviceUse counts what slows down a training step on a GPU and should be rare, and launches of
// graphs, which make it faster.
struct DeviceUse {
  std::int64_t waits = 0;        // how often the calling thread has waited for a device
  std::int64_t allocations = 0;  // of a device's or of pinned memory, by all threads
  std::int64_t graphs = 0;       // launched by the calling thread
  // Copies between a device and memory of the host that is not pinned, which take the host another
  // copy; by all threads.
  std::int64_t staged = 0;
};
// Returns the counts since the process began.
DeviceUse device_use();

// Opens and closes a named range of the calling thread, which profilers of GPUs show (NVTX). Ranges
// are nested. Costs next to nothing without a profiler.
void push_range(std::string_view name);
void pop_range();

}  // namespace trireme::cuda
