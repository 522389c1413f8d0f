// FlightRecorder remembers a rank's last operations, its groups and its phase, to explain a hang.
// There is one per rank, owned by the session (or a thread world) and shared by all its
// communicators, which end before it. Every function may be called from any thread at any time;
// recording takes some tens of nanoseconds and never blocks.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mpi/watch/flight_report.h"
#include "mpi/watch/operation_label.h"
#include "src/base/run_text.h"

namespace trireme {

// Identifies an operation from queued() on. Tickets count from 1; 0 means an operation that is not
// recorded.
using FlightTicket = std::uint64_t;

enum class FlightState : std::uint8_t { queued, started, finished, failed };
std::string_view name_of(FlightState state);

// A FlightEntry is an operation, copied out of the ring. Times are nanoseconds of the steady clock,
// or 0 if not reached yet.
struct FlightEntry {
  FlightTicket ticket = 0;
  std::uint32_t group = 0;  // FlightGroup::serial
  OperationLabel label;
  FlightState state = FlightState::queued;
  std::int64_t queued_ns = 0;
  std::int64_t started_ns = 0;
  std::int64_t ended_ns = 0;
};

// A FlightGroup is one of the rank's groups. `entered`, `finished` and `alarm` are numbers of
// collective operations; -1 means none.
struct FlightGroup {
  std::uint32_t serial = 0;  // counts this rank's groups in the order of their creation
  std::uint64_t id = 0;      // the same on all ranks of the group
  std::string name;
  std::vector<int> members;  // world ranks, in the group's order
  std::atomic<std::int64_t> entered = -1;
  std::atomic<FlightTicket> entered_ticket = 0;
  std::atomic<std::int64_t> finished = -1;
  // Rank `alarmed_by` of the world has waited for this operation beyond its deadline.
  std::atomic<std::int64_t> alarm = -1;
  std::atomic<int> alarmed_by = -1;
  std::atomic<bool> ended = false;
};

// Returns "0..7", "0,2,4" or "0,2,4,..,62 (32 ranks)".
std::string compact_ranks(const std::vector<int>& ranks);

class FlightRecorder {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kEntries = 4096;

  // `rank` is the number in the world.
  FlightRecorder(int rank, std::string host);
  // Waits for a dump that is being written.
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  int rank() const { return rank_; }
  // Sets the current phase, such as "data_load", "train" or "checkpoint", and returns the previous
  // one. The string must outlive the recorder, as a literal does.
  const char* enter_phase(const char* phase);

  // Adds a group, which stays valid until group_ended(). If `id` is 0, it is a world and gets the
  // next number as its id.
  FlightGroup& add_group(std::uint64_t id, std::string name, std::vector<int> members);
  void group_ended(FlightGroup& group);

  // Requests precise times for small operations too, as tracing does.
  void want_precise_times(bool want) { precise_.store(want, std::memory_order_relaxed); }
  bool wants_precise_times() const { return precise_.load(std::memory_order_relaxed); }

  // `now` may be some milliseconds old unless precise times are wanted.
  FlightTicket queued(FlightGroup& group, const OperationLabel& label,
                      Clock::time_point now = Clock::now());
  void started(FlightTicket ticket, Clock::time_point now);
  void ended(FlightTicket ticket, FlightGroup& group, const OperationLabel& label, bool failed,
             Clock::time_point now = Clock::now());

  // Returns the operations in the ring whose tickets are greater than `after`, oldest first.
  std::vector<FlightEntry> entries(FlightTicket after = 0) const;
  // Returns nothing if the entry has been, or is being, overwritten.
  std::optional<FlightEntry> read(FlightTicket ticket) const;
  // Returns the names of all groups that are still remembered, by serial.
  std::map<std::uint32_t, std::string> group_names() const;
  // Answers a question of another rank about a group and marks the operation in question as
  // overdue.
  FlightReport answer(const FlightQuestion& question);

  // Dumps are written to folder/flight-rank-00003.jsonl. Until a folder is set, there are none.
  // sealer: encrypts them; null: they are plain.
  void set_dump_folder(std::filesystem::path folder,
                       std::shared_ptr<const RunSealer> sealer = nullptr);
  std::filesystem::path dump_folder() const;
  // Writes the dump on a thread of its own, because the file system may be what hangs. Does nothing
  // while another dump is being written.
  void dump_in_background(std::string why);
  // Waits up to `limit` until no dump is being written. Returns whether that is so.
  bool wait_for_dump(std::chrono::milliseconds limit);
  // Writes JSON lines: first the rank, its phase and groups, then the operations, newest last. The
  // file appears complete or not at all. Returns the error, or "" on success.
  // Encrypts it as set_dump_folder() says.
  std::string dump(const std::filesystem::path& path, const std::string& why) const;

 private:
  // All fields are atomic, because they may be read at any time. `ticket` is kBeingWritten while
  // the other fields change.
  struct alignas(64) Slot {
    std::atomic<FlightTicket> ticket = 0;
    std::atomic<std::int64_t> number = 0;
    std::atomic<std::int64_t> bytes = 0;
    std::atomic<std::int64_t> queued_ns = 0;
    std::atomic<std::int64_t> started_ns = 0;
    std::atomic<std::int64_t> ended_ns = 0;
    std::atomic<std::uint32_t> group = 0;
    std::atomic<std::int32_t> root = 0;
    std::atomic<ReduceOp> op{};
    std::atomic<OperationKind> kind{};
    std::atomic<DType> dtype{};
    std::atomic<SumOrder> order{};
    std::atomic<FlightState> state{};
  };
  static_assert(sizeof(Slot) == 64);
  Slot& slot_of(FlightTicket ticket) { return slots_[ticket % kEntries]; }
  static bool claim(Slot& slot, FlightTicket ticket);
  static void fill(Slot& slot, FlightTicket ticket, const FlightGroup& group,
                   const OperationLabel& label, Clock::time_point now);
  std::string describe(const FlightEntry& entry) const;
  std::string dump_text(const std::string& why) const;
  void report_group(const FlightQuestion& question, FlightReport& report);

  const int rank_;
  const std::string host_;
  const Clock::time_point steady_start_ = Clock::now();
  const std::chrono::system_clock::time_point start_ = std::chrono::system_clock::now();

  std::vector<Slot> slots_{kEntries};
  std::atomic<FlightTicket> last_ticket_ = 0;
  std::atomic<bool> precise_ = false;

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  const char* phase_ = "start";
  Clock::time_point phase_since_ = steady_start_;
  std::map<std::uint32_t, std::unique_ptr<FlightGroup>> groups_;  // by serial
  std::uint32_t next_serial_ = 1;
  std::uint64_t worlds_ = 0;
  std::filesystem::path folder_;
  std::shared_ptr<const RunSealer> sealer_;
  std::thread dumper_;
  bool dumping_ = false;
};

}  // namespace trireme
