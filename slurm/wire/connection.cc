#include "slurm/wire/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

// A connection with this many unsent bytes counts as closed.
constexpr std::size_t kMostUnsentBytes = std::size_t{64} << 20;

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

Clock::time_point in(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void make_ready(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

PortRange parse_port_range(std::string_view text) {
  if (text.empty()) {
    return {};
  }
  constexpr int kMostPort = 65535;
  const char* const end = text.data() + text.size();
  PortRange range;
  auto read = std::from_chars(text.data(), end, range.first);
  range.last = range.first;
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-') {
    read = std::from_chars(read.ptr + 1, end, range.last);
  }
  if (read.ec != std::errc() || read.ptr != end || range.first < 1 || range.last < range.first ||
      range.last > kMostPort) {
    throw ConfigError(fmt::format(
        "'{}' is not a range of ports: expected FIRST-LAST, as in 47000-47099 (1 to 65535)", text));
  }
  return range;
}

Connection::Connection(Socket socket, Peer peer) : socket_(std::move(socket)), peer_(peer) {
  make_ready(fd());
}

void Connection::encrypt(const TlsContext& context, TlsSide side) {
  tls_ = std::make_unique<TlsStream>(context, side, fd());
}

std::ptrdiff_t Connection::take(char* to, std::size_t bytes) {
  if (tls_) {
    return tls_->read(to, bytes);
  }
  while (true) {
    const ssize_t got = ::recv(fd(), to, bytes, 0);
    if (got > 0) {
      return got;
    }
    if (got == 0 || errno != EINTR) {
      return got < 0 && errno == EAGAIN ? 0 : -1;
    }
  }
}

std::ptrdiff_t Connection::put(std::string_view from) {
  if (tls_) {
    return tls_->write(from);
  }
  while (true) {
    const ssize_t done = ::send(fd(), from.data(), from.size(), MSG_NOSIGNAL);
    if (done >= 0 || errno != EINTR) {
      return done < 0 && errno == EAGAIN ? 0 : done;
    }
  }
}

bool Connection::read_once(std::size_t bytes) {
  std::array<char, 64 << 10> chunk;
  const std::ptrdiff_t got = take(chunk.data(), std::min(chunk.size(), bytes));
  if (got < 0) {
    closed_ = true;
    trouble_ = tls_ ? tls_->trouble() : Refusal{};
  } else if (got > 0) {
    reader_.feed({chunk.data(), static_cast<std::size_t>(got)});
  }
  return got > 0;
}

void Connection::read_some() {
  // Limit the reads per call, so that a flood on one connection does not starve the others.
  constexpr int kMostReads = 64;
  for (int reads = 0; reads < kMostReads && !closed_ && reader_.room() > 0; ++reads) {
    if (!read_once(reader_.room())) {
      return;
    }
  }
}

void Connection::collect(std::vector<std::string>& payloads) {
  while (auto payload = reader_.next()) {
    payloads.push_back(std::move(*payload));
  }
}

std::vector<std::string> Connection::receive() {
  read_some();
  std::vector<std::string> payloads = std::exchange(ready_, {});
  collect(payloads);
  // The rest of a decrypted record is not in the socket any more, so poll() would not report it.
  while (tls_ && !closed_ && tls_->pending() > 0) {
    read_once(std::min(tls_->pending(), reader_.room()));
    collect(payloads);
  }
  if (wants_to_write() && !is_opening()) {
    flush();  // what was queued before the handshake was complete
  }
  return payloads;
}

void Connection::send(std::string_view payload) {
  out_ += frame_of(payload);
  flush();
}

void Connection::flush() {
  std::size_t done = 0;
  while (!closed_ && done < out_.size()) {
    const std::ptrdiff_t sent = put(std::string_view(out_).substr(done));
    if (sent < 0) {
      closed_ = true;
      trouble_ = tls_ ? tls_->trouble() : Refusal{};
    } else if (sent == 0) {
      break;
    }
    done += static_cast<std::size_t>(std::max<std::ptrdiff_t>(sent, 0));
  }
  out_.erase(0, done);
  closed_ = closed_ || out_.size() > kMostUnsentBytes;
}

std::optional<std::string> Connection::receive_one(double seconds) {
  const Clock::time_point end = in(seconds);
  while (true) {
    if (ready_.empty()) {
      ready_ = receive();
    }
    if (!ready_.empty()) {
      std::string payload = std::move(ready_.front());
      ready_.erase(ready_.begin());
      return payload;
    }
    pollfd waiting{fd(), POLLIN, 0};
    if (closed_ || milliseconds_until(end) == 0 ||
        ::poll(&waiting, 1, milliseconds_until(end)) == 0) {
      return std::nullopt;
    }
  }
}

bool Connection::drain(double seconds) {
  const Clock::time_point end = in(seconds);
  flush();
  while (!closed_ && !out_.empty() && milliseconds_until(end) > 0) {
    pollfd waiting{fd(), POLLOUT, 0};
    ::poll(&waiting, 1, milliseconds_until(end));
    flush();
  }
  return !closed_ && out_.empty();
}

void Connection::part(double seconds) {
  const Clock::time_point end = in(seconds);
  if (!drain(seconds)) {
    return;
  }
  if (tls_) {
    tls_->close_write();
  }
  if (::shutdown(fd(), SHUT_WR) != 0) {
    return;
  }
  std::array<char, 64 * 1024> passed_over;
  while (milliseconds_until(end) > 0) {
    pollfd waiting{fd(), POLLIN, 0};
    ::poll(&waiting, 1, milliseconds_until(end));
    const ssize_t got = ::recv(fd(), passed_over.data(), passed_over.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      return;
    }
  }
}

bool Listener::listen_on(const std::string& address, int port) {
  socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t bytes = sizeof(place);
  // A port of the range may still have closed connections of an earlier launch in TIME_WAIT.
  const int again = port > 0 ? 1 : 0;
  ::setsockopt(fd(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof(again));
  if (!socket_ || ::inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1 ||
      ::bind(fd(), reinterpret_cast<sockaddr*>(&place), bytes) != 0 ||
      ::listen(fd(), SOMAXCONN) != 0 ||
      ::getsockname(fd(), reinterpret_cast<sockaddr*>(&place), &bytes) != 0) {
    return false;
  }
  port_ = ntohs(place.sin_port);
  return true;
}

Listener::Listener(const std::string& address, PortRange ports) {
  for (int port = ports.first; port <= ports.last; ++port) {
    if (listen_on(address, port)) {
      return;
    }
    if (errno != EADDRINUSE && errno != EACCES) {
      break;
    }
  }
  if (ports.first > 0 && (errno == EADDRINUSE || errno == EACCES)) {
    throw IoError(
        fmt::format("none of the ports {} to {} of {} is free and allowed for this user: give a "
                    "larger range with --ports",
                    ports.first, ports.last, address));
  }
  throw_errno(errno, "listen on", address);
}

std::optional<Connection> Listener::accept() {
  sockaddr_in peer{};
  socklen_t bytes = sizeof(peer);
  Socket socket(
      ::accept4(fd(), reinterpret_cast<sockaddr*>(&peer), &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
  is_starved_ =
      !socket && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
  if (!socket) {
    return std::nullopt;
  }
  return Connection(std::move(socket), Peer{peer.sin_addr.s_addr});
}

std::optional<Connection> connect_to(const std::string& address, int port, double seconds) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), fmt::format("{}", port).c_str(), &hints, &found) != 0) {
    return std::nullopt;
  }
  std::optional<Connection> connection;
  for (const addrinfo* place = found; place != nullptr && !connection; place = place->ai_next) {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int code = ::connect(socket.get(), place->ai_addr, place->ai_addrlen) == 0 ? 0 : errno;
    pollfd waiting{socket.get(), POLLOUT, 0};
    socklen_t bytes = sizeof(code);
    if (code == EINPROGRESS && ::poll(&waiting, 1, milliseconds_until(in(seconds))) > 0) {
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &bytes);
    }
    if (code == 0) {
      connection.emplace(std::move(socket));
    }
  }
  ::freeaddrinfo(found);
  return connection;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) == 0) {
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
      std::array<char, INET_ADDRSTRLEN> text{};
      if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET &&
          (one->ifa_flags & IFF_UP) != 0) {
        const auto* place = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
        ::inet_ntop(AF_INET, &place->sin_addr, text.data(), text.size());
        addresses.emplace_back(text.data());
      }
    }
    ::freeifaddrs(all);
  }
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const std::string& a) { return !a.starts_with("127."); });
  return addresses;
}

}  // namespace trireme
