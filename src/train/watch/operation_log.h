// OperationLog copies the operations of a rank's groups from its flight recorder, for a trace. The
// recorder keeps only the latest operations, so collect() must be called often. It is owned by
// StepTrace and used by the main thread. Memory is bounded: operations that do not fit are only
// counted.
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

  // Starts with the next operation. Until stop(), the recorder also times small operations
  // precisely.
  void start();
  void stop() { recorder_.want_precise_times(false); }
  // Copies the operations that have ended since the last call, including those that were then under
  // way.
  void collect();
  std::int64_t dropped() const { return dropped_; }
  // Returns the operations in this rank's time. Their names are valid until the next call or the
  // log's end.
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
