#include "src/app/plan/layouts_report.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/app/plan/plan_pictures.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGib = 0x1p30;

std::string duration(double days) {
  return days >= 1 ? fmt::format("{:.1f} days", days) : format_seconds(days * 86400);
}

// Returns a time of a step or of a part of it, with three or more digits that count.
std::string step_text(double seconds) {
  return seconds >= 0.1    ? fmt::format("{:.3f} s", seconds)
         : seconds >= 1e-4 ? fmt::format("{:.3f} ms", seconds * 1e3)
                           : fmt::format("{:.3f} us", seconds * 1e6);
}

// Returns an amount in its unit, or in the thousandfold one from 1000 on.
std::string in_thousands(double amount, const char* unit, const char* thousand) {
  return amount < 1000 ? fmt::format("{:.4g} {}", amount, unit)
                       : fmt::format("{:.4g} {}", amount / 1000, thousand);
}

// Returns the tokens of a step.
double tokens(const PlanView& view) {
  return static_cast<double>(view.task.global_batch * view.task.model.sequence);
}

// Returns the model's FLOP/s per device divided by the peak (MFU). The model's FLOPs are 6 per
// parameter and token, and causal attention counts as half.
double utilization(const PlanView& view, const PlanCandidate& c) {
  const PlanModel& m = view.task.model;
  const double attention =
      6.0 * static_cast<double>(m.layers * m.heads * m.head_dim) * static_cast<double>(m.sequence);
  const double parameters = m.parameters() - (m.tied ? 0 : m.embedding_parameters());
  return tokens(view) * (6 * parameters + attention) / c.time.total() /
         static_cast<double>(c.layout.ranks()) / peak_flops(view.cluster, view.task.precision);
}

void print_table(const PlanView& view) {
  fmt::print("{:>3} {:>10} {:>9} {:>5} {:>10} {:>8} {:>6} {}\n", "", "step", "whole run", "MFU",
             "memory", "goodput", "nodes", "layout");
  int number = 0;
  bool by_formulas = false;
  const auto row = [&](const PlanCandidate& c) {
    fmt::print("{:>3} {:>10} {:>9} {:>4.1f}% {:>6} GiB {:>7.1f}% {:>6} {}{}\n", number,
               step_text(c.time.total()), duration(c.outlook.days), 100 * utilization(view, c),
               fmt::format("{}{:.1f}", c.is_counted ? "" : "~", c.memory.total() / kGib),
               100 * c.outlook.goodput, c.nodes, layout_text(c.layout), c.on_front ? " *" : "");
  };
  for (const PlanCandidate& candidate : view.result.candidates) {
    ++number;
    if (number <= view.top || candidate.on_front) {
      row(candidate);
      by_formulas = by_formulas || !candidate.is_counted;
    }
  }
  fmt::print(
      "* no other layout is better in time, nodes and energy at once; times, and what follows from "
      "them: +- {:g} %\n",
      view.cluster.residual_percent);
  if (by_formulas) {
    fmt::print("~ by formulas; what the engine would count may differ by a quarter\n");
  }
}

void print_breakdown(const PlanView& view, const PlanCandidate& c) {
  const double total = c.time.total();
  fmt::print("\nbest: {}\nstep {} +- {:g} % ({:.4g} tokens/s), of which\n", layout_text(c.layout),
             step_text(total), view.cluster.residual_percent, tokens(view) / total);
  const auto terms = c.time.terms();
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i] > 0) {
      fmt::print("  {:<11} {:>11} {:>5.1f} %\n", StepTime::names()[i], step_text(terms[i]),
                 100 * terms[i] / total);
    }
  }
}

void print_memory(const PlanCandidate& c) {
  const PlannedMemory& m = c.memory;
  fmt::print(
      "memory of a rank {:.1f} GiB, {}: parameters {:.1f}, gradients {:.1f}, optimizer {:.1f}, "
      "activations {:.1f}, communication {:.1f}, snapshot {:.1f}, reserved {:.1f}\n",
      m.total() / kGib, c.is_counted ? "counted by the engine" : "by formulas (+- 25 %)",
      m.parameters / kGib, m.gradients / kGib, m.optimizer / kGib, m.activations / kGib,
      m.communication / kGib, m.snapshot / kGib, m.reserved / kGib);
}

