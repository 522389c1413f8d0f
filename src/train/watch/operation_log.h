// OperationLog: the operations of a rank's groups, as its flight recorder knew them, for a trace:
// the recorder forgets all but the last ones, so collect() is called often enough. Owned by the
// trace; used by the main thread. Memory is bounded: what does not fit is counted.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mpi/watch/flight_recorder.h"
#include "src/trace/trace_file.h"

namespace trireme {

class OperationLog {
 public:
  OperationLog(FlightRecorder& recorder, std::size_t most) : recorder_(recorder), most_(most) {}

  ~OperationLog() { stop(); }
  OperationLog(const OperationLog&) = delete;
  OperationLog& operator=(const OperationLog&) = delete;

  // From here on; operations are timed precisely until stop().
  void start();
  void stop() { recorder_.want_precise_times(false); }
  // What has ended since, and what was under way before.
  void collect();
  std::int64_t dropped() const { return dropped_; }
  // In this rank's time; the names are valid as long as the log.
  std::vector<TraceOperation> operations();

 private:
  void keep(const FlightEntry& entry);

  FlightRecorder& recorder_;
  std::size_t most_;
  FlightTicket seen_ = 0;
  std::vector<FlightTicket> under_way_;
  std::vector<FlightEntry> ended_;
  std::int64_t dropped_ = 0;
  std::map<std::uint32_t, std::string> names_;
};

}  // namespace trireme
