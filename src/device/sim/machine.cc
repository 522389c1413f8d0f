#include "src/device/sim/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "src/device/sim/block.h"
#include "src/device/sim/capture.h"
#include "src/device/sim/crash_report.h"
#include "src/device/sim/environment.h"
#include "src/device/sim/kernel_thread.h"

namespace sim {
namespace {

// The pauses between polls grow with the number of polls, so that a long wait costs little.
constexpr std::chrono::microseconds kShortestPause{30};
constexpr std::chrono::microseconds kLongestPause{1000};
constexpr int kEagerRounds = 20;              // polls without a pause
constexpr std::uint64_t kLongestDelay = 300;  // microseconds
constexpr std::size_t kSteadyFor = 500;       // operations for which a stream keeps its priority

}  // namespace

Machine& machine() {
  static Machine& made = *new Machine;  // outlives all other static objects
  return made;
}

int& current_device() {
  static thread_local int device = 0;
  return device;
}

cudaError_t& next_failure() {
  static thread_local cudaError_t failure = cudaSuccess;
  return failure;
}

std::byte* accessible(const void* address) {
  const DeviceMemory* memory = machine().memory_of(address);
  return memory == nullptr ? static_cast<std::byte*>(const_cast<void*>(address))
                           : memory->alias(address);
}

Machine::Machine() : seed_(environment().seed), random_(seed_) {
  const auto devices = static_cast<int>(environment().visible.size());
  for (int device = 0; device < devices; ++device) {
    memories_.push_back(std::make_unique<DeviceMemory>(environment().memory_bytes));
    streams_.push_back(std::make_unique<CUstream_st>(CUstream_st{device}));
  }
  report_crashes();
  worker_ = std::thread([this] { run_worker(); });
  std::atexit([] { machine().stop(); });
}

void Machine::stop() {
  if (std::this_thread::get_id() == worker_.get_id()) {
    return;  // a function on the worker has ended the process
  }
  {
    const std::lock_guard lock(mutex);
    stops_ = true;
    if (error_ == cudaSuccess) {
      error_ = cudaErrorCudartUnloading;
    }
  }
  changed_.notify_all();
  finished_.notify_all();
  worker_.join();
  if (environment().report_leaks) {
    report_leaks();
  }
}

void Machine::report_leaks() {
  for (int device = 0; device < devices(); ++device) {
    if (const std::size_t count = memory(device).allocations(); count > 0) {
      std::fprintf(stderr, "simulated device %d: %zu allocations were never freed\n", device,
                   count);
    }
  }
  if (!pinned.empty()) {
    std::fprintf(stderr, "simulated device: %zu pinned pieces of memory were never freed\n",
                 pinned.size());
  }
}

DeviceMemory* Machine::memory_of(const void* address, int* device) {
  for (std::size_t at = 0; at < memories_.size(); ++at) {
    if (memories_[at]->contains(address)) {
      if (device != nullptr) {
        *device = static_cast<int>(at);
      }
      return memories_[at].get();
    }
  }
  return nullptr;
}

CUstream_st* Machine::resolve(cudaStream_t stream) {
  if (stream == nullptr) {
    return streams_[static_cast<std::size_t>(current_device())].get();
  }
  const auto found = std::find_if(streams_.begin(), streams_.end(),
                                  [=](const auto& one) { return one.get() == stream; });
  return found == streams_.end() || stream->destroyed ? nullptr : stream;
}

void Machine::end_capture(const std::shared_ptr<Capture>& capture) {
  for (const auto& stream : streams_) {
    if (stream->capture == capture) {
      stream->capture = nullptr;
      stream->tail.clear();
    }
  }
  capture->has_ended = true;
  std::erase_if(captures, [&](const auto& one) { return one.lock() == capture; });
}

bool Machine::is_capturing(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  const CUstream_st* from = resolve(stream);
  return from != nullptr && from->capture != nullptr;
}

// Invalidates the captures of the streams that the legacy stream waits for. Returns whether there
// were any.
bool Machine::invalidate_blocking_captures() {
  bool found = false;
  for (const auto& stream : streams_) {
    if (stream->capture != nullptr && stream->blocking) {
      stream->capture->is_valid = false;
      found = true;
    }
  }
  return found;
}

CUstream_st* Machine::make_stream(int device, bool blocking) {
  const std::lock_guard lock(mutex);
  streams_.push_back(std::make_unique<CUstream_st>(CUstream_st{device}));
  streams_.back()->blocking = blocking;
  streams_.back()->priority = random_.next();
  const std::size_t connections = environment().connections;
  streams_.back()->connection = connections == 0 ? 0 : made_++ % connections;
  return streams_.back().get();
}

cudaError_t Machine::destroy(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  CUstream_st* found = stream == nullptr ? nullptr : resolve(stream);
  if (found == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  found->destroyed = true;
  changed_.notify_all();
  return cudaSuccess;
}

cudaError_t Machine::enqueue(cudaStream_t stream, Work work) {
  Operation operation;
  operation.work = std::move(work);
  return enqueue(stream, std::move(operation));
}

cudaError_t Machine::enqueue(cudaStream_t stream, Operation operation) {
  const std::lock_guard lock(mutex);
  CUstream_st* to = resolve(stream);
  if (to == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (to->capture != nullptr) {
    return capture_work(*to, std::move(operation.work));
  }
  if (stream == nullptr && invalidate_blocking_captures()) {
    return cudaErrorStreamCaptureImplicit;
  }
  if (error_ != cudaSuccess) {
    return error_;
  }
  operation.sequence = ++sequence_;
  operation.fails_with = std::exchange(next_failure(), cudaSuccess);
  to->queue.push_back(std::move(operation));
  ++to->enqueued;
  changed_.notify_one();
  return cudaSuccess;
}

void Machine::fail(cudaError_t error) {
  const std::lock_guard lock(mutex);
  if (error_ == cudaSuccess) {
    error_ = error;
  }
  finished_.notify_all();
  changed_.notify_all();
}

cudaError_t Machine::error() {
  const std::lock_guard lock(mutex);
  return error_;
}

void Machine::open_memory() {
  for (const auto& one : memories_) {
    one->allow_access(true);
  }
}

void Machine::close_memory() {
  for (const auto& one : memories_) {
    one->allow_access(false);
  }
}

void Machine::set_seed(std::uint64_t seed) {
  const std::lock_guard lock(mutex);
  seed_ = seed;
  random_ = Random(seed);
}

std::size_t Machine::random_below(std::size_t count) {
  const std::lock_guard lock(mutex);
  return seed_ == 0 ? 0 : random_.below(count);
}

int Machine::kernel_shared_bytes(const void* kernel) {
  const std::lock_guard lock(mutex);
  const auto found = allowed_shared.find(kernel);
  return std::max(static_cast<int>(kDefaultSharedBytes),
                  found == allowed_shared.end() ? 0 : found->second);
}

void Machine::run_worker() {
  use_signal_stack();
  std::unique_lock lock(mutex);
  while (!stops_) {
    if (CUstream_st* stream = choose_ready(); stream != nullptr) {
      perform(*stream, lock);
    } else {
      wait_for_work(lock);
    }
  }
  close_memory();
}

// Returns whether the stream's next operation must wait for one that was put earlier into the same
// queue of the hardware and has not started.
bool Machine::is_behind_others(const CUstream_st& stream) const {
  if (environment().connections == 0 || stream.begun) {
    return false;
  }
  const std::uint64_t own = stream.queue.front().sequence;
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto& other) {
    const std::size_t next = other->begun ? 1 : 0;
    return other->connection == stream.connection && other->device == stream.device &&
           other->queue.size() > next && other->queue[next].sequence < own;
  });
}

// Returns whether the stream's first operation can be tried.
bool Machine::is_ready(const CUstream_st& stream) const {
  if (stream.queue.empty() || stream.stalled) {
    return false;
  }
  const Operation& first = stream.queue.front();
  const bool waits = first.kind == Operation::Kind::wait && first.event->reached < first.number;
  return error_ != cudaSuccess || (!waits && !is_behind_others(stream));
}

// Returns a stream whose first operation can be tried, or nullptr. Removes streams that are no
// longer needed.
CUstream_st* Machine::choose_ready() {
  std::erase_if(streams_,
                [](const auto& stream) { return stream->destroyed && stream->queue.empty(); });
  CUstream_st* chosen = nullptr;
  std::size_t candidates = 0;
  for (const auto& stream : streams_) {
    if (!is_ready(*stream)) {
      continue;
    }
    ++candidates;
    if (chosen == nullptr || goes_before(*stream, *chosen, candidates)) {
      chosen = stream.get();
    }
  }
  if (chosen != nullptr && environment().delays && random_.below(kSteadyFor) == 0) {
    chosen->priority = random_.next();
  }
  return chosen;
}

// If several streams are ready, a seed chooses one for each operation. With delays, it is the
// stream of the highest priority, so that a stream may fall behind for as long as others have work.
// Then a missing wait is found even if much other work lies in between (Burckhardt et al., A
// Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, 2010).
bool Machine::goes_before(const CUstream_st& stream, const CUstream_st& chosen,
                          std::size_t candidates) {
  if (seed_ == 0) {
    return stream.queue.front().sequence < chosen.queue.front().sequence;
  }
  return environment().delays ? stream.priority > chosen.priority : random_.below(candidates) == 0;
}

void Machine::perform(CUstream_st& stream, std::unique_lock<std::mutex>& lock) {
  Operation& operation = stream.queue.front();  // stays in place when others are appended
  bool done = true;
  if (operation.fails_with != cudaSuccess && error_ == cudaSuccess) {
    error_ = operation.fails_with;
  }
  if (operation.work != nullptr && error_ == cudaSuccess) {
    const std::uint64_t delay = environment().delays ? random_.below(kLongestDelay) : 0;
    lock.unlock();
    if (delay > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
    }
    done = operation.work();
    if (done) {
      operation.work = nullptr;  // without the mutex, which what it holds may lock at its end
    }
    lock.lock();
  }
  stream.begun = !done;
  if (!done) {
    stream.stalled = true;
    return;
  }
  if (operation.kind == Operation::Kind::record) {
    operation.event->reached = std::max(operation.event->reached, operation.number);
    operation.event->time = std::chrono::steady_clock::now();
  }
  stream.queue.pop_front();
  ++stream.finished;
  fruitless_ = 0;
  for (const auto& one : streams_) {
    one->stalled = false;
  }
  finished_.notify_all();
}

void Machine::wait_for_work(std::unique_lock<std::mutex>& lock) {
  close_memory();
  bool polls = false;
  for (const auto& stream : streams_) {
    polls = polls || stream->stalled;
    stream->stalled = false;
  }
  if (!polls) {
    changed_.wait(lock);
  } else if (++fruitless_ <= kEagerRounds) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  } else {
    const int pauses = fruitless_ - kEagerRounds;
    changed_.wait_for(lock, std::min(kShortestPause * (1 + pauses / 8), kLongestPause));
  }
}

bool Machine::may_use(int device) {
  std::uint64_t none = 0;
  (void)used_.compare_exchange_strong(none, bit_of(device));
  return (used_ & bit_of(device)) != 0;
}

void Machine::load(const void* kernel) {
  const std::lock_guard lock(mutex);
  loaded_.insert(kernel);
}

void Machine::check_loaded(const void* kernel) {
  const std::lock_guard lock(mutex);
  if (loaded_.insert(kernel).second && connected > 0) {
    die("a kernel is launched for the first time while ranks are connected by NCCL: load it before "
        "(load_kernels)");
  }
}

void check_in_allocation(const char* what, const void* data, std::size_t bytes) {
  const std::lock_guard lock(machine().mutex);
  const DeviceMemory* memory = machine().memory_of(data);
  if (memory == nullptr || !memory->holds(data, bytes)) {
    char text[160];
    std::snprintf(text, sizeof text, "%s: %zu bytes do not lie within an allocation of the device",
                  what, bytes);
    die(text);
  }
}

}  // namespace sim
