#include "src/plan/cluster_file.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/config_binder.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

// Limits beyond which a figure is a slip of the pen, such as FLOP/s instead of TFLOP/s.
constexpr double kMostTflops = 1e6;
constexpr double kMostGbPerS = 1e6;
constexpr double kMostMicroseconds = 1e6;
constexpr double kMostWatts = 1e6;
constexpr double kMostSeconds = 1e6;
constexpr double kMostMemory = 0x1p44;  // 16 TiB
constexpr double kMostMoney = 1e9;
// The least rate, part or factor that is not zero: with smaller ones, times exceed all numbers.
constexpr double kLeast = 1e-6;

// Refuses rates that are neither zero, which means that there is none, nor sensible.
void refuse_tiny(ConfigBinder& b, const char* key, double value) {
  if (value > 0 && value < kLeast) {
    b.refuse(key, fmt::format("it is neither 0 nor at least {:g}", kLeast));
  }
}

void bind(ConfigBinder& b, Cluster::Device& c) {
  b.text("device.kind", c.kind, "what one rank computes with").one_of({"gpu", "cpu"});
  b.text("device.type", c.type, "its name, such as A100-SXM4-80GB").required();
  b.integer("device.per_node", c.per_node, "devices per node, one rank each")
      .at_least(1)
      .at_most(4096);
  b.real("device.bf16_tflops", c.bf16_tflops, "peak of bf16 and fp16 products, TFLOP/s")
      .required()
      .at_least(kLeast)
      .at_most(kMostTflops);
  b.real("device.fp8_tflops", c.fp8_tflops, "peak of fp8 products, TFLOP/s; 0: it has none")
      .at_least(0)
      .at_most(kMostTflops);
  b.real("device.fp32_tflops", c.fp32_tflops, "peak of fp32 products, TFLOP/s; 0: unknown")
      .at_least(0)
      .at_most(kMostTflops);
  b.bytes("device.memory", c.memory, "memory of a device, such as 80GiB")
      .required()
      .at_least(1)
      .at_most(kMostMemory);
  b.bytes("device.reserved_memory", c.reserved_memory,
          "the part that context and libraries take, such as 3GiB");
  b.real("device.memory_gb_per_s", c.memory_gb_per_s, "peak rate of its memory, GB/s")
      .required()
      .at_least(kLeast)
      .at_most(kMostGbPerS);
  b.integer("device.compute_units", c.compute_units,
            "units that tiles of a product are dealt to, such as a GPU's 108 multiprocessors; 0: "
            "do not count in waves")
      .at_least(0)
      .at_most(100000);
  b.real("device.launch_us", c.launch_us, "microseconds from one kernel to the next")
      .at_least(0)
      .at_most(kMostMicroseconds);
  b.real("device.watts", c.watts, "power of a device while it trains; 0: unknown")
      .at_least(0)
      .at_most(kMostWatts);
  b.real("device.idle_watts", c.idle_watts, "power of a device that waits")
      .at_least(0)
      .at_most(kMostWatts);
  refuse_tiny(b, "device.fp8_tflops", c.fp8_tflops);
  refuse_tiny(b, "device.fp32_tflops", c.fp32_tflops);
  constexpr std::int64_t kLeastMemory = std::int64_t{1} << 20;
  if (c.memory != 0 && c.memory < kLeastMemory) {
    b.refuse("device.memory", "a device needs at least 1 MiB; give a unit, as in 80GiB");
  }
  if (c.memory >= kLeastMemory && c.reserved_memory >= c.memory) {
    b.refuse("device.reserved_memory", "nothing of device.memory is left");
  }
  if (c.idle_watts > c.watts) {
    b.refuse("device.idle_watts", fmt::format("it is more than device.watts, {:g}", c.watts));
  }
}

void bind(ConfigBinder& b, Cluster::Efficiency& c) {
  const auto fraction = [&b](const char* key, double& value, const char* doc) {
    b.real(key, value, doc).at_least(kLeast).at_most(1);
  };
  fraction("efficiency.products", c.products, "part of the peak that large products reach");
  fraction("efficiency.fp8_products", c.fp8_products, "the same for fp8");
  fraction("efficiency.attention", c.attention, "part of the peak that fused attention reaches");
  fraction("efficiency.memory", c.memory, "part of the memory's rate that kernels reach");
  fraction("efficiency.links", c.links, "part of the links' rate that operations reach");
  fraction("efficiency.network", c.network, "part of the network's rate that operations reach");
  b.real("efficiency.overlap", c.overlap, "part of a transfer hidden behind computing")
      .at_least(0)
      .at_most(1);
}

