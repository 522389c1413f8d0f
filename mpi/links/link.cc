#include "mpi/links/link.h"

#include <array>

#include "src/base/error.h"

namespace trireme {
namespace {

struct KindNames {
  std::string_view name;
  std::string_view text;
};
constexpr std::array<KindNames, 9> kKinds = {{{"nvlink", "NVLink"},
                                              {"pcie", "PCIe between the GPUs"},
                                              {"p2p", "a direct path between the GPUs"},
                                              {"shm", "the host's memory"},
                                              {"infiniband", "InfiniBand"},
                                              {"roce", "RoCE"},
                                              {"rdma", "RDMA"},
                                              {"socket", "TCP sockets"},
                                              {"plugin", "a network plugin of NCCL"}}};

}  // namespace

std::string_view name_of(LinkKind kind) { return kKinds.at(static_cast<std::size_t>(kind)).name; }

LinkKind parse_link_kind(std::string_view name) {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i].name == name) {
      return static_cast<LinkKind>(i);
    }
  }
  throw DataError(fmt::format("unknown kind of link '{}'", name));
}

std::string link_text(LinkKind kind, bool gpu_direct) {
  return fmt::format("{}{}", kKinds.at(static_cast<std::size_t>(kind)).text,
                     !is_network(kind) || kind == LinkKind::socket ? ""
                     : gpu_direct                                  ? " with GPUDirect RDMA"
                                                                   : " without GPUDirect RDMA");
}

}  // namespace trireme
