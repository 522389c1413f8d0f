// The engine on io_uring, by its system calls (io_uring_setup(2), io_uring_enter(2)).
//
//   submission ring   sq_.array[tail & mask] = slot; tail + 1     one entry per slot
//   completion ring   cqes[head & mask] = {slot, result}; head + 1
//
// The kernel and this thread each move one end of a ring.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/core.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "benchmarks/io/io_descriptor.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// Owns a mapping of a ring.
class RingMemory {
 public:
  RingMemory(int fd, std::size_t bytes, std::uint64_t what) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                   static_cast<off_t>(what));
    if (data_ == MAP_FAILED) {
      throw IoError(fmt::format("cannot map a ring of io_uring: {}", std::strerror(errno)));
    }
  }
  ~RingMemory() { ::munmap(data_, bytes_); }
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;
  template <class T>
  T* at(std::uint32_t offset) const {
    return reinterpret_cast<T*>(static_cast<char*>(data_) + offset);
  }

 private:
  void* data_;
  std::size_t bytes_;
};

std::uint32_t load(std::uint32_t* word) {
  return std::atomic_ref<std::uint32_t>(*word).load(std::memory_order_acquire);
}
void store(std::uint32_t* word, std::uint32_t value) {
  std::atomic_ref<std::uint32_t>(*word).store(value, std::memory_order_release);
}

UniqueHandle<FileDescriptorTraits> set_up(int depth, io_uring_params& params) {
  const auto fd =
      static_cast<int>(::syscall(SYS_io_uring_setup, static_cast<unsigned>(depth), &params));
  if (fd < 0) {
    throw PolicyError(
        fmt::format("io_uring cannot be used here ({}): the kernel lacks it, or "
                    "kernel.io_uring_disabled or a seccomp filter forbids it. Use --api posix",
                    std::strerror(errno)));
  }
  return UniqueHandle<FileDescriptorTraits>(fd);
}

class UringEngine : public IoEngine {
 public:
  explicit UringEngine(int depth)
      : ring_(set_up(depth, params_)),
        submissions_(ring_.get(), params_.sq_off.array + params_.sq_entries * sizeof(unsigned),
                     IORING_OFF_SQ_RING),
        completions_(ring_.get(), params_.cq_off.cqes + params_.cq_entries * sizeof(io_uring_cqe),
                     IORING_OFF_CQ_RING),
        entries_(ring_.get(), params_.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES),
        transfers_(static_cast<std::size_t>(depth)) {}

  void open(const IoOpening& how) override { file_.open(how); }
  int depth() const override { return static_cast<int>(transfers_.size()); }

  void submit(int slot, const IoTransfer& transfer) override {
    transfers_[static_cast<std::size_t>(slot)] = transfer;
    push(slot);
  }

  int complete() override {
    for (;;) {
      std::uint32_t* const head = completions_.at<std::uint32_t>(params_.cq_off.head);
      if (*head == load(completions_.at<std::uint32_t>(params_.cq_off.tail))) {
        enter(0, 1);
        continue;
      }
      const std::uint32_t mask = *completions_.at<std::uint32_t>(params_.cq_off.ring_mask);
      const io_uring_cqe done = completions_.at<io_uring_cqe>(params_.cq_off.cqes)[*head & mask];
      store(head, *head + 1);
      const auto slot = static_cast<int>(done.user_data);
      IoTransfer& rest = transfers_[static_cast<std::size_t>(slot)];
      file_.advance(rest, done.res);
      if (rest.bytes == 0) {
        return slot;
      }
      push(slot);
    }
  }

  void sync() override { file_.sync(); }
  void close() override { file_.close(); }

 private:
  void push(int slot) {
    const IoTransfer& transfer = transfers_[static_cast<std::size_t>(slot)];
    std::uint32_t* const tail = submissions_.at<std::uint32_t>(params_.sq_off.tail);
    const std::uint32_t mask = *submissions_.at<std::uint32_t>(params_.sq_off.ring_mask);
    const std::uint32_t at = *tail & mask;
    io_uring_sqe& entry = entries_.at<io_uring_sqe>(0)[at];
    std::memset(&entry, 0, sizeof entry);
    entry.opcode = file_.writes() ? IORING_OP_WRITE : IORING_OP_READ;
    entry.fd = file_.fd();
    entry.off = static_cast<std::uint64_t>(transfer.offset);
    entry.addr = reinterpret_cast<std::uint64_t>(transfer.data);
    entry.len = static_cast<std::uint32_t>(transfer.bytes);
    entry.user_data = static_cast<std::uint64_t>(slot);
    submissions_.at<std::uint32_t>(params_.sq_off.array)[at] = at;
    store(tail, *tail + 1);
    enter(1, 0);
  }

  void enter(unsigned submitted, unsigned wanted) const {
    while (::syscall(SYS_io_uring_enter, ring_.get(), submitted, wanted,
                     wanted > 0 ? IORING_ENTER_GETEVENTS : 0U, nullptr, 0) < 0) {
      if (errno != EINTR && errno != EAGAIN) {
        throw IoError(fmt::format("io_uring_enter failed: {}", std::strerror(errno)));
      }
    }
  }

  io_uring_params params_ = {};
  UniqueHandle<FileDescriptorTraits> ring_;
  RingMemory submissions_;
  RingMemory completions_;
  RingMemory entries_;
  std::vector<IoTransfer> transfers_;  // what is left of each slot's transfer
  IoDescriptor file_;
};

}  // namespace

std::unique_ptr<IoEngine> make_uring_engine(int depth) {
  return std::make_unique<UringEngine>(depth);
}

}  // namespace trireme