void bind(ConfigBinder& b, Cluster::Links& links, Cluster::Network& network) {
  b.real("links.gb_per_s", links.gb_per_s,
         "rate of a device's links within its node, one direction, GB/s; 0: none")
      .at_least(0)
      .at_most(kMostGbPerS);
  b.real("links.latency_us", links.latency_us, "microseconds of a message within a node")
      .at_least(0)
      .at_most(kMostMicroseconds);
  b.real("network.gb_per_s", network.gb_per_s,
         "rate of a node's network, all adapters, one direction, GB/s; 0: none")
      .at_least(0)
      .at_most(kMostGbPerS);
  b.real("network.latency_us", network.latency_us, "microseconds of a message between nodes")
      .at_least(0)
      .at_most(kMostMicroseconds);
  refuse_tiny(b, "links.gb_per_s", links.gb_per_s);
  refuse_tiny(b, "network.gb_per_s", network.gb_per_s);
  b.real("network.taper", network.taper, "bandwidth of the upper switches by that of the nodes")
      .at_least(kLeast)
      .at_most(1);
}

void bind(ConfigBinder& b, Cluster::Storage& c) {
  b.real("storage.write_gb_per_s", c.write_gb_per_s, "what a job writes, GB/s; 0: unknown")
      .at_least(0)
      .at_most(kMostGbPerS);
  b.real("storage.read_gb_per_s", c.read_gb_per_s, "what a job reads, GB/s; 0: unknown")
      .at_least(0)
      .at_most(kMostGbPerS);
  refuse_tiny(b, "storage.write_gb_per_s", c.write_gb_per_s);
  refuse_tiny(b, "storage.read_gb_per_s", c.read_gb_per_s);
}

void bind(ConfigBinder& b, Cluster::Failures& c) {
  b.real("failures.per_1000_node_days", c.per_1000_node_days,
         "failures that end a job, per 1000 days of a node; 0: none")
      .at_least(0)
      .at_most(1e4);
  refuse_tiny(b, "failures.per_1000_node_days", c.per_1000_node_days);
  b.real("failures.detect_seconds", c.detect_seconds, "until a failure is noticed")
      .at_least(0)
      .at_most(kMostSeconds);
  b.real("failures.relaunch_seconds", c.relaunch_seconds, "from then until training goes on")
      .at_least(0)
      .at_most(kMostSeconds);
}

void bind(ConfigBinder& b, Cluster::Node& node, Cluster::Energy& energy) {
  b.real("node.watts", node.watts, "power of a node beside its devices")
      .at_least(0)
      .at_most(kMostWatts);
  b.real("node.price_per_hour", node.price_per_hour, "price of a node-hour; 0: unknown")
      .at_least(0)
      .at_most(kMostMoney);
  b.real("energy.price_per_kwh", energy.price_per_kwh, "price of a kWh; 0: unknown")
      .at_least(0)
      .at_most(kMostMoney);
  b.text("energy.currency", energy.currency, "currency of both prices");
  b.real("energy.co2_grams_per_kwh", energy.co2_grams_per_kwh, "carbon of a kWh; 0: unknown")
      .at_least(0)
      .at_most(1e5);
  b.real("energy.pue", energy.pue, "energy drawn by the site per energy of the nodes")
      .at_least(1)
      .at_most(10);
}

void bind(ConfigBinder& b, Cluster::Calibration& c) {
  constexpr double kMostFactor = 1000;
  const auto factor = [&b](const char* key, double& value, const char* what) {
    b.real(key, value, std::string("measured by predicted time of ") + what)
        .at_least(kLeast)
        .at_most(kMostFactor);
  };
  factor("calibration.products", c.products, "the blocks' products");
  factor("calibration.head", c.head, "the output product, the loss and the embedding");
  factor("calibration.attention", c.attention, "attention");
  factor("calibration.kernels", c.kernels, "kernels that move data");
  factor("calibration.tensor", c.tensor, "operations of tensor parallelism");
  factor("calibration.pipeline", c.pipeline, "transfers between stages, and of idle stages");
  factor("calibration.replicas", c.replicas, "exchanging gradients and parameters");
  factor("calibration.optimizer", c.optimizer, "the optimizer");
}

// A node without links or a cluster without network cannot hold ranks that talk to each other.
void check_connections(ConfigBinder& b, const Cluster& c) {
  if (c.device.per_node > 1 && c.links.gb_per_s == 0) {
    b.refuse("links.gb_per_s",
             fmt::format("device.per_node is {}, so the rate of the links within a node is needed",
                         c.device.per_node));
  }
  if (c.nodes > 1 && c.network.gb_per_s == 0) {
    b.refuse("network.gb_per_s",
             fmt::format("nodes is {}, so the rate of the network is needed", c.nodes));
  }
}

