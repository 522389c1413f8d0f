// TableTime keeps the rows of a table, such as sizes of messages, within the seconds of --duration.
// The time that is left is divided among the rows that are left. A row for which too little is left
// is left out and named. Without a limit, nothing is left out. Owned by a benchmark; all ranks make
// the same calls and get the same answers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mpi/communicator.h"

namespace trireme {

// Returns the seconds since some moment, the same on all ranks that call it together.
using AgreedClock = std::function<double()>;
// Returns a clock that begins now. Collective, as is each call of the clock. comm outlives it.
AgreedClock agreed_clock(Communicator& comm);

class TableTime {
 public:
  // seconds: for all rows together; 0 for no limit.
  TableTime(double seconds, std::int64_t rows, AgreedClock clock);

  // Begins the next row and returns true, or leaves it out and returns false if the least that it
  // has to do would probably last longer than the time that is left. This follows from the row
  // before, in proportion to `work`, a number of any unit. The first row is never left out.
  bool begins(const std::string& name, double work);
  // Returns the seconds that the row may take from now on, above 0; 0 without a limit.
  double left() const;
  // Ends the row. spare: how many seconds of its time went into more samples than it needs.
  void ends(double spare);

  // Names of the rows that were left out, in their order.
  const std::vector<std::string>& left_out() const { return left_out_; }
  // Returns a comment below the table that names them, or "".
  std::string text() const;

 private:
  double seconds_;
  std::int64_t rows_;  // that have not begun
  AgreedClock clock_;
  double start_ = 0;
  double begun_ = 0;  // when the current row began
  double share_ = 0;  // of the current row
  double work_ = 0;   // of the current row, or of the last one
  double least_ = 0;  // seconds that the last row needed at least; 0 before it
  std::vector<std::string> left_out_;
};

// Returns the seconds for the next table of a benchmark: what is left of `duration` after `elapsed`
// seconds, divided among the tables that are left, so that a table which takes longer leaves less
// to the others. Above 0; 0 without a limit.
double table_seconds(double duration, double elapsed, std::int64_t tables);

// Returns the seconds that were spent on samples beyond the least number that a rule with a
// duration takes. Each sample lasted `factor` times its value.
double spare_seconds(const std::vector<double>& samples, double factor);

}  // namespace trireme
