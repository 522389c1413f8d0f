#include "src/app/plan/plan_page.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/figures/bar_plot.h"
#include "src/figures/line_plot.h"
#include "src/plan/simulate/goodput_report.h"
#include "src/plan/step_parts.h"
#include "src/report/line_figure.h"
#include "src/report/stacked_figure.h"

namespace trireme {
namespace {

constexpr std::size_t kMostBars = 10;
constexpr double kGibibyte = 0x1p30;
constexpr double kSecondsOfDay = 86400;

std::vector<const PlanCandidate*> shown(const PlanView& view) {
  std::vector<const PlanCandidate*> first;
  for (const PlanCandidate& candidate : view.result.candidates) {
    if (first.size() < std::min(kMostBars, static_cast<std::size_t>(view.top))) {
      first.push_back(&candidate);
    }
  }
  return first;
}

// Groups terms so that a stacked bar has no more colours than a reader tells apart.
DocFigure time_figure(const PlanView& view) {
  StackedBars bars{"Time of a step, by layout",
                   "ms",
                   "layout",
                   {},
                   {"products", "head", "attention", "kernels", "recompute", "tensor", "pipeline",
                    "replicas", "optimizer", "other"},
                   {}};
  for (const PlanCandidate* c : shown(view)) {
    const StepTime& t = c->time;
    std::vector<double> ms = {
        t.products,  t.head,      t.attention,           t.kernels + t.accumulate,
        t.recompute, t.tensor,    t.transfer + t.bubble, t.gradients + t.parameters,
        t.optimizer, t.checkpoint};
    for (double& each : ms) {
      each *= 1e3;
    }
    bars.labels.push_back(layout_text(c->layout));
    bars.values.push_back(std::move(ms));
  }
  return stacked_figure(bars);
}

DocFigure memory_figure(const PlanView& view) {
  StackedBars bars{
      "Memory of the rank that needs most, by layout",
      "GiB",
      "layout",
      {},
      {"parameters", "gradients", "optimizer", "activations", "communication", "snapshot", "other"},
      {}};
  for (const PlanCandidate* c : shown(view)) {
    const PlannedMemory& m = c->memory;
    std::vector<double> gib = {m.parameters,    m.gradients, m.optimizer, m.activations,
                               m.communication, m.snapshot,  m.reserved};
    for (double& each : gib) {
      each /= kGibibyte;
    }
    bars.labels.push_back(layout_text(c->layout));
    bars.values.push_back(std::move(gib));
  }
  return stacked_figure(bars);
}

// The fastest layout on each number of nodes; those that another one beats in time, nodes and
// energy at once are not on the front.
DocFigure front_figure(const PlanView& view) {
  std::map<std::int64_t, const PlanCandidate*> fastest;
  for (const PlanCandidate& candidate : view.result.candidates) {
    fastest.emplace(candidate.nodes, &candidate);
  }
  LinePlot plot{"", "nodes", "days", {{"fastest layout", {}, {}}, {"on the front", {}, {}}}};
  plot.log_x = plot.log_y = true;
  DocFigure figure;
  figure.heading = "Time, nodes and energy of the whole run";
  figure.table = {"The fastest layout on each number of nodes",
                  {"nodes", "days", "MWh", "on the front", "layout"},
                  {}};
  for (const auto& [nodes, c] : fastest) {
    const double days = c->outlook.days;
    for (const std::size_t series : {std::size_t{0}, std::size_t{1}}) {
      if (series == 0 || c->on_front) {
        plot.series[series].x.push_back(static_cast<double>(nodes));
        plot.series[series].y.push_back(days);
      }
    }
    figure.table.rows.push_back({fmt::format("{}", nodes), number_text(days),
                                 number_text(c->outlook.kilowatt_hours / 1000),
                                 c->on_front ? "yes" : "no", layout_text(c->layout)});
  }
  figure.summary = "Days of the whole run over the number of nodes, with failures.";
  figure.svg = to_svg(plot);
  return figure;
}

std::size_t category_of(PipelineStep::Kind kind) {
  return kind == PipelineStep::Kind::forward           ? 0
         : kind == PipelineStep::Kind::backward_weight ? 2
                                                       : 1;
}

// When each stage computes what, and what follows the last backward.
DocFigure timeline_figure(const PlanView& view, const PlanCandidate& c) {
  const PlanWork work{view.task.model, view.cluster, view.task.software, view.task.precision};
  const StepParts parts = step_parts(work, c.layout, BubbleMethod::simulated, {});
  const PipelineSimulation run =
      pipeline_timeline(c.layout, parts.pass, view.task.software.balances_stages);
  BarPlot plot{"ms", {"forward", "backward", "weight gradients", "replicas", "optimizer"}, {}};
  const double replicas = 1e3 * (c.time.gradients + c.time.parameters);
  const double optimizer = 1e3 * c.time.optimizer;
  DocFigure figure;
  figure.heading = "Timeline of a step of the best layout";
  figure.table = {"Busy and idle time of each stage, in ms", {"stage", "busy", "idle"}, {}};
  for (std::size_t stage = 0; stage < run.stages.size(); ++stage) {
    BarRow row{fmt::format("stage {}", stage), {}};
    for (const TimedStep& step : run.stages[stage]) {
      row.pieces.push_back(
          {1e3 * step.start, 1e3 * step.end, category_of(step.step.kind), describe(step.step)});
    }
    const double end = 1e3 * run.seconds;
    row.pieces.push_back({end, end + replicas, 3, "replicas"});
    row.pieces.push_back({end + replicas, end + replicas + optimizer, 4, "optimizer"});
    std::erase_if(row.pieces, [](const BarPiece& piece) { return piece.to <= piece.from; });
    figure.table.rows.push_back({fmt::format("{}", stage), number_text(1e3 * run.busy[stage]),
                                 number_text(1e3 * run.bubble(static_cast<int>(stage)))});
    plot.rows.push_back(std::move(row));
  }
  const std::int64_t drawn = std::min(c.layout.micro_batches, 3 * c.layout.pp);
  figure.summary = fmt::format(
      "What each stage of a pipeline computes when, for {} of {} micro-batches, and what follows.",
      drawn, c.layout.micro_batches);
  figure.svg = to_svg(plot);
  return figure;
}

// Nothing if no failure is expected. The job is simulated for as long as the run takes, at most a
// quarter of a year.
std::optional<DocFigure> goodput_figure(const PlanView& view, const PlanCandidate& c) {
  constexpr int kDraws = 200;
  constexpr double kMostDays = 90;
  if (view.cluster.failures.per_1000_node_days <= 0) {
    return std::nullopt;
  }
  GoodputReport report;
  JobModel& job = report.model;
  job.nodes = c.nodes;
  job.days = std::clamp(c.outlook.days, 1.0, kMostDays);
  job.step_seconds = c.time.total();
  job.rates = {.source = "none", .node = view.cluster.failures.per_1000_node_days};
  job.times.detect[static_cast<std::size_t>(JobFaultKind::node)] =
      view.cluster.failures.detect_seconds;
  job.times.relaunch = view.cluster.failures.relaunch_seconds;
  job.checkpoint.memory_every = {0, ""};
  job.checkpoint.stall = c.outlook.stall_seconds;
  job.checkpoint.disk_seconds = c.outlook.save_seconds;
  // Spares, so that repairs do not count: those that fail within a day, several times.
  job.spares = 2 + static_cast<std::int64_t>(view.cluster.failures.per_1000_node_days *
                                             static_cast<double>(c.nodes) / 250);
  check_job_model(job);
  report.seed = 1;
  report.goodput = summarize(simulate_draws(job, report.seed, kDraws, 1));
  DocFigure figure;
  figure.heading = "Goodput of the best layout";
  figure.summary = fmt::format(
      "{} simulations of {:.1f} days: the fraction of them that does not "
      "exceed each goodput.",
      kDraws, job.days);
  figure.svg = to_svg(report);
  figure.table = {"Goodput", {"of the simulations", "do not exceed"}, {}};
  for (const double q : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    figure.table.rows.push_back({fmt::format("{:.0f} %", 100 * q),
                                 fmt::format("{:.2f} %", 100 * report.goodput.quantile(q))});
  }
  return figure;
}

}  // namespace

Document plan_page(const PlanView& view) {
  Document page{"Plan for " + view.cluster.name, {}, {}};
  page.paragraphs.push_back(fmt::format("{} layouts were tried, and {} fit.", view.result.tried,
                                        view.result.candidates.size()));
  if (view.result.candidates.empty()) {
    return page;
  }
  const PlanCandidate& best = view.result.candidates.front();
  DocSection section;
  section.heading = "Layouts";
  section.paragraphs.push_back(fmt::format(
      "The best layout is {}: {} s per step, with a typical error of {} %, {} days in all.",
      layout_text(best.layout), number_text(best.time.total()),
      number_text(view.cluster.residual_percent), number_text(best.outlook.days)));
  section.figures = {time_figure(view), memory_figure(view), front_figure(view),
                     timeline_figure(view, best)};
  if (auto goodput = goodput_figure(view, best)) {
    section.figures.push_back(std::move(*goodput));
  }
  page.sections.push_back(std::move(section));
  return page;
}

}  // namespace trireme
