// A Link is the hardware over which two ranks exchange the tensors of a group, as NCCL reports it.
// Plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trireme {

enum class LinkKind : std::uint8_t {
  nvlink,      // from GPU to GPU over NVLink
  pcie,        // from GPU to GPU over PCIe or the bus between processors
  p2p,         // from GPU to GPU; NCCL's log does not say over what
  shm,         // through the memory of the host
  infiniband,  // RDMA
  roce,        // RDMA over Ethernet
  rdma,        // RDMA; NCCL's log does not say which
  socket,      // TCP
  plugin,      // a network plugin of NCCL
};

struct Link {
  int from = 0;  // ranks
  int to = 0;
  LinkKind kind = LinkKind::p2p;
  bool gpu_direct = false;  // the network adapter accesses the memory of the GPU without the host
  friend auto operator<=>(const Link&, const Link&) = default;
};

// Returns "nvlink", "pcie", ...
std::string_view name_of(LinkKind kind);
// Throws DataError for a name that name_of() does not return.
LinkKind parse_link_kind(std::string_view name);
// Returns whether the link goes through the network.
constexpr bool is_network(LinkKind kind) { return kind >= LinkKind::infiniband; }
// Returns, for example, "InfiniBand with GPUDirect RDMA".
std::string link_text(LinkKind kind, bool gpu_direct);

}  // namespace trireme
