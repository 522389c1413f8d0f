// Reads metrics.jsonl of a run into columns. Files may be damaged or still be written: lines that
// are not whole steps are left out, and counted unless they are just being written. Pure functions
// of the text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/damaged_lines.h"

namespace trireme {

struct RunColumns {
  std::vector<double> step;  // ascending
  // The numbers of each field, as many as there are steps; NaN where a line has none. Fields that
  // no line has are absent. Those of the sources of a mixture are called "sources/NAME/loss" and
  // "sources/NAME/tokens", those of several validation sets "val_losses/NAME".
  std::map<std::string, std::vector<double>, std::less<>> fields;
  std::string device;             // as the last line says; may be empty
  DamagedLines damaged;           // neither whole nor a step
  std::int64_t out_of_order = 0;  // lines left out so that the steps of most others ascend
  std::int64_t impossible = 0;    // numbers left out because nothing can have measured them

  bool empty() const { return step.empty(); }
  // Returns the numbers of a field; all NaN if no line has it.
  const std::vector<double>& of(std::string_view field) const;
  bool has(std::string_view field) const;  // whether any line has a finite number
  // Returns the place of the last finite number of a field; nothing if no line has one.
  std::optional<std::size_t> place_of_last(std::string_view field) const;
  double last(std::string_view field) const;  // that number, or NaN
  // Returns the NAMEs of fields that begin with "sources/" or "val_losses/".
  std::vector<std::string> names_in(std::string_view group) const;
  // Returns for each line the number of steps since the line before it.
  std::vector<double> step_counts() const;
  // Returns for each line the seconds that these steps took; NaN where it does not say.
  std::vector<double> step_seconds() const;

 private:
  friend RunColumns parse_columns(std::string_view text);
  void keep_ascending();
  std::vector<double> none_;
};

// Returns whether bytes, seconds, joules or other amounts can have been measured: not negative, and
// not beyond what any machine has.
bool is_measured(double value);

// At most kMostLines lines are read; the others count as damaged.
RunColumns parse_columns(std::string_view text);

}  // namespace trireme
