#include "src/study/measured_result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/tables.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/study/run_result.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::int64_t kBenchSchema = 2;

struct UnitOfSamples {
  std::string_view end;
  Better better;
};
constexpr std::array kUnits = {
    UnitOfSamples{"_per_s", Better::higher},     UnitOfSamples{"_GBps", Better::higher},
    UnitOfSamples{"work_units", Better::higher}, UnitOfSamples{"_us", Better::lower},
    UnitOfSamples{"_ms", Better::lower},         UnitOfSamples{"_ns", Better::lower},
    UnitOfSamples{"seconds", Better::lower}};

// Returns the value as text. Text stays as it is; anything else becomes JSON.
std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

SampleSet sample_set(const std::string& name, const json& of_name) {
  SampleSet set{name, {}, 0, is_reference(name)};
  for (const json& value : array_field(of_name, "values")) {
    if (!value.is_number() && !value.is_null()) {
      throw DataError(fmt::format("a value of {} is neither a number nor null", name));
    }
    if (value.is_number() && std::isfinite(value.get<double>())) {
      set.values.push_back(checked_sample(name, value.get<double>()));
    } else {
      ++set.missing;
    }
  }
  return set;
}

// Names of hosts change from job to job.
bool names_hosts(const std::string& param) { return param == "hosts"; }

// Adds the figures of all pairs as samples, and that of the slowest pair as one more, so that a
// single bad link is seen among many good ones.
void add_pairs(const json& matrices, ResultRow& row) {
  for (const auto& [name, matrix] : matrices.items()) {
    const Better better = better_of(name);
    if (better == Better::unknown || !matrix.is_array()) {
      continue;
    }
    SampleSet all{name, {}, 0, false};
    for (const json& from : matrix) {
      for (const json& value : from.is_array() ? from : json::array()) {
        if (value.is_number() && std::isfinite(value.get<double>())) {
          all.values.push_back(checked_sample(name, value.get<double>()));
        } else if (!value.is_null()) {
          throw DataError(fmt::format("a value of {} is neither a number nor null", name));
        }
      }
    }
    const auto [least, most] = std::minmax_element(all.values.begin(), all.values.end());
    if (all.values.size() > 1) {
      row.samples.push_back(
          {"slowest_" + name, {better == Better::lower ? *most : *least}, 0, false});
      row.samples.push_back(std::move(all));
    }
  }
}

ResultRow row_of(const json& result) {
  ResultRow row;
  row.name = text_field(result, "name");
  for (const auto& [key, value] : object_field(result, "params").items()) {
    if (!varies_between_runs(key) && !(names_hosts(key) && value.is_array())) {
      row.params[key] = text_of(value);
    }
  }
  if (result.contains("samples")) {
    for (const auto& [name, of_name] : object_field(result, "samples").items()) {
      row.samples.push_back(sample_set(name, of_name));
    }
  }
  if (result.contains("matrices")) {
    add_pairs(object_field(result, "matrices"), row);
  }
  if (const auto metrics = result.find("metrics"); metrics != result.end()) {
    for (const auto& [name, value] : metrics->items()) {
      if (value.is_number() && std::isfinite(value.get<double>())) {
        row.metrics[name] = value.get<double>();
      }
    }
  }
  return row;
}

// The other benchmarks compute on the CPU, also on a host with GPUs.
bool may_use_gpus(const std::string& command) { return command == "train"; }

// Another GPU of the same kind is no reason not to compare.
void add_gpus(const json& gpus, MeasuredResult& result) {
  if (!gpus.is_array()) {
    throw DataError("field 'gpus' is not an array");
  }
  std::string names;
  std::string uuids;
  for (const json& gpu : gpus) {
    names += (names.empty() ? "" : ", ") + text_field(gpu, "name");
    uuids += (uuids.empty() ? "" : ", ") + text_field(gpu, "uuid");
  }
  if (may_use_gpus(result.command)) {
    result.gpus = names;
  } else if (!names.empty()) {
    result.circumstances["host.gpus"] = names;
  }
  if (!names.empty()) {
    result.circumstances["host.gpus' uuids"] = uuids;
  }
}

void add_machine(const json& document, MeasuredResult& result) {
  for (const auto& [key, value] : object_field(document, "host").items()) {
    if (key == "gpus") {
      add_gpus(value, result);
      continue;
    }
    const bool may_differ = key == "name" || key == "node" || key == "kernel" ||
                            key == "memory_bytes" || key == "gpu_driver" || key == "gpu_error";
    (may_differ ? result.circumstances : result.conditions)["host." + key] = text_of(value);
  }
  // Hosts with memory of the same size differ in the bytes that their systems see, so it is
  // rounded.
  const json& memory = field(object_field(document, "host"), "memory_bytes");
  if (memory.is_number()) {
    const double gibibytes = memory.get<double>() / double(1 << 30);
    result.conditions["host.memory_gib"] = fmt::format("{:.2g}", gibibytes);
  }
  std::map<std::string, int> ranks_of_node;
  std::string cpus;
  const json& ranks = array_field(document, "ranks");
  for (const json& rank : ranks) {
    ++ranks_of_node[text_field(rank, rank.contains("node") ? "node" : "host")];
    cpus += (cpus.empty() ? "" : " ") + text_field(rank, "cpus");
  }
  result.conditions["ranks"] = std::to_string(ranks.size());
  result.conditions["hosts of ranks"] = std::to_string(ranks_of_node.size());
  result.conditions["processors of ranks"] = cpus;
}