void print_outlook(const PlanView& view, const PlanCandidate& c) {
  const Outlook& o = c.outlook;
  if (o.mtbf_seconds > 0) {
    fmt::print(
        "a failure every {}; save every {} (Young and Daly), a save takes {} and stops "
        "training for {}; restart {}; goodput {:.1f} %\n",
        format_seconds(o.mtbf_seconds), format_seconds(o.interval_seconds),
        format_seconds(o.save_seconds), format_seconds(o.stall_seconds),
        format_seconds(o.restart_seconds), 100 * o.goodput);
  }
  fmt::print("whole run of {:.0f} steps: {}, {}", view.task.steps, duration(o.days),
             in_thousands(o.kilowatt_hours, "kWh", "MWh"));
  if (o.price > 0) {
    fmt::print(", {:.4g} {}", o.price, printable(view.cluster.energy.currency));
  }
  if (o.co2_kilograms > 0) {
    fmt::print(", {} of CO2", in_thousands(o.co2_kilograms, "kg", "t"));
  }
  fmt::print(", each +- {:g} %\n", view.cluster.residual_percent);
}

Json to_json(const PlanView& view, const PlanCandidate& c) {
  Json terms = Json::object();
  const auto values = c.time.terms();
  for (std::size_t i = 0; i < values.size(); ++i) {
    terms[StepTime::names()[i]] = values[i];
  }
  const PlannedMemory& m = c.memory;
  const Outlook& o = c.outlook;
  Json json = {{"layout", layout_text(c.layout)},
               {"dp", c.layout.dp},
               {"tp", c.layout.tp},
               {"pp", c.layout.pp},
               {"virtual_stages", c.layout.virtual_stages},
               {"schedule", name_of(c.layout.schedule)},
               {"micro_batch", c.layout.micro_batch},
               {"micro_batches", c.layout.micro_batches},
               {"zero", c.layout.zero},
               {"recompute", name_of(c.layout.recompute)},
               {"sequence_parallel", c.layout.sequence_parallel},
               {"nodes", c.nodes},
               {"on_front", c.on_front},
               {"terms", terms},
               {"tokens_per_second", tokens(view) / c.time.total()},
               {"mfu", utilization(view, c)},
               {"memory_bytes", m.total()},
               {"memory_from", c.is_counted ? "engine" : "formulas"},
               {"memory",
                {{"parameters", m.parameters},
                 {"gradients", m.gradients},
                 {"optimizer", m.optimizer},
                 {"activations", m.activations},
                 {"communication", m.communication},
                 {"snapshot", m.snapshot},
                 {"reserved", m.reserved}}},
               {"mtbf_seconds", o.mtbf_seconds},
               {"save_interval_seconds", o.interval_seconds},
               {"save_seconds", o.save_seconds},
               {"stall_seconds", o.stall_seconds},
               {"restart_seconds", o.restart_seconds},
               {"goodput", o.goodput}};
  const double residual = view.cluster.residual_percent / 100;
  const Cluster& cluster = view.cluster;
  const bool has_price = cluster.node.price_per_hour > 0 || cluster.energy.price_per_kwh > 0;
  const bool has_carbon = cluster.energy.co2_grams_per_kwh > 0;
  // These grow with the time of a step, so the interval of its prediction is theirs, too. Unknown
  // ones are null.
  for (const auto& [name, value, is_known] :
       {std::tuple("step_seconds", c.time.total(), true), std::tuple("days", o.days, true),
        std::tuple("kilowatt_hours", o.kilowatt_hours, true),
        std::tuple("price", o.price, has_price),
        std::tuple("co2_kilograms", o.co2_kilograms, has_carbon)}) {
    const auto scaled = [&value = value, &is_known = is_known](double factor) {
      return is_known ? Json(value * factor) : Json();
    };
    json[name] = scaled(1);
    json[std::string(name) + "_low"] = scaled(std::max(0.0, 1 - residual));
    json[std::string(name) + "_high"] = scaled(1 + residual);
  }
  return json;
}

}  // namespace

void print_plan(const PlanView& view) {
  const auto& candidates = view.result.candidates;
  fmt::print("{}: {} layouts, {} fit\n", printable(view.cluster.name), view.result.tried,
             candidates.size());
  if (candidates.empty()) {
    return;
  }
  print_table(view);
  const PlanCandidate& best = candidates.front();
  print_breakdown(view, best);
  print_memory(best);
  print_outlook(view, best);
  for (const std::string& warning : plan_warnings(view.task, view.cluster, best.layout)) {
    fmt::print("warning: {}\n", warning);
  }
}

