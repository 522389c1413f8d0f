#include "src/train/start/transport_check.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

// What all ranks use together.
struct WorldUse {
  std::int64_t connections = 0;        // of all ranks, to other hosts
  std::int64_t local_connections = 0;  // within hosts
  std::set<std::string> interfaces;    // over which the former leave
  std::set<std::string> rdma;
};

nlohmann::json to_json(const TransportUse& use) {
  std::set<std::string> names;
  for (const RankConnection& connection : use.connections) {
    for (const NetworkInterface& each : use.interfaces) {
      if (connection.interface == each.index) {
        names.insert(printable(each.text()));
      }
    }
  }
  std::set<std::string> rdma;
  for (const std::string& each : use.rdma) {
    rdma.insert(printable(each));
  }
  return {{"connections", use.connections.size()},
          {"local", use.local_connections},
          {"interfaces", names},
          {"rdma", rdma}};
}

WorldUse gathered(const TransportUse& own, Communicator& world) {
  WorldUse all;
  for (const std::string& text : all_gather_text(world, to_json(own).dump())) {
    const nlohmann::json one = nlohmann::json::parse(text);
    all.connections += one.at("connections").get<std::int64_t>();
    all.local_connections += one.at("local").get<std::int64_t>();
    all.interfaces.merge(one.at("interfaces").get<std::set<std::string>>());
    all.rdma.merge(one.at("rdma").get<std::set<std::string>>());
  }
  return all;
}

std::size_t count_hosts(Communicator& world) {
  const std::vector<std::string> hosts = world.members().hosts();
  return std::set<std::string>(hosts.begin(), hosts.end()).size();
}

std::string summary(const TransportRule& rule, const WorldUse& use) {
  const std::string over =
      use.interfaces.empty() ? "" : fmt::format(" over {}", fmt::join(use.interfaces, ", "));
  const std::string rdma =
      use.rdma.empty()
          ? ""
          : fmt::format("; RDMA, which is not encrypted, through {}", fmt::join(use.rdma, ", "));
  return fmt::format(
      "security.transport: {}: the ranks obey it, with {} between hosts{} and {} "
      "within them{}",
      printable(rule.text()), counted(use.connections, "connection"), over, use.local_connections,
      rdma);
}

}  // namespace

std::vector<std::string> rdma_links(const LinkBook& links) {
  std::set<std::string> found;
  for (const GroupLink& each : links.links) {
    if (is_network(each.link.kind) && each.link.kind != LinkKind::socket) {
      found.insert(fmt::format("NCCL's {}", link_text(each.link.kind, each.link.gpu_direct)));
    }
  }
  return {found.begin(), found.end()};
}

TransportCheck::TransportCheck(const SecurityConfig& config, Communicator& world, Log& log,
                               Audit audit)
    : rule_(parse_transport_rule(config.transport, config.networks)),
      world_(world),
      log_(log),
      audit_(std::move(audit)) {}

void TransportCheck::before_connecting() {
  if (rule_.kind != TransportKind::any) {
    judge(observe(), "before connecting", false);
  }
}

void TransportCheck::after_connecting(const LinkBook& links) {
  if (rule_.kind != TransportKind::any) {
    links_ = &links;
    judge(observe(), "connected", true);
  }
}

void TransportCheck::at_step(std::int64_t step, bool saves) {
  const bool first = !std::exchange(stepped_, true);
  if (rule_.kind != TransportKind::any && (first || saves)) {
    judge(observe(), fmt::format("step {}", step), false);
  }
}

TransportUse TransportCheck::observe() const {
  TransportUse use = observe_transport();
  const std::vector<std::string> links =
      links_ == nullptr ? std::vector<std::string>() : rdma_links(*links_);
  use.rdma.insert(use.rdma.end(), links.begin(), links.end());
  return use;
}

// report: whether to log and record that all ranks obey, too.
void TransportCheck::judge(const TransportUse& use, const std::string& when, bool report) {
  const std::size_t hosts = count_hosts(world_);
  const std::vector<std::string> own =
      breaches(rule_, use, rdma_settings(process_environment()), hosts > 1);
  const std::string faults = gather_faults(world_, fmt::format("{}", fmt::join(own, "; ")));
  const WorldUse all = gathered(use, world_);
  if (faults.empty() && !report) {
    return;
  }
  if (audit_) {
    audit_("transport.checked", {{"rule", rule_.text()},
                                 {"when", when},
                                 {"obeyed", faults.empty()},
                                 {"breaches", faults},
                                 {"ranks", world_.size()},
                                 {"hosts", hosts},
                                 {"connections", all.connections},
                                 {"local_connections", all.local_connections},
                                 {"interfaces", all.interfaces},
                                 {"rdma", all.rdma}});
  }
  if (!faults.empty()) {
    throw PolicyError(fmt::format("security.transport is {}, but ({}) {}: {}",
                                  printable(rule_.text()), when, faults, transport_advice(rule_)));
  }
  if (world_.rank() == 0) {
    log_.info(summary(rule_, all));
  }
}

}  // namespace trireme
