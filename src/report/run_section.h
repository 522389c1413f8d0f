// Describes a run in a section of a report. Pure functions.
#pragma once

#include <string>

#include "src/report/document.h"
#include "src/report/run_folder.h"

namespace trireme {

// state: how the run stands, as "finished" or "stopped".
DocSection run_section(const RunFolder& run, const std::string& state);
// Adds its folder to the name of each run whose name another run has, too.
void tell_apart(std::vector<RunFolder>& runs);
// Compares several runs in a table and a figure of their losses.
DocSection comparison_section(const std::vector<RunFolder>& runs);

// The parts of a run's section:
DocSection training_part(const RunFolder& run);
DocSection speed_part(const RunFolder& run);
// Precondition: run.forecast.
DocSection forecast_part(const RunFolder& run);
DocSection ranks_part(const RunFolder& run);
DocSection goodput_part(const RunFolder& run);
DocSection energy_part(const RunFolder& run);
DocSection provenance_part(const RunFolder& run);

// Returns the share of the time from the first step to the last logged one that went into steps
// that count, as metrics.jsonl tells it; NaN if it does not.
double useful_share(const RunColumns& metrics);
// Returns "2026-11-24 16:05:00 UTC", or "-" for no time.
std::string time_text(double seconds_since_epoch);

}  // namespace trireme
