// FlightRecorder: what a rank did last, for the day on which the job stands still: a ring of its
// operations, its groups, and the phase it is in. One a rank, owned by the session (or a thread
// world), shared by all its communicators, which end before it. Every function may be called from
// any thread at any time; recording takes some tens of nanoseconds and never waits.
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

namespace trireme {

// Names an operation from queued() on. None: an operation that is not recorded.
using FlightTicket = std::uint64_t;

enum class FlightState : std::uint8_t { queued, started, finished, failed };
std::string_view name_of(FlightState state);

// One operation, copied out of the ring. Times in nanoseconds of the steady clock; 0: not yet.
struct FlightEntry {
  FlightTicket ticket = 0;
  std::uint32_t group = 0;  // FlightGroup::serial
  OperationLabel label;
  FlightState state = FlightState::queued;
  std::int64_t queued_ns = 0;
  std::int64_t started_ns = 0;
  std::int64_t ended_ns = 0;
};

// One of the rank's groups. The numbers are those of collective operations, -1: none.
struct FlightGroup {
  std::uint32_t serial = 0;  // of this rank's groups, in the order in which they were made
  std::uint64_t id = 0;      // the same on all ranks of the group
  std::string name;
  std::vector<int> members;  // world ranks, in the group's order
  std::atomic<std::int64_t> entered = -1;
  std::atomic<FlightTicket> entered_ticket = 0;
  std::atomic<std::int64_t> finished = -1;
  // The operation that another rank waited for beyond its deadline, and that rank.
  std::atomic<std::int64_t> alarm = -1;
  std::atomic<int> alarmed_by = -1;
  std::atomic<bool> ended = false;
};

// "0..7", "0,2,4", "0,2,4,..,62 (32 ranks)".
std::string compact_ranks(const std::vector<int>& ranks);

class FlightRecorder {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kEntries = 4096;

  // The rank's number in the world and its host.
  FlightRecorder(int rank, std::string host);
  // Waits for a dump under way.
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  int rank() const { return rank_; }
  // What the rank does now: "data_load", "train", "checkpoint"; a string literal, or one that
  // outlives the recorder. Returns the phase before.
  const char* enter_phase(const char* phase);

  // A group of this rank, alive until group_ended(). `id` 0: a world, which gets the next number.
  FlightGroup& add_group(std::uint64_t id, std::string name, std::vector<int> members);
  void group_ended(FlightGroup& group);

  // Whether the times of small operations count, too: while somebody traces.
  void want_precise_times(bool want) { precise_.store(want, std::memory_order_relaxed); }
  bool wants_precise_times() const { return precise_.load(std::memory_order_relaxed); }

  // `now` may be some milliseconds old where nobody wants precise times.
  FlightTicket queued(FlightGroup& group, const OperationLabel& label,
                      Clock::time_point now = Clock::now());
  void started(FlightTicket ticket, Clock::time_point now);
  void ended(FlightTicket ticket, FlightGroup& group, const OperationLabel& label, bool failed,
             Clock::time_point now = Clock::now());

  // The operations in the ring, oldest first; those after a ticket.
  std::vector<FlightEntry> entries(FlightTicket after = 0) const;
  // Nothing if it was overwritten, or is being so.
  std::optional<FlightEntry> read(FlightTicket ticket) const;
  // Of the groups that are remembered, by serial.
  std::map<std::uint32_t, std::string> group_names() const;
  // What this rank has to say to a question; marks the operation as overdue.
  FlightReport answer(const FlightQuestion& question);

  // Where dumps go: folder/flight-rank-00003.jsonl. Without one there are none.
  void set_dump_folder(std::filesystem::path folder);
  std::filesystem::path dump_folder() const;
  // Writes the dump on a thread of its own, as the file system may be what hangs. One at a time:
  // nothing while one is under way.
  void dump_in_background(std::string why);
  // Whether no dump is under way, at the latest after `limit`.
  bool wait_for_dump(std::chrono::milliseconds limit);
  // JSON lines: the rank, its phase and groups, then the operations, newest last. Whole or not at
  // all. Returns what went wrong, or nothing.
  std::string dump(const std::filesystem::path& path, const std::string& why) const;

 private:
  // All atomic, for the reader may come at any time: `ticket` is 0 while the others change.
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
  std::thread dumper_;
  bool dumping_ = false;
};

}  // namespace trireme