void add_surroundings(const json& document, MeasuredResult& result) {
  for (const auto& [key, value] : object_field(document, "environment").items()) {
    result.conditions["environment." + key] = text_of(value);
  }
  const json& clock = object_field(document, "clock");
  result.conditions["clock"] =
      text_of(field(clock, "name")) + " " + text_of(field(clock, "source"));
  const json& program = object_field(document, "program");
  result.circumstances["program.version"] = text_field(program, "version");
  result.circumstances["program.commit"] = text_field(program, "commit");
  result.circumstances["program.mpi"] = text_of(field(program, "mpi"));
  for (const auto& [key, value] : object_field(program, "built_with").items()) {
    result.circumstances["program.built_with." + key] = text_of(value);
  }
}

double number_of(const json& document, const char* name) {
  const json& value = field(document, name);
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    throw DataError(fmt::format("field '{}' is not a number", name));
  }
  return value.get<double>();
}

MeasuredResult result_of(const json& document, const std::string& origin) {
  if (!document.is_object() || !document.contains("schema") || !document.contains("results")) {
    throw DataError("this is not a document of trireme bench -J FILE");
  }
  const json& schema = field(document, "schema");
  if (!schema.is_number_integer()) {
    throw DataError(fmt::format("field 'schema' is {}, not a whole number",
                                schema.dump(-1, ' ', false, json::error_handler_t::replace)));
  }
  if (schema != kBenchSchema) {
    throw DataError(fmt::format(
        "it has version {} of the format, but this program reads version {}: measure again, or use "
        "the program that wrote it",
        text_of(schema), kBenchSchema));
  }
  MeasuredResult result;
  result.origin = origin;
  result.command = text_field(document, "command");
  result.time = number_of(document, "time");
  result.waited_fraction = field(document, "waited_fraction").is_null()
                               ? std::numeric_limits<double>::quiet_NaN()
                               : number_of(document, "waited_fraction");
  add_machine(document, result);
  add_surroundings(document, result);
  for (const json& each : array_field(document, "results")) {
    result.rows.push_back(row_of(each));
  }
  if (document.contains("failed")) {
    for (const json& each : array_field(document, "failed")) {
      result.failed.push_back(
          fmt::format("{}: {}", text_field(each, "question"), text_field(each, "reason")));
    }
  }
  return result;
}

}  // namespace

double checked_sample(const std::string& name, double value) {
  if (std::abs(value) > kLargestSample) {
    throw DataError(fmt::format("{} is {:g}: no measurement is that large", name, value));
  }
  return value;
}

Better better_of(std::string_view samples_name) {
  for (const UnitOfSamples& unit : kUnits) {
    if (samples_name.ends_with(unit.end)) {
      return unit.better;
    }
  }
  return Better::unknown;
}

bool is_reference(std::string_view samples_name) {
  return samples_name.starts_with("ceiling_") || samples_name.starts_with("peer_") ||
         samples_name.starts_with("pread_");
}

std::string ResultRow::key() const {
  std::string key = name;
  for (const auto& [param, value] : params) {
    key += fmt::format("\n{}={}", param, value);
  }
  return key;
}

void forget_lone_hosts(MeasuredResult& a, MeasuredResult& b) {
  const auto hosts_in = [](const MeasuredResult& result) {
    std::set<std::string> hosts;
    for (const ResultRow& row : result.rows) {
      if (const auto host = row.params.find("host"); host != row.params.end()) {
        hosts.insert(host->second);
      }
    }
    return hosts.size();
  };
  if (hosts_in(a) != 1 || hosts_in(b) != 1) {
    return;
  }
  for (MeasuredResult* const result : {&a, &b}) {
    for (ResultRow& row : result->rows) {
      row.params.erase("host");
    }
  }
}

MeasuredResult parse_bench_result(std::string_view text, const std::string& origin) {
  try {
    return result_of(parse_json(text), origin);
  } catch (const DataError& error) {
    throw data_error_in(origin, error);
  }
}

MeasuredResult read_measured_result(const std::filesystem::path& path, const TextReader& reader) {
  if (std::filesystem::is_directory(path)) {
    return read_run_result(path, reader);
  }
  return parse_bench_result(read_file(path, kMostResultBytes), path.string());
}

}  // namespace trireme
