#include "mpi/session/tuning.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostRanks = 1 << 24;
constexpr std::size_t kMostEntries = 10'000;

TuningEntry parse_entry(const nlohmann::json& object) {
  TuningEntry entry;
  entry.op = text_field(object, "op");
  const auto& known = tuned_operations();
  if (std::find(known.begin(), known.end(), entry.op) == known.end()) {
    throw DataError(fmt::format("'{}' is not an operation that can be tuned", entry.op));
  }
  entry.max_bytes = count_field(object, "max_bytes");
  try {
    entry.backend = parse_backend(text_field(object, "backend"));
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
  if (entry.backend == Backend::automatic) {
    throw DataError("the backend of an entry must be the one that was measured, not 'auto'");
  }
  return entry;
}

void check_order(const std::vector<TuningEntry>& entries) {
  std::map<std::string_view, std::int64_t> last;
  for (const TuningEntry& entry : entries) {
    const auto [at, fresh] = last.try_emplace(entry.op, entry.max_bytes);
    if (!fresh && entry.max_bytes <= at->second) {
      throw DataError(fmt::format("the entries of {} are not sorted by size at max_bytes {}",
                                  entry.op, entry.max_bytes));
    }
    at->second = entry.max_bytes;
  }
}

}  // namespace

const std::vector<std::string>& tuned_operations() {
  static const std::vector<std::string> kOperations = {"all_reduce", "reduce_scatter", "all_gather",
                                                       "broadcast", "all_to_all"};
  return kOperations;
}

std::optional<Backend> Tuning::choose(std::string_view op, std::int64_t bytes) const {
  for (const TuningEntry& entry : entries) {
    if (entry.op == op && bytes <= entry.max_bytes) {
      return entry.backend;
    }
  }
  return std::nullopt;
}

std::string to_text(const Tuning& tuning) {
  auto entries = nlohmann::ordered_json::array();
  for (const TuningEntry& entry : tuning.entries) {
    entries.push_back(
        {{"op", entry.op}, {"max_bytes", entry.max_bytes}, {"backend", name_of(entry.backend)}});
  }
  const nlohmann::ordered_json object = {{"schema", 1},
                                         {"ranks", tuning.ranks},
                                         {"hosts", tuning.hosts},
                                         {"ranks_per_host", tuning.ranks_per_host},
                                         {"entries", std::move(entries)}};
  return object.dump(1) + "\n";
}

Tuning parse_tuning(std::string_view text) {
  const nlohmann::json object = parse_json(text);
  if (count_field(object, "schema") != 1) {
    throw DataError(
        "field 'schema' is not 1: measure again with `trireme bench coll --write-tuning`");
  }
  Tuning tuning;
  tuning.ranks = static_cast<int>(count_field(object, "ranks", 1, kMostRanks));
  tuning.hosts = static_cast<int>(count_field(object, "hosts", 1, tuning.ranks));
  tuning.ranks_per_host = static_cast<int>(count_field(object, "ranks_per_host", 1, tuning.ranks));
  const nlohmann::json& entries = array_field(object, "entries");
  if (entries.size() > kMostEntries) {
    throw DataError(fmt::format("field 'entries' holds {} entries; at most {} are allowed",
                                entries.size(), kMostEntries));
  }
  for (const nlohmann::json& entry : entries) {
    tuning.entries.push_back(parse_entry(entry));
  }
  check_order(tuning.entries);
  return tuning;
}

}  // namespace trireme
