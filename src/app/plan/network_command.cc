#include <filesystem>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/app/command/number_check.h"
#include "src/app/command/standard_output.h"
#include "src/app/plan/plan_subcommands.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/units.h"
#include "src/plan/network/scaling.h"

namespace trireme {
namespace {

// The least rate and part of a rate: with smaller ones, times would exceed all numbers.
constexpr double kLeast = 1e-6;

// Holds the arguments as typed: rates in GB/s, latencies in microseconds.
struct NetworkOptions {
  ScalingPlan plan;
  std::string operation = "all_reduce";
  std::string fabric = "rail";
  std::string bytes = "1GiB";
  double link_gb = 370, link_us = 1, nic_gb = 48, nic_us = 4, switch_us = 0.5;
  std::string svg;
  bool json = false;
};

void plan_network(NetworkOptions options) {
  if (!options.svg.empty() && std::filesystem::path(options.svg).extension() != ".svg") {
    throw ConfigError(fmt::format("--svg {}: the name of a figure must end in .svg", options.svg));
  }
  ScalingPlan& plan = options.plan;
  plan.kind = parse_planned_collective(options.operation);
  plan.fabric.kind = parse_fabric(options.fabric);
  plan.bytes = static_cast<double>(parse_bytes(options.bytes));
  plan.fabric.link_rate = 1e9 * options.link_gb;
  plan.fabric.link_latency = 1e-6 * options.link_us;
  plan.fabric.nic_rate = 1e9 * options.nic_gb;
  plan.fabric.nic_latency = 1e-6 * options.nic_us;
  plan.fabric.switch_latency = 1e-6 * options.switch_us;
  const std::vector<ScalingPoint> points = collective_scaling(plan);
  if (!options.svg.empty()) {
    write_named_file(options.svg, to_svg(plan, points));
  }
  options.json ? print_json(to_json(plan, points)) : fmt::print("{}", to_text(plan, points));
}

void add_node_options(CommandLine& command, NetworkOptions& options) {
  Fabric& fabric = options.plan.fabric;
  command.add_option("--nodes", fabric.nodes, "Nodes of the fabric")
      .check(integer_within(1, 1 << 20));
  command.add_option("--gpus-per-node", fabric.gpus_per_node, "GPUs of a node")
      .check(integer_within(1, 1024));
  command.add_option("--nics-per-node", fabric.nics_per_node, "NICs of a node")
      .check(integer_within(1, 1024));
  command.add_option("--link-rate", options.link_gb, "GB/s of a GPU within its node, one direction")
      .check(within(kLeast, 1e6));
  command.add_option("--link-latency", options.link_us, "Microseconds of a message within a node")
      .check(within(0.0, 1e6));
  command.add_option("--nic-rate", options.nic_gb, "GB/s of a NIC, one direction")
      .check(within(kLeast, 1e6));
  command
      .add_option("--nic-latency", options.nic_us,
                  "Microseconds of a message between nodes, without switches")
      .check(within(0.0, 1e6));
  command.add_option("--switch-latency", options.switch_us, "Microseconds of a switch")
      .check(within(0.0, 1e6));
}

void add_switch_options(CommandLine& command, NetworkOptions& options) {
  Fabric& fabric = options.plan.fabric;
  command.add_option("--fabric", options.fabric, "How the nodes are connected")
      .check(one_of(fabric_names()));
  command.add_option("--nodes-per-leaf", fabric.nodes_per_leaf, "Nodes at a leaf switch")
      .check(integer_within(1, 1 << 20));
  command
      .add_option("--leaves-per-pod", fabric.leaves_per_pod,
                  "Leaf switches in a pod; 0: the core connects all leaves")
      .check(integer_within(0, 1 << 20));
  command.add_option("--nodes-per-group", fabric.nodes_per_group, "Nodes in a group of a dragonfly")
      .check(integer_within(1, 1 << 20));
  command
      .add_option("--leaf-taper", fabric.leaf_taper,
                  "Rate out of a leaf by that of its nodes; 0.5: two to one oversubscribed")
      .check(within(kLeast, 1e3));
  command.add_option("--pod-taper", fabric.pod_taper, "The same for a pod")
      .check(within(kLeast, 1e3));
  command.add_option("--global-taper", fabric.global_taper, "The same for a group of a dragonfly")
      .check(within(kLeast, 1e3));
  command
      .add_option("--spread", fabric.spread,
                  "Part of the rate of parallel links that routing reaches")
      .check(within(kLeast, 1.0));
}

}  // namespace

void add_plan_network_command(CommandLine& plan) {
  CommandLine& command = plan.add_command("network", "Predict how collectives scale on a network");
  const auto options = std::make_shared<NetworkOptions>();
  options->plan.fabric.nodes = 2048;
  command.add_option("--op", options->operation, "The operation")
      .check(one_of(planned_collective_names()));
  command.add_option("--bytes", options->bytes, "Size of the whole buffer").type_name("BYTES");
  command
      .add_option("--stride", options->plan.stride,
                  "Distance of the ranks of a group, as tp for groups along dp; all groups run at "
                  "once")
      .check(integer_within(1, 1 << 20));
  add_node_options(command, *options);
  add_switch_options(command, *options);
  command.add_flag("--scattered", options->plan.is_scattered, "Take the nodes in a random order");
  command.add_option("--seed", options->plan.seed, "Determines that order").check(any_seed());
  command.add_option("--svg", options->svg, "Draw the bus bandwidths").type_name("FILE").written();
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Examples:\n"
      "  trireme plan network --nodes 2048 --bytes 1GiB\n"
      "  trireme plan network --fabric fat_tree --leaf-taper 0.25 \\\n"
      "    --scattered --stride 8");
  command.callback([options] { plan_network(*options); });
}

}  // namespace trireme
