// The Machine is the simulated hardware of this process: devices with their memory, pinned memory,
// and streams, whose operations one worker thread performs. It is made at the first use and stops
// when the process ends; operations that wait in streams then are dropped. Every function may be
// called from any thread unless it says otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <driver_types.h>

#include "src/device/sim/device_memory.h"
#include "src/device/sim/random.h"

namespace sim {

// Performed by the worker, without the mutex, again and again until it returns true; other streams
// go on in between. A copy that was made before the first call starts from the beginning: launches
// of a graph perform copies.
using Work = std::function<bool()>;

// Copies of the pointer in operations outlive the event itself. Guarded by the machine's mutex.
struct EventState {
  std::uint64_t recorded = 0;  // number of the last record that was enqueued
  std::uint64_t reached = 0;   // number of the last record that was performed
  std::chrono::steady_clock::time_point time = {};
};

struct Operation {
  enum class Kind { work, record, wait };
  Kind kind = Kind::work;
  Work work = nullptr;
  std::shared_ptr<EventState> event = nullptr;
  std::uint64_t number = 0;  // of the event's record
  cudaError_t fails_with = cudaSuccess;
  std::uint64_t sequence = 0;  // over all streams, in the order of the host's calls
};

struct Capture;

}  // namespace sim

struct CUstream_st {
  int device = 0;
  std::deque<sim::Operation> queue = {};
  std::uint64_t enqueued = 0;
  std::uint64_t finished = 0;
  std::uint64_t priority = 0;
  std::size_t connection = 0;  // the queue of the hardware that it shares with other streams
  bool begun = false;          // its first operation was tried
  bool stalled = false;        // its first operation had to wait when it was last tried
  bool destroyed = false;      // to be removed once it is empty
  bool blocking = true;        // the legacy stream and it wait for each other
  std::shared_ptr<sim::Capture> capture = nullptr;  // receives the operations while capturing
  std::vector<std::size_t> tail = {};               // the stream's last nodes in the capture
};

struct CUevent_st {
  std::shared_ptr<sim::EventState> state = std::make_shared<sim::EventState>();
  bool has_time = false;
  std::shared_ptr<sim::Capture> capture = nullptr;  // the last record was captured
  std::vector<std::size_t> tail = {};
};

namespace sim {

class Machine {
 public:
  // nullptr stands for the default stream of the calling thread's device, which does not wait for
  // other streams here. Returns the device's error if it has failed.
  cudaError_t enqueue(cudaStream_t stream, Operation operation);
  cudaError_t enqueue(cudaStream_t stream, Work work);

  cudaError_t synchronize(cudaStream_t stream);
  cudaError_t synchronize_device(int device);
  cudaError_t synchronize(const std::shared_ptr<EventState>& event);
  // Returns cudaErrorNotReady while operations are left.
  cudaError_t query(cudaStream_t stream);
  // Returns cudaErrorNotReady until the event's last record is performed. A thread that asks about
  // one event again and again waits for it: then the answer comes late, so that the worker has the
  // processor.
  cudaError_t query(const std::shared_ptr<EventState>& event);

  bool is_capturing(cudaStream_t stream);

  CUstream_st* make_stream(int device, bool blocking);
  cudaError_t destroy(cudaStream_t stream);

  // From now on every call returns the error, and operations are dropped.
  void fail(cudaError_t error);
  cudaError_t error();

  // Called by operations, on the worker thread: before a kernel, and before a function of the host.
  void open_memory();
  void close_memory();

  // Shuffles the order of streams and kernels from now on; 0: ascending order.
  void set_seed(std::uint64_t seed);
  std::uint64_t seed() const { return seed_; }
  // Returns a number from 0 to count - 1, always 0 if the seed is 0.
  std::size_t random_below(std::size_t count);

  // Makes the process a user of the device if it uses none yet. Returns whether it is one: a thread
  // that has chosen no device must not make the process a user of device 0.
  bool may_use(int device);
  // Makes the process a user of a device that a thread has chosen.
  void use(int device) { used_ |= bit_of(device); }

  // Loads a kernel, as CUDA does when it is asked for the kernel's attributes.
  void load(const void* kernel);
  // Ends the program if the kernel would be loaded by its launch while ranks are connected: CUDA
  // may then wait for the device to be idle, which it never is if a rank does not come.
  void check_loaded(const void* kernel);
  std::atomic<int> connected = 0;  // communicators of several ranks

  int devices() const { return static_cast<int>(memories_.size()); }
  int kernel_shared_bytes(const void* kernel);

  // The members below are guarded by the mutex.
  std::mutex mutex;
  DeviceMemory& memory(int device) { return *memories_[static_cast<std::size_t>(device)]; }
  // Returns nullptr for addresses of the host.
  DeviceMemory* memory_of(const void* address, int* device = nullptr);
  std::map<const std::byte*, std::size_t> pinned;  // bytes by start
  std::map<const void*, int> allowed_shared;       // bytes of dynamic shared memory
  std::vector<std::weak_ptr<Capture>> captures;
  // Returns the stream itself, a default stream for nullptr, or nullptr if it does not exist.
  CUstream_st* resolve(cudaStream_t stream);
  // Lets all streams of the capture perform their operations again.
  void end_capture(const std::shared_ptr<Capture>& capture);

 private:
  friend Machine& machine();
  Machine();
  bool invalidate_blocking_captures();
  void run_worker();
  CUstream_st* choose_ready();
  bool is_ready(const CUstream_st& stream) const;
  bool is_behind_others(const CUstream_st& stream) const;
  bool goes_before(const CUstream_st& stream, const CUstream_st& chosen, std::size_t candidates);
  void perform(CUstream_st& stream, std::unique_lock<std::mutex>& lock);
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void stop();
  void report_leaks();

  std::vector<std::unique_ptr<DeviceMemory>> memories_;
  std::vector<std::unique_ptr<CUstream_st>> streams_;  // first the default streams, by device
  std::uint64_t seed_ = 0;
  Random random_;
  std::uint64_t sequence_ = 0;
  std::size_t made_ = 0;  // streams
  int fruitless_ = 0;     // rounds in which all streams were stalled
  bool stops_ = false;
  static std::uint64_t bit_of(int device) { return std::uint64_t{1} << (device % 64); }
  std::atomic<std::uint64_t> used_ = 0;  // a bit for each device
  std::set<const void*> loaded_;         // kernels
  cudaError_t error_ = cudaSuccess;
  std::condition_variable changed_;
  std::condition_variable finished_;
  std::thread worker_;
};

Machine& machine();

// The device of the calling thread (cudaSetDevice).
int& current_device();

// An error that the next operation which the calling thread enqueues is to fail with.
cudaError_t& next_failure();

// Returns where the simulation may access what lies at the address, on a device or the host.
std::byte* accessible(const void* address);

// Returns whether a copy may read or write these bytes: they lie within one allocation of a device,
// or within one pinned piece of the host's memory.
bool can_copy(const void* data, std::size_t bytes);

// Ends the program if these bytes do not lie within one allocation of a device. what: names them.
void check_in_allocation(const char* what, const void* data, std::size_t bytes);

}  // namespace sim
