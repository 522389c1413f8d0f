#include "src/device/sim/links.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "src/device/sim/environment.h"
#include "src/device/sim/nccl_log.h"

namespace sim {
namespace {

struct LinkWords {
  std::string_view word;
  const char* transport;  // in the lines of channels
  const char* path;       // between the GPUs of a host
  bool is_network = false;
};
constexpr std::array<LinkWords, 8> kLinks = {{
    {"nvlink", "P2P/CUMEM", "NVL"},
    {"nvls", "P2P/CUMEM", "NVL"},
    {"pcie", "P2P/IPC", "PHB"},
    {"shm", "SHM/direct/direct", "SYS"},
    {"ib", "NET/IB/0/GDRDMA", "PIX", true},
    {"ib-host", "NET/IB/0", "PIX", true},
    {"roce", "NET/IB/1/GDRDMA", "PIX", true},
    {"socket", "NET/Socket/0", "PIX", true},
}};

struct LinkPlan {
  const LinkWords* usual = &kLinks.front();
  std::map<int, const LinkWords*> of_device;

  const LinkWords& between(int a, int b) const {
    for (const int device : {a, b}) {
      if (const auto found = of_device.find(device); found != of_device.end()) {
        return *found->second;
      }
    }
    return *usual;
  }
};

const LinkWords* find_link(std::string_view word) {
  for (const LinkWords& link : kLinks) {
    if (link.word == word) {
      return &link;
    }
  }
  return nullptr;
}

bool add_link(LinkPlan& plan, std::string_view entry) {
  const std::size_t colon = entry.find(':');
  const LinkWords* const link =
      find_link(colon == std::string_view::npos ? entry : entry.substr(colon + 1));
  if (link == nullptr) {
    return false;
  }
  if (colon == std::string_view::npos) {
    plan.usual = link;
    return true;
  }
  int device = 0;
  const char* const end = entry.data() + colon;
  const auto parsed = std::from_chars(entry.data(), end, device);
  plan.of_device[device] = link;
  return colon > 0 && parsed.ec == std::errc() && parsed.ptr == end && device >= 0;
}

LinkPlan read_plan() {
  LinkPlan plan;
  std::string_view rest = environment().links;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    if (!add_link(plan, entry)) {
      refuse_variable("TRIREME_SIM_LINKS: cannot read '" + std::string(entry) +
                      "': expected nvlink, nvls, pcie, shm, ib, ib-host, roce or socket, or one "
                      "of them for a device, such as 1:socket");
    }
  }
  return plan;
}

const LinkPlan& link_plan() {
  static const LinkPlan once = read_plan();
  return once;
}

// A wrong variable ends the process before it has done anything.
[[maybe_unused]] const LinkPlan& links_read_at_the_start = link_plan();

}  // namespace

void log_communicator(int rank, int ranks, int device) {
  const LinkWords& link = link_plan().between(device, device);
  const bool adds = link.word == "nvls" && ranks > 1;
  log_nccl(device, NcclSubsystem::init,
           "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB lo:127.0.0.1<0>");
  log_nccl(device, NcclSubsystem::init,
           std::string("Using network ") + (link.word == "socket" ? "Socket" : "IB"));
  log_nccl(device, NcclSubsystem::graph,
           std::string("Pattern 4, crossNic 0, nChannels 2, bw 20.000000/20.000000, type ") +
               (ranks > 1 ? link.path : "LOC") + "/PIX, sameChannels 1");
  log_nccl(device, NcclSubsystem::init,
           std::string("2 coll channels, 2 collnet channels, ") + (adds ? "16" : "0") +
               " nvls channels, 2 p2p channels, 2 p2p channels per peer");
  log_nccl(device, NcclSubsystem::init,
           "ncclCommInitRankConfig comm 0x5555 rank " + std::to_string(rank) + " nranks " +
               std::to_string(ranks) + " cudaDev " + std::to_string(device) + " nvmlDev " +
               std::to_string(device) + " busId 1000 commId 0x1 - Init COMPLETE");
}

void log_channel(const LinkedRank& from, const LinkedRank& to, bool is_receiver, int connection) {
  const LinkWords& link = link_plan().between(from.device, to.device);
  if (is_receiver && !link.is_network) {
    return;
  }
  const auto text = [](const LinkedRank& each) {
    return std::to_string(each.rank) + "[" + std::to_string(each.device) + "]";
  };
  const char* const side = !link.is_network ? "" : is_receiver ? " [receive]" : " [send]";
  log_nccl(is_receiver ? to.device : from.device, NcclSubsystem::init,
           "Channel 00" + (link.word == "shm" ? "" : "/" + std::to_string(connection)) + " : " +
               text(from) + " -> " + text(to) + side + " via " + link.transport);
}

}  // namespace sim
