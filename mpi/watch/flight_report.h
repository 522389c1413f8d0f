// A FlightQuestion is what a rank asks the others when a deadline has passed: where they are, and
// what their recorders show about an operation. A FlightReport is the answer. Plain values, sent as
// JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/watch/operation_label.h"

namespace trireme {

struct FlightQuestion {
  int asker = 0;            // rank in the world
  std::uint64_t group = 0;  // FlightGroup::id
  // The number of the overdue collective operation, or -1 for a send or recv, whose numbers have no
  // meaning on other ranks.
  std::int64_t number = -1;
  std::string why;  // reason that the dump states
};

struct FlightReport {
  int rank = 0;  // in the world
  std::string host;
  std::string phase;
  double phase_seconds = 0;
  // The following describe the group in question.
  bool knows_group = false;
  bool left_group = false;    // its communicator was destroyed
  std::int64_t entered = -1;  // number of the last collective operation that was queued, -1 if none
  std::optional<OperationLabel> last;     // its label, if the ring still has it
  std::int64_t finished = -1;             // number of the last that finished
  std::optional<OperationLabel> overdue;  // label of the operation in question here, if in the ring
  // Unfinished operations of any group, oldest first: "recv #3 (1.0 MiB, group pp 0,4, from rank 0)
  // for 31s".
  std::vector<std::string> waiting;
};

// The JSON is one line. The parse functions throw DataError for anything that the writers do not
// make.
std::string to_json(const FlightQuestion& question);
std::string to_json(const FlightReport& report);
FlightQuestion parse_flight_question(std::string_view text);
FlightReport parse_flight_report(std::string_view text);

}  // namespace trireme