void bind(ConfigBinder& b, Cluster& c) {
  int version = 0;
  b.integer("version", version, "version of the file's format").required().at_least(1);
  if (version > kClusterVersion) {
    b.refuse("version", fmt::format("the file is of version {}, but this program reads versions "
                                    "up to {}: use a newer program",
                                    version, kClusterVersion));
  }
  b.text("name", c.name, "name of the cluster").required();
  b.integer("nodes", c.nodes, "equal nodes; clusters with several kinds need a file for each kind")
      .required()
      .at_least(1)
      .at_most(1'000'000);
  b.real("residual_percent", c.residual_percent, "typical error of a predicted time")
      .at_least(0)
      .at_most(1000);
  bind(b, c.device);
  bind(b, c.efficiency);
  bind(b, c.links, c.network);
  bind(b, c.storage);
  bind(b, c.failures);
  bind(b, c.node, c.energy);
  bind(b, c.calibration);
  check_connections(b, c);
}

void add_source(ConfigBinder& b, const std::filesystem::path& file) {
  std::error_code error;
  const auto& presets = cluster_presets();
  const auto preset = std::find_if(presets.begin(), presets.end(), [&](const ClusterPreset& each) {
    return each.name == file.string();
  });
  if (preset != presets.end() && !std::filesystem::exists(file, error)) {
    b.include_defaults("", preset->yaml, fmt::format("configs/cluster/{}.yaml", preset->name));
    return;
  }
  if (preset == presets.end() && !file.has_parent_path() && file.extension() != ".yaml" &&
      !std::filesystem::exists(file, error)) {
    std::vector<std::string> names;
    for (const ClusterPreset& each : presets) {
      names.emplace_back(each.name);
    }
    const std::string nearest = nearest_word(file.string(), names);
    throw ConfigError(fmt::format(
        "unknown cluster '{}': it is neither a file nor one of {}{}", file.string(),
        fmt::join(names, ", "), nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
  }
  b.add_file(file);
}

// Replaces what messages about a run's keys advise: these are the keys of a cluster file.
std::string about_clusters(std::string message, const std::filesystem::path& file) {
  constexpr std::string_view kKeysOfRuns = "`trireme config show` lists all keys";
  for (std::size_t at = 0; (at = message.find(kKeysOfRuns, at)) != std::string::npos;) {
    message.replace(at, kKeysOfRuns.size(), "docs/planner.md lists all keys");
  }
  constexpr std::string_view kFrom = "write it into the file or, for a run, give ";
  constexpr std::string_view kTo = " on the command line";
  const std::string instead = "write it into " + printable(file.string());
  for (std::size_t at = 0; (at = message.find(kFrom, at)) != std::string::npos;) {
    const std::size_t end = message.find(kTo, at);
    if (end == std::string::npos) {
      break;
    }
    message.replace(at, end + kTo.size() - at, instead);
    at += instead.size();
  }
  return message;
}

void finish(const ConfigBinder& b, const std::filesystem::path& file) {
  try {
    b.finish();
  } catch (const ConfigError& error) {
    throw ConfigError(about_clusters(error.what(), file));
  }
}

std::string commented(const std::string& lines) {
  std::string text;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    text += "# " + printable(lines.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return text;
}

}  // namespace

std::string cluster_text(const Cluster& cluster,
                         const std::map<std::string, std::string>& remarks) {
  Cluster values = cluster;  // the defaults of a binder without sources
  ConfigBinder b;
  bind(b, values);
  const auto top = remarks.find("");
  std::string text = top == remarks.end() ? std::string() : commented(top->second);
  std::string section;
  for (const ResolvedKey& key : b.resolved()) {
    const std::size_t dot = key.key.find('.');
    const bool in_section = dot != std::string::npos;
    if (in_section && key.key.substr(0, dot) != section) {
      section = key.key.substr(0, dot);
      text += section + ":\n";
    }
    const std::string value =
        key.key == "version" ? fmt::format("{}", kClusterVersion) : key.value.to_yaml();
    const auto remark = remarks.find(key.key);
    text += fmt::format("{}{}: {}{}\n", in_section ? "  " : "",
                        in_section ? key.key.substr(dot + 1) : key.key, value,
                        remark == remarks.end() ? "" : "  # " + printable(remark->second));
  }
  return text;
}

Cluster load_cluster(const std::filesystem::path& file) {
  Cluster cluster;
  ConfigBinder b;
  add_source(b, file);
  bind(b, cluster);
  finish(b, file);
  return cluster;
}

std::string resolved_cluster(const std::filesystem::path& file) {
  Cluster cluster;
  ConfigBinder b;
  add_source(b, file);
  bind(b, cluster);
  finish(b, file);
  return b.to_yaml();
}

}  // namespace trireme
