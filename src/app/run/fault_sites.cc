#include "src/app/run/fault_sites.h"

#include <algorithm>
#include <array>
#include <vector>

#include "io/checkpoint/checkpoint_fault_sites.h"
#include "io/data/loader_fault_sites.h"
#include "mpi/communication_fault_sites.h"
#include "src/base/file_fault_sites.h"
#include "src/train/training_fault_sites.h"

namespace trireme {
namespace {

constexpr std::array kStartSites = {
    FaultSite{"start.init", FaultSite::Kind::point, "each rank, before MPI is started"},
    FaultSite{"start.joined", FaultSite::Kind::point, "each rank, when MPI has started"},
};
constexpr std::array kEndSites = {
    FaultSite{"finish.finalize", FaultSite::Kind::point, "each rank, before it leaves MPI"},
};

// The parts of a run, in their order: what stands before the dot in the name of a point.
constexpr std::array<std::string_view, 9> kParts = {"start", "data",   "load",   "step", "comm",
                                                    "ckpt",  "memory", "finish", "file"};

auto part_of(const FaultSite& site) {
  return std::find(kParts.begin(), kParts.end(), site.name.substr(0, site.name.find('.')));
}

std::vector<FaultSite> joined_sites() {
  std::vector<FaultSite> sites;
  const auto add = [&](std::span<const FaultSite> of_a_room) {
    sites.insert(sites.end(), of_a_room.begin(), of_a_room.end());
  };
  add(kStartSites);
  add(kTrainingFaultSites);
  add(kLoaderFaultSites);
  add(kCheckpointFaultSites);
  add(kCommunicationFaultSites);
  add(kFileFaultSites);
  add(kEndSites);
  std::stable_sort(sites.begin(), sites.end(),
                   [](const FaultSite& a, const FaultSite& b) { return part_of(a) < part_of(b); });
  return sites;
}

}  // namespace

std::span<const FaultSite> fault_sites() {
  static const std::vector<FaultSite> sites = joined_sites();
  return sites;
}

}  // namespace trireme
