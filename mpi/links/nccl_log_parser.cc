#include "mpi/links/nccl_log_parser.h"

#include <charconv>
#include <optional>
#include <set>

namespace trireme {
namespace {

constexpr std::string_view kInfo = " NCCL INFO ";
constexpr std::string_view kWarning = " NCCL WARN ";
constexpr std::size_t kMostWarningBytes = 400;

// Cursor reads a line from its beginning to its end.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }
  bool skip(std::string_view words) {
    const bool found = rest_.starts_with(words);
    rest_.remove_prefix(found ? words.size() : 0);
    return found;
  }
  // Skips everything up to and including the words.
  bool skip_past(std::string_view words) {
    const std::size_t at = rest_.find(words);
    rest_.remove_prefix(at == std::string_view::npos ? 0 : at + words.size());
    return at != std::string_view::npos;
  }
  // Reads a whole number that is not negative.
  std::optional<int> number() {
    int value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) {
      return std::nullopt;
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

 private:
  std::string_view rest_;
};

struct Channel {
  int from = 0;
  int to = 0;
  std::string_view transport;  // for example "NET/IB/0/GDRDMA"
};

// Reads what follows "Channel ": "00/0 : 7[7] -> 8[0] [send] via NET/IB/0".
std::optional<Channel> read_channel(std::string_view text) {
  Cursor at(text);
  if (!at.number() || (at.skip("/") && !at.number()) || !at.skip(" : ")) {
    return std::nullopt;
  }
  const std::optional<int> from = at.number();
  if (!from || !at.skip("[") || !at.skip_past("] -> ")) {
    return std::nullopt;
  }
  const std::optional<int> to = at.number();
  if (!to || !at.skip("[") || !at.skip_past("]")) {
    return std::nullopt;
  }
  if (!at.skip(" [send]")) {
    (void)at.skip(" [receive]");
  }
  return at.skip(" via ") ? std::optional(Channel{*from, *to, at.rest()}) : std::nullopt;
}

// Returns how two GPUs of a host are connected whose path is of this type (NCCL's graph/topo.cc).
LinkKind kind_of_path(std::string_view type) {
  if (type == "NVL" || type == "NVB") {
    return LinkKind::nvlink;
  }
  for (const std::string_view bus : {"C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}) {
    if (type == bus) {
      return LinkKind::pcie;
    }
  }
  return LinkKind::p2p;
}

// Reads the path type in "Pattern 4, ..., type NVL/PIX, sameChannels 1".
std::optional<LinkKind> read_ring(std::string_view message) {
  Cursor at(message);
  if (!at.skip("Pattern 4, ") || !at.skip_past(", type ")) {
    return std::nullopt;
  }
  return kind_of_path(at.rest().substr(0, at.rest().find('/')));
}

std::optional<int> read_nvls(std::string_view message) {
  const std::size_t end = message.find(" nvls channels");
  if (end == std::string_view::npos || message.find(" coll channels, ") == std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t before = message.rfind(' ', end - (end > 0 ? 1 : 0));
  return Cursor(message.substr(before == std::string_view::npos ? 0 : before + 1)).number();
}

// Calls use(line) for each line, without its end.
template <class Use>
void for_each_line(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    use(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace

// Reads what follows "NET/IB : Using": " [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ...".
void NcclLogParser::read_ports(std::string_view text) {
  ports_.clear();
  Cursor at(text.substr(0, text.find(';')));
  while (at.skip_past(" [")) {
    const std::optional<int> number = at.number();
    if (!number || !at.skip("]")) {
      continue;
    }
    const std::string_view port = at.rest().substr(0, at.rest().find(' '));
    ports_[*number] = port.ends_with("/IB")     ? LinkKind::infiniband
                      : port.ends_with("/RoCE") ? LinkKind::roce
                                                : LinkKind::rdma;
  }
}

// Reads what follows "NET/": "IB/0(3)/GDRDMA/Shared". Names of plugins can contain blanks.
LinkKind NcclLogParser::network_kind(std::string_view transport) const {
  const std::size_t slash = transport.find('/');
  const std::string_view name = transport.substr(0, slash);
  if (name == "Socket") {
    return LinkKind::socket;
  }
  if (!name.starts_with("IB")) {
    return LinkKind::plugin;
  }
  const auto device =
      slash == std::string_view::npos ? std::nullopt : Cursor(transport.substr(slash + 1)).number();
  const auto port = device ? ports_.find(*device) : ports_.end();
  return port == ports_.end() ? LinkKind::rdma : port->second;
}

NcclConnections NcclLogParser::parse(std::string_view text) {
  NcclConnections found;
  std::set<Link> links;
  LinkKind path = LinkKind::p2p;
  const auto take_channel = [&](const Channel& channel) {
    Cursor transport(channel.transport);
    Link link{channel.from, channel.to, LinkKind::p2p, false};
    if (transport.skip("NET/")) {
      link.gpu_direct = transport.rest().find("/GDRDMA") != std::string_view::npos;
      link.kind = network_kind(transport.rest());
    } else if (transport.skip("SHM")) {
      link.kind = LinkKind::shm;
    } else if (transport.skip("P2P/")) {
      link.kind = transport.skip("MNNVL") ? LinkKind::nvlink : path;
    } else {
      return;
    }
    links.insert(link);
  };
  for_each_line(text, [&](std::string_view line) {
    Cursor at(line);
    if (at.skip_past(kWarning)) {
      if (found.warnings.size() < kMostWarnings) {
        found.warnings.emplace_back(at.rest().substr(0, kMostWarningBytes));
      }
    } else if (!at.skip_past(kInfo)) {
      return;
    } else if (at.skip("Channel ")) {
      if (const auto channel = read_channel(at.rest())) {
        take_channel(*channel);
      }
    } else if (at.skip("NET/IB : Using")) {
      read_ports(at.rest());
    } else if (const auto ring = read_ring(at.rest())) {
      path = *ring;
    } else if (const auto nvls = read_nvls(at.rest())) {
      found.nvls_channels = *nvls;
    }
  });
  found.links.assign(links.begin(), links.end());
  return found;
}

}  // namespace trireme
