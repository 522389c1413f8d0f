// Writes the results of a benchmark as CSV and for Prometheus. Pure functions of the results that
// go into -J FILE (report.h).
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "benchmarks/report.h"

namespace trireme {

// Returns whether a measurement finds this parameter by itself, such as the number of rounds, so
// that it changes from run to run.
bool varies_between_runs(std::string_view param);

// Returns a table (RFC 4180) with a row per result: name, all parameters, all metrics. Columns that
// a result lacks are empty, as are null, NaN and infinity. Lists and objects are JSON.
std::string results_csv(const nlohmann::ordered_json& results);

// Returns the metrics that are numbers as gauges in the format that the textfile collector of
// node_exporter and OpenMetrics parsers read: trireme_bench_RESULT_METRIC{PARAMETER="..."}. Labels
// are those parameters that stay the same from run to run, unlike the number of rounds. Units are
// seconds, bytes and bytes per second. Gauges labelled with the command hold when it measured, the
// fraction of time that ranks waited for cores, and how many results were left out or have failed.
std::string results_openmetrics(const nlohmann::ordered_json& results, const BenchContext& context);

}  // namespace trireme
