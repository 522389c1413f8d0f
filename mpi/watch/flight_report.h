// Question and answer between ranks when a deadline has passed: which operation is waited for, and
// what the asked rank knows of it. Plain values, as JSON on the wire.
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
  // The collective operation that is overdue; -1: a send or recv, which others know nothing of.
  std::int64_t number = -1;
  std::string why;  // for the dump
};

struct FlightReport {
  int rank = 0;  // in the world
  std::string host;
  std::string phase;
  double phase_seconds = 0;
  // Of the group in question:
  bool knows_group = false;
  bool left_group = false;                // its communicator has ended
  std::int64_t entered = -1;              // number of the last collective operation, -1: none
  std::optional<OperationLabel> last;     // what that was, where the ring still has it
  std::int64_t finished = -1;             // number of the last finished
  std::optional<OperationLabel> overdue;  // what the number in question is here, likewise
  // Unfinished operations of any group, oldest first: "recv #3 (1.0 MiB, group pp 0,4), 31s".
  std::vector<std::string> waiting;
};

// One line. Read: DataError for anything else than what the writers make.
std::string to_json(const FlightQuestion& question);
std::string to_json(const FlightReport& report);
FlightQuestion parse_flight_question(std::string_view text);
FlightReport parse_flight_report(std::string_view text);

}  // namespace trireme
