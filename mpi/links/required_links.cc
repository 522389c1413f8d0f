#include "mpi/links/required_links.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "src/base/units.h"

namespace trireme {
namespace {

struct Requirement {
  std::string_view word;
  bool (*concerns)(const Link& link, bool in_host);
  bool (*holds)(const Link& link);
  std::string_view advice;
};

bool crosses_network(const Link& link, bool in_host) { return !in_host || is_network(link.kind); }
bool stays_in_host(const Link&, bool in_host) { return in_host; }

// NVLink connects hosts, too. A plugin of NCCL is known to use RDMA if the adapter accesses the
// memory of the GPU.
bool is_rdma(const Link& link) {
  return link.kind == LinkKind::infiniband || link.kind == LinkKind::roce ||
         link.kind == LinkKind::rdma || link.kind == LinkKind::nvlink || link.gpu_direct;
}
bool is_gpu_direct(const Link& link) { return link.gpu_direct || link.kind == LinkKind::nvlink; }
bool is_nvlink(const Link& link) { return link.kind == LinkKind::nvlink; }

constexpr std::array<Requirement, 3> kRequirements = {
    {{"rdma", crosses_network, is_rdma,
      "see on these hosts whether ibv_devinfo lists active ports, and whether NCCL_IB_DISABLE, "
      "NCCL_IB_HCA or NCCL_NET exclude them"},
     {"gpudirect", crosses_network, is_gpu_direct,
      "load the module nvidia_peermem or use a driver with DMA-BUF on these hosts, and see whether "
      "NCCL_NET_GDR_LEVEL excludes it"},
     {"nvlink", stays_in_host, is_nvlink,
      "see what nvidia-smi topo -m and nvidia-smi nvlink --status show on these hosts, and whether "
      "NCCL_P2P_DISABLE or NCCL_P2P_LEVEL exclude it"}}};

// Tally counts the links of a rank that a requirement concerns.
struct Tally {
  std::int64_t all = 0;
  std::int64_t unfit = 0;
};

std::optional<int> rank_at_fault(const std::vector<Tally>& tallies) {
  const auto is_bad = [](const Tally& tally) { return tally.all > 0 && tally.all == tally.unfit; };
  const auto first = std::find_if(tallies.begin(), tallies.end(), is_bad);
  const bool others_are_fit = std::any_of(
      tallies.begin(), tallies.end(), [](const Tally& tally) { return tally.unfit < tally.all; });
  return first != tallies.end() && others_are_fit
             ? std::optional(static_cast<int>(first - tallies.begin()))
             : std::nullopt;
}

std::optional<LinkFault> find_fault(const Requirement& requirement,
                                    const std::vector<LinkBook>& books,
                                    const GroupMembers& members) {
  std::set<GroupLink> links;
  for (const LinkBook& book : books) {
    links.insert(book.links.begin(), book.links.end());
  }
  std::vector<Tally> tallies(static_cast<std::size_t>(members.size()));
  const GroupLink* example = nullptr;
  std::int64_t unfit = 0;
  for (const GroupLink& each : links) {
    const auto [from, to, kind, gpu_direct] = each.link;
    if (from >= members.size() || to >= members.size() ||
        !requirement.concerns(each.link, members.host(from) == members.host(to))) {
      continue;
    }
    const bool holds = requirement.holds(each.link);
    for (const int rank : {from, to}) {
      ++tallies[static_cast<std::size_t>(rank)].all;
      tallies[static_cast<std::size_t>(rank)].unfit += holds ? 0 : 1;
    }
    unfit += holds ? 0 : 1;
    example = example == nullptr && !holds ? &each : example;
  }
  if (example == nullptr) {
    return std::nullopt;
  }
  const std::optional<int> culprit = rank_at_fault(tallies);
  return LinkFault{
      fmt::format(
          "comm.require: {} does not hold: {} reaches {} over {} (group {}{}){}: {}; or remove "
          "comm.require",
          requirement.word, members.describe(example->link.from),
          members.describe(example->link.to),
          link_text(example->link.kind, example->link.gpu_direct), example->group,
          unfit == 1 ? "" : fmt::format(", and {} like it", counted(unfit - 1, "more link")),
          culprit ? fmt::format("; no link of {} is fit", members.describe(*culprit)) : "",
          requirement.advice),
      culprit};
}

// Every rank exchanges data with some other one.
std::optional<int> rank_without_links(const std::vector<LinkBook>& books,
                                      const GroupMembers& members) {
  std::vector<bool> has_links(static_cast<std::size_t>(members.size()), members.size() == 1);
  for (const LinkBook& book : books) {
    for (const GroupLink& each : book.links) {
      for (const int rank : {each.link.from, each.link.to}) {
        if (rank < members.size()) {
          has_links[static_cast<std::size_t>(rank)] = true;
        }
      }
    }
  }
  const auto first = std::find(has_links.begin(), has_links.end(), false);
  return first == has_links.end() ? std::nullopt
                                  : std::optional(static_cast<int>(first - has_links.begin()));
}

}  // namespace

std::vector<std::string> link_requirements() { return {"any", "rdma", "gpudirect", "nvlink"}; }

std::optional<LinkFault> find_link_fault(const std::vector<std::string>& required,
                                         const std::vector<LinkBook>& books,
                                         const GroupMembers& members) {
  for (const Requirement& requirement : kRequirements) {
    if (std::find(required.begin(), required.end(), requirement.word) == required.end()) {
      continue;
    }
    for (std::size_t rank = 0; rank < books.size(); ++rank) {
      if (!books[rank].trouble.empty()) {
        return LinkFault{fmt::format("comm.require: {} cannot be checked: {}: {}", requirement.word,
                                     members.describe(static_cast<int>(rank)), books[rank].trouble),
                         std::nullopt};
      }
    }
    if (auto fault = find_fault(requirement, books, members)) {
      return fault;
    }
    if (const auto rank = rank_without_links(books, members)) {
      return LinkFault{
          fmt::format("comm.require: {} cannot be checked: the log of NCCL names no link of {}, "
                      "perhaps because this version of NCCL writes it in another form: use "
                      "another version, or remove comm.require",
                      requirement.word, members.describe(*rank)),
          std::nullopt};
    }
  }
  return std::nullopt;
}

}  // namespace trireme
