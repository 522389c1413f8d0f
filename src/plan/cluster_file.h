// Cluster describes the machine for which a run is planned: what its devices, links, network and
// storage can do, how often its nodes fail, and what it costs. It is read from a YAML file such as
// those of configs/cluster/. All rates are those of one direction, and "GB" is 10^9 bytes. Plain
// values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct Cluster {
  struct Device {              // the GPU, or the host's processors, that one rank computes with
    std::string kind = "gpu";  // "gpu" or "cpu"
    std::string type;          // such as "A100-SXM4-80GB"
    int per_node = 8;
    double bf16_tflops = 0;  // peak rates of products, without sparsity; fp16 has the rate of bf16
    double fp8_tflops = 0;   // 0 if it has no such products
    double fp32_tflops = 0;
    std::int64_t memory = 0;           // bytes
    std::int64_t reserved_memory = 0;  // bytes that context and libraries take of it
    double memory_gb_per_s = 0;        // peak
    int compute_units = 0;             // which share out the tiles of products; 0 if unknown
    double launch_us = 5;              // from one kernel to the next, with nothing else to do
    double watts = 0;                  // while training
    double idle_watts = 0;
  };
  struct Efficiency {  // fractions of the peaks above, 0..1
    double products =
        0.85;  // of large products in training, where the power limit lowers the clock
    double fp8_products = 0.6;
    double attention = 0.5;  // of fused attention
    double memory = 0.85;    // of kernels that only move data
    double links = 0.8;      // of operations within a node
    double network = 0.8;    // of operations between nodes
    double overlap = 0.8;    // part of a transfer that is hidden where computing goes on meanwhile
  };
  struct Links {            // within a node
    double gb_per_s = 0;    // of one device
    double latency_us = 5;  // of one message between two devices, with the software's part
  };
  struct Network {        // between nodes
    double gb_per_s = 0;  // of one node
    double latency_us = 10;
    double taper = 1;  // upper levels' bandwidth divided by the nodes'; 1 without any
  };
  struct Storage {  // of the whole job; local and shared file systems differ only in these rates
    double write_gb_per_s = 0;
    double read_gb_per_s = 0;
  };
  struct Failures {
    double per_1000_node_days = 0;  // that end a job; 0 if none is expected
    double detect_seconds = 60;     // until the failure is known
    double relaunch_seconds = 300;  // from then until training goes on, without reading
  };
  struct Node {
    double watts = 0;           // beside its devices
    double price_per_hour = 0;  // of a node; 0 if unknown
  };
  struct Energy {  // the keys of the same name in a run's configuration
    double price_per_kwh = 0;
    std::string currency = "EUR";
    double co2_grams_per_kwh = 0;
    double pue = 1;
  };

  // What a part of a step takes by what its formula says, as `trireme plan calibrate` finds it on
  // this cluster.
  struct Calibration {
    double products = 1;  // of the blocks
    double head = 1;
    double attention = 1;
    double kernels = 1;  // and adding up gradients
    double tensor = 1;
    double pipeline = 1;  // transfers and idle time
    double replicas = 1;  // gradients and parameters
    double optimizer = 1;
  };

  std::string name;
  int nodes = 1;
  double residual_percent = 10;  // typical error of a predicted time, from calibration
  Device device;
  Efficiency efficiency;
  Links links;
  Network network;
  Storage storage;
  Failures failures;
  Node node;
  Energy energy;
  Calibration calibration;

  std::int64_t devices() const { return std::int64_t{nodes} * device.per_node; }
};

// The newest version of cluster files that this program reads.
inline constexpr int kClusterVersion = 1;

// The files in configs/cluster/, which are compiled into the program, sorted by name.
struct ClusterPreset {
  std::string_view name;  // "a100-selene"
  std::string_view yaml;
};
const std::vector<ClusterPreset>& cluster_presets();

// file: a path, or the name of a preset; a file of that name counts first. Throws a ConfigError
// that lists all problems: file, line, key, value and what is allowed.
Cluster load_cluster(const std::filesystem::path& file);
// Returns the file as YAML with every key, its value and the line that it comes from.
std::string resolved_cluster(const std::filesystem::path& file);

// Returns a cluster as the text of a file. remarks: by key, such as "device.memory", what its
// comment says about where the figure comes from; lines of one comment at the top under "".
std::string cluster_text(const Cluster& cluster, const std::map<std::string, std::string>& remarks);

}  // namespace trireme
