#include "mpi/network/netlink.h"

#include <cerrno>
#include <cstring>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/unique_handle.h"

namespace trireme {
namespace {

// The kernel fills at most 32 KiB of a dump at a time.
constexpr std::size_t kReceiveBytes = std::size_t{1} << 17;

struct SocketTraits {
  using Handle = int;
  static Handle none() { return -1; }
  static void close(Handle handle) { ::close(handle); }
};

[[noreturn]] void refuse() {
  throw DataError("the kernel's answer about the network is cut off or has impossible lengths");
}

template <class Value>
Value value_at(std::span<const std::byte> bytes) {
  Value value{};
  if (bytes.size() < sizeof value) {
    refuse();
  }
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; }

std::span<const std::byte> after(std::span<const std::byte> bytes, std::size_t used) {
  return bytes.subspan(std::min(aligned(used), bytes.size()));
}

bool is_last(std::span<const std::byte> messages, bool& failed) {
  bool last = false;
  while (messages.size() >= sizeof(nlmsghdr)) {
    const auto header = value_at<nlmsghdr>(messages);
    if (header.nlmsg_len < sizeof(nlmsghdr) || header.nlmsg_len > messages.size()) {
      refuse();
    }
    failed = failed || header.nlmsg_type == NLMSG_ERROR;
    last = last || failed || header.nlmsg_type == NLMSG_DONE;
    messages = after(messages, header.nlmsg_len);
  }
  return last;
}

}  // namespace

void for_each_message(
    std::span<const std::byte> messages, std::size_t fixed_bytes,
    const std::function<void(int, std::span<const std::byte>, std::span<const std::byte>)>& see) {
  while (!messages.empty()) {
    const auto header = value_at<nlmsghdr>(messages);
    if (header.nlmsg_type == NLMSG_DONE) {
      return;
    }
    if (header.nlmsg_len < sizeof(nlmsghdr) + fixed_bytes || header.nlmsg_len > messages.size()) {
      refuse();
    }
    const auto body = messages.subspan(sizeof(nlmsghdr), header.nlmsg_len - sizeof(nlmsghdr));
    see(header.nlmsg_type, body.first(fixed_bytes), after(body, fixed_bytes));
    messages = after(messages, header.nlmsg_len);
  }
}

void for_each_attribute(std::span<const std::byte> attributes,
                        const std::function<void(int, std::span<const std::byte>)>& see) {
  while (!attributes.empty()) {
    const auto header = value_at<rtattr>(attributes);
    if (header.rta_len < sizeof(rtattr) || header.rta_len > attributes.size()) {
      refuse();
    }
    see(header.rta_type & NLA_TYPE_MASK,
        attributes.subspan(sizeof(rtattr), header.rta_len - sizeof(rtattr)));
    attributes = after(attributes, header.rta_len);
  }
}

std::vector<std::byte> ask_kernel(int type, int flags, std::span<const std::byte> body) {
  const auto fail = [] { throw_errno(errno, "ask the kernel about the network over", "netlink"); };
  const UniqueHandle<SocketTraits> socket(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) {
    fail();
  }
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + body.size());
  header.nlmsg_type = static_cast<std::uint16_t>(type);
  header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  std::vector<std::byte> request(header.nlmsg_len);
  std::memcpy(request.data(), &header, sizeof header);
  std::memcpy(request.data() + sizeof header, body.data(), body.size());
  if (::send(socket.get(), request.data(), request.size(), 0) < 0) {
    fail();
  }
  std::vector<std::byte> answer;
  std::vector<std::byte> part(kReceiveBytes);
  for (bool last = false, failed = false; !last;) {
    const ssize_t bytes = ::recv(socket.get(), part.data(), part.size(), MSG_TRUNC);
    if (bytes < 0 && errno == EINTR) {
      continue;
    }
    if (bytes <= 0) {
      fail();
    }
    if (static_cast<std::size_t>(bytes) > part.size()) {
      refuse();
    }
    const auto received = std::span(part).first(static_cast<std::size_t>(bytes));
    last = is_last(received, failed) || (flags & NLM_F_DUMP) == 0;
    if (failed) {
      return {};
    }
    answer.insert(answer.end(), received.begin(), received.end());
  }
  return answer;
}

}  // namespace trireme
