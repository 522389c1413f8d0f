#include "src/lineage/energy_fact.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/units.h"

namespace trireme {
namespace {

using nlohmann::json;

// Returns the object, or null if the statement has none.
const json* energy_of(const Provenance& provenance) {
  const json& details = *provenance.details;
  const auto at = details.find("energy");
  return at != details.end() && at->is_object() ? &*at : nullptr;
}

std::optional<double> joules_of(const json& energy, const char* name) {
  const auto at = energy.find(name);
  if (at == energy.end() || !at->is_number()) {
    return std::nullopt;
  }
  const auto joules = at->get<double>();
  return std::isfinite(joules) && joules >= 0 ? std::optional(joules) : std::nullopt;
}

std::string joules_text(const std::optional<double>& joules) {
  return joules ? fmt::format("{:.10g} J", *joules) : std::string("not known");
}

std::string text_of(const json& energy, const char* name) {
  const auto at = energy.find(name);
  return at != energy.end() && at->is_string() ? at->get<std::string>() : "";
}

// Returns the joules of processors and GPUs, if both are known.
std::optional<double> sum_of(const json& energy) {
  const std::optional<double> cpu = joules_of(energy, "cpu_joules");
  const std::optional<double> gpu =
      energy.contains("gpu_joules") ? joules_of(energy, "gpu_joules") : std::optional(0.0);
  return cpu && gpu ? std::optional(*cpu + *gpu) : std::nullopt;
}

}  // namespace

std::string energy_fact(const Provenance& provenance) {
  const json* const energy = energy_of(provenance);
  if (energy == nullptr) {
    return "";
  }
  std::string text = "processors " + joules_text(joules_of(*energy, "cpu_joules"));
  if (energy->contains("gpu_joules")) {
    text += ", GPUs " + joules_text(joules_of(*energy, "gpu_joules"));
  }
  if (const std::string since = text_of(*energy, "since"); !since.empty()) {
    text += " since " + since;
  }
  const std::string why = text_of(*energy, "unknown");
  return why.empty() ? text : text + ": " + why;
}

std::string energy_with_ancestors(const std::vector<SignedStatement>& statements) {
  if (statements.size() < 2 || energy_of(statements.front().provenance) == nullptr) {
    return "";
  }
  // The last line names a parent if that was not signed, or if its line is no longer repeated.
  bool is_known = statements.back().provenance.find("parent") == nullptr;
  double sum = 0;
  for (const SignedStatement& each : statements) {
    const json* const energy = energy_of(each.provenance);
    const std::optional<double> joules = energy == nullptr ? std::nullopt : sum_of(*energy);
    is_known = is_known && joules && each.signature.state == SignatureState::trusted;
    sum += joules.value_or(0);
  }
  return fmt::format("with that of {}: {}",
                     counted(static_cast<std::int64_t>(statements.size()) - 1, "ancestor"),
                     joules_text(is_known ? std::optional(sum) : std::nullopt));
}

}  // namespace trireme
