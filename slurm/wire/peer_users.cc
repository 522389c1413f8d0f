#include "slurm/wire/peer_users.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace trireme {
namespace {

struct Request {
  nlmsghdr head;
  inet_diag_req_v2 body;
};

// Describes the connection from the other end, whose source is its own address and port.
bool describe_other_end(int socket, inet_diag_sockid& id) {
  sockaddr_in own{};
  sockaddr_in other{};
  socklen_t own_bytes = sizeof(own);
  socklen_t other_bytes = sizeof(other);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_bytes) != 0 ||
      ::getpeername(socket, reinterpret_cast<sockaddr*>(&other), &other_bytes) != 0) {
    return false;
  }
  id.idiag_sport = other.sin_port;
  id.idiag_dport = own.sin_port;
  id.idiag_src[0] = other.sin_addr.s_addr;
  id.idiag_dst[0] = own.sin_addr.s_addr;
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return true;
}

}  // namespace

PeerUsers::PeerUsers()
    : kernel_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG)) {}

std::optional<uid_t> PeerUsers::user_of(int connected_socket) {
  Request request{};
  request.head.nlmsg_len = sizeof(request);
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.head.nlmsg_seq = ++asked_;
  request.body.sdiag_family = AF_INET;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = UINT32_MAX;
  if (!kernel_ || !describe_other_end(connected_socket, request.body.id) ||
      ::send(kernel_.get(), &request, sizeof(request), 0) != sizeof(request)) {
    return std::nullopt;
  }
  struct Answer {
    nlmsghdr head;
    inet_diag_msg body;
  };
  // The kernel answers before send() returns. Answers to earlier questions are skipped.
  std::array<char, 1024> bytes{};
  for (ssize_t got = 0; (got = ::recv(kernel_.get(), bytes.data(), bytes.size(), 0)) > 0;) {
    Answer answer{};
    std::memcpy(&answer, bytes.data(), std::min(sizeof(answer), static_cast<std::size_t>(got)));
    if (answer.head.nlmsg_seq == asked_) {
      const bool is_known = answer.head.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
                            static_cast<std::size_t>(got) >= sizeof(answer);
      return is_known ? std::optional<uid_t>(answer.body.idiag_uid) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace trireme
