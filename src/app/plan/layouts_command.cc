#include "src/app/plan/layouts_command.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "mpi/self_communicator.h"
#include "src/app/command/number_check.h"
#include "src/app/command/standard_output.h"
#include "src/app/command/written_files.h"
#include "src/app/plan/counted_memory.h"
#include "src/app/plan/layouts_report.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/plan/planned_run.h"
#include "src/report/plan_section.h"
#include "src/train/run/config_files.h"
#include "src/train/saving/teacher_weights.h"

namespace trireme {
namespace {

// Without --nodes: 1, 2, 4, ... and all.
std::vector<std::int64_t> node_counts(const LayoutOptions& options, const Cluster& cluster) {
  std::vector<std::int64_t> nodes;
  for (const int each : options.nodes) {
    if (each > cluster.nodes) {
      throw ConfigError(fmt::format("--nodes {}: cluster '{}' has {}", each,
                                    printable(cluster.name), counted(cluster.nodes, "node")));
    }
    if (std::find(nodes.begin(), nodes.end(), each) == nodes.end()) {
      nodes.push_back(each);
    }
  }
  for (std::int64_t each = 1; options.nodes.empty() && each < cluster.nodes; each *= 2) {
    nodes.push_back(each);
  }
  if (options.nodes.empty()) {
    nodes.push_back(cluster.nodes);
  }
  return nodes;
}

// Returns the layout of --why-not. What it doesn't name is that of the best layout, except the
// micro-batch, which is the configured one, and dp, which fills the nodes: those of --nodes if that
// is one number, otherwise those of the best layout.
PlanLayout asked_layout(const LayoutOptions& options, const RunConfig& config,
                        const PlanView& view) {
  const auto& candidates = view.result.candidates;
  PlanLayout base = candidates.empty() ? PlanLayout() : candidates.front().layout;
  std::int64_t ranks = base.ranks();
  if (options.nodes.size() == 1) {
    ranks = std::int64_t{options.nodes.front()} * view.cluster.device.per_node;
  }
  base.micro_batch = config.train.micro_batch;
  if (("," + options.why_not).find(",dp=") == std::string::npos) {
    base.dp = base.micro_batches = base.micro_batch = 1;
    const PlanLayout parts = parse_layout(options.why_not, base, 0);
    base.micro_batch = config.train.micro_batch;
    base.dp = std::max<std::int64_t>(1, ranks / (parts.tp * parts.pp));
  }
  return parse_layout(options.why_not, base, view.task.global_batch);
}

void report_misfit(const PlanView& view) {
  std::string text = fmt::format("no layout of {} fits; what would help:", view.result.tried);
  for (const std::string& line : view.advice) {
    text += "\n  " + line;
  }
  fmt::print(stderr, "{}\n", text);
}

}  // namespace

void plan_run(const LayoutOptions& options, int& exit_code) {
  if (options.config.empty() || options.cluster.empty()) {
    throw UsageError(
        "trireme plan: give a run's YAML file and --cluster, or one of the commands "
        "that trireme plan --help lists");
  }
  const Cluster cluster = load_cluster(options.cluster);
  SelfCommunicator self;
  const ConfigSources sources{
      .file = options.config, .arguments = options.arguments, .environment = environ};
  const RunConfig config = with_teacher(load_run_config(sources).config, self);
  check_not_read({{"-J", options.out}, {"--html", options.html}}, files_of_config(sources, config));
  const PlanTask task = plan_task(config);
  const std::vector<std::int64_t> nodes = node_counts(options, cluster);
  PlanResult result = plan_layouts(task, cluster, nodes);
  count_memory(config, cluster, static_cast<std::size_t>(options.top), result);
  PlanView view{task, cluster, result, options.top};
  if (result.candidates.empty()) {
    view.advice =
        advice_to_fit(task, cluster, result, *std::max_element(nodes.begin(), nodes.end()));
  }
  const bool makes_json = options.json || !options.out.empty() || !options.html.empty();
  const nlohmann::ordered_json json = makes_json ? plan_json(view) : nlohmann::ordered_json();
  if (!options.out.empty()) {
    write_named_file(options.out, json_text(json) + "\n");
  }
  if (!options.html.empty()) {
    const std::string title = "Plan for " + cluster.name;
    write_named_file(options.html,
                     to_html({title, {}, {plan_section(json_text(json), options.config)}}));
  }
  if (options.json) {
    print_json(json);
  } else {
    print_plan(view);
    if (options.explain && !result.candidates.empty()) {
      print_explanation(view, result.candidates.front());
    }
    if (!options.why_not.empty()) {
      print_why_not(view, asked_layout(options, config, view), [&](const PlanLayout& layout) {
        return counted_memory(config, cluster, layout);
      });
    }
  }
  if (result.candidates.empty()) {
    report_misfit(view);
    exit_code = static_cast<int>(ExitCode::usage);
  }
}

void add_layout_options(CommandLine& command, LayoutOptions& options) {
  command.add_option("CONFIG", options.config, "The run's YAML file");
  command.add_option("KEY=VALUE", options.arguments,
                     "Configuration keys to override, as in train.global_batch=256");
  command
      .add_option("--cluster", options.cluster,
                  "A cluster file, or the name of one of configs/cluster/")
      .type_name("FILE");
  command
      .add_option("--nodes", options.nodes,
                  "Numbers of nodes to try, such as 8,16 (default: powers of two, and all)")
      .delimiter(',')
      .one_value_per_use()
      .check(integer_within(1, 1'000'000));
  command.add_option("--top", options.top, "Layouts to show").check(integer_within(1, 100'000));
  command.add_flag("--explain", options.explain,
                   "Show the formulas of the best layout with numbers put in");
  command
      .add_option("--why-not", options.why_not,
                  "Say why this layout is not the best, as in dp=8,tp=4,pp=2,zero=1")
      .type_name("LAYOUT");
  command.add_option("-J", options.out, "Write the layouts to FILE as JSON")
      .type_name("FILE")
      .written();
  command
      .add_option("--html", options.html,
                  "Write a page with pictures of the best layouts: their time, memory, the front, "
                  "the timeline of a step and the distribution of goodput")
      .type_name("FILE")
      .written();
  command.add_flag("--json", options.json, "Print the same JSON");
}

}  // namespace trireme