void print_explanation(const PlanView& view, const PlanCandidate& candidate) {
  const PlanWork work = work_of(view.task, view.cluster);
  const CheckpointStall stall{candidate.outlook.stall_seconds,
                              candidate.outlook.interval_seconds > 0
                                  ? candidate.outlook.interval_seconds / candidate.time.total()
                                  : 0};
  fmt::print("\n{}\n", layout_text(candidate.layout));
  for (const std::string& line : explain_step(work, candidate.layout, stall)) {
    fmt::print("{}\n", line);
  }
  const Cluster::Device& device = view.cluster.device;
  const Outlook& o = candidate.outlook;
  fmt::print(
      "power of a device = {}\n",
      device.idle_watts > 0
          ? fmt::format("{:g} W + {:.3f} of the time computing x ({:g} - {:g} W) = {:.4g} W",
                        device.idle_watts, o.busy, device.watts, device.idle_watts, o.device_watts)
          : fmt::format("{:g} W all the time, since device.idle_watts is unknown", o.device_watts));
}

void print_why_not(const PlanView& view, const PlanLayout& layout, const MemoryCount& count) {
  const std::string fault = layout_fault(view.task, layout);
  fmt::print("\nwhy not {}: ", layout_text(layout));
  if (!fault.empty()) {
    fmt::print("it is impossible: {}\n", fault);
    return;
  }
  PlanCandidate other = candidate_of(view.task, view.cluster, layout, BubbleMethod::simulated);
  if (other.nodes > view.cluster.nodes) {
    fmt::print("it needs {} nodes, and the cluster has {}\n", other.nodes, view.cluster.nodes);
    return;
  }
  if (const auto counted = count(layout)) {
    other.memory = *counted;
    other.is_counted = true;
  }
  if (!other.fits(view.cluster)) {
    fmt::print("a rank needs {:.1f} GiB, and a device has {:.1f}\n", other.memory.total() / kGib,
               static_cast<double>(view.cluster.device.memory) / kGib);
    print_memory(other);
    return;
  }
  if (view.result.candidates.empty()) {
    fmt::print("it fits\n");
    return;
  }
  const PlanCandidate& best = view.result.candidates.front();
  if (layout == best.layout) {
    fmt::print("it is the best\n");
    return;
  }
  if (other.nodes != best.nodes) {
    fmt::print("it needs {}, the best layout {}; ", counted(other.nodes, "node"),
               counted(best.nodes, "node"));
  }
  fmt::print("a step takes {}, that of the best layout {}\n", step_text(other.time.total()),
             step_text(best.time.total()));
  const auto a = best.time.terms();
  const auto b = other.time.terms();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) {
      fmt::print("  {:<11} {:>11} instead of {:>11}\n", StepTime::names()[i], step_text(b[i]),
                 step_text(a[i]));
    }
  }
}

Json plan_json(const PlanView& view) {
  Json candidates = Json::array();
  int number = 0;
  std::set<std::int64_t> seen;  // numbers of nodes
  for (const PlanCandidate& candidate : view.result.candidates) {
    const bool is_fastest = seen.insert(candidate.nodes).second;
    if (++number <= view.top || candidate.on_front || is_fastest) {
      candidates.push_back(to_json(view, candidate));
    }
  }
  Json warnings = Json::array();
  Json timeline;
  Json goodput;
  if (!view.result.candidates.empty()) {
    const PlanCandidate& best = view.result.candidates.front();
    for (const std::string& warning : plan_warnings(view.task, view.cluster, best.layout)) {
      warnings.push_back(warning);
    }
    timeline = timeline_json(view, best);
    goodput = goodput_json(view, best);
  }
  return {{"schema", 2},
          {"cluster", view.cluster.name},
          {"residual_percent", view.cluster.residual_percent},
          {"currency", view.cluster.energy.currency},
          {"tried", view.result.tried},
          {"fit", view.result.candidates.size()},
          {"warnings", warnings},
          {"advice", view.advice},
          {"layouts", candidates},
          {"timeline", timeline},
          {"goodput", goodput}};
}

}  // namespace trireme
