// NcclMonitor watches the operations of all groups that were split from one NCCL world. A thread
// looks at them every few milliseconds. If one fails or passes its deadline, here or on another
// rank, the thread aborts all channels, so that the streams that wait for them continue, and all
// operations under way and all later ones fail with the same error. Owned by the communicators
// together; any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/nccl/nccl_channel.h"
#include "mpi/watch/group_watch.h"

namespace trireme {

class NcclOperation;

class NcclMonitor {
 public:
  explicit NcclMonitor(int device);
  ~NcclMonitor();
  NcclMonitor(const NcclMonitor&) = delete;
  NcclMonitor& operator=(const NcclMonitor&) = delete;

  // Channels must be removed before they and their communicators end. Removing one waits while the
  // other ranks are being asked about an operation of it, up to a few seconds.
  void add(NcclChannel& channel);
  void remove(NcclChannel& channel);
  void watch(std::shared_ptr<NcclOperation> operation);
  // Throws the error after which no operation can start.
  void check_failed() const;
  // Aborts all channels, as after an error of this rank.
  void give_up(const std::string& who) noexcept;
  // Aborts all channels with this error, unless there was one before. Returns the first error.
  std::exception_ptr fail(const std::exception_ptr& error) noexcept;

 private:
  void run();
  // Returns the error of an overdue operation, or null. Drops operations that have ended. Throws
  // the errors of NCCL and of the device.
  std::exception_ptr look(std::unique_lock<std::mutex>& lock);
  // Names the oldest operation under way on the channel, for messages.
  std::string describe_work_of(const NcclChannel& channel) const;
  void fail_all(const std::exception_ptr& error) noexcept;

  int device_;
  mutable std::mutex mutex_;  // guards the members below, but for the thread
  std::condition_variable changed_;
  std::vector<NcclChannel*> channels_;
  std::deque<std::shared_ptr<NcclOperation>> operations_;  // under way
  std::exception_ptr failure_;
  const NcclChannel* asked_about_ = nullptr;  // its communicator is in use without the lock
  bool is_ending_ = false;
  std::thread thread_;
};

// HangFacts says which operation of a group is overdue, and where.
struct HangFacts {
  OperationLabel label;
  const GroupMembers& members;
  std::chrono::steady_clock::duration limit;
  GroupWatch* watch = nullptr;  // null if the group is not watched
  std::string links = {};       // how this rank is connected in the group; empty if unknown
  bool is_overdue_here = true;  // otherwise, another rank has reported the operation
};
// Asks the other ranks, which takes seconds. Returns a Hang that names those responsible.
std::exception_ptr describe_hang(const HangFacts& facts);

// NcclOperation is an operation that was queued on a channel.
class NcclOperation : public Pending::Operation, public cuda::NativeEvent {
 public:
  struct Plan {
    std::shared_ptr<NcclMonitor> monitor;
    NcclChannel& channel;
    OperationLabel label;
    const GroupMembers& members;
    std::chrono::steady_clock::duration limit;
    GroupWatch* watch = nullptr;  // null if the group is not watched
    FlightTicket ticket = 0;      // from `watch`
    StreamEvent ready;            // the operation starts after this
    std::string links;            // for the message of a hang
  };
  // Called when the operation has been queued on the channel's stream.
  explicit NcclOperation(Plan plan);

  bool reached() override { return is_failed_.load() || done_.reached(); }
  // Returns when the operation has finished; throws its error.
  void wait() override;
  void abandon() noexcept override;

  cudaEvent_t native() const override;
  void rethrow_failure() override;

  // These are called by the monitor's thread.
  NcclChannel& channel() const { return plan_.channel; }
  bool has_finished() const { return done_.reached(); }
  // Starts the deadline at the first call after everything before the operation has finished.
  // Returns whether the deadline has passed, here or on another rank.
  bool is_overdue(std::chrono::steady_clock::time_point now);
  HangFacts hang() const;
  void finish(std::exception_ptr error) noexcept;

 private:
  Plan plan_;
  StreamEvent done_;
  std::chrono::steady_clock::time_point begun_{};  // not set before the operation can run
  bool is_overdue_here_ = false;
  std::exception_ptr error_;  // written before is_failed_, read after it
  std::atomic<bool> is_failed_ = false;
};

}  // namespace trireme
