// Connection: one TCP connection of a launch, frames in and out, without waiting. Listener: where
// they come in. One thread each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/wire/frame.h"
#include "src/base/file.h"

namespace trireme {

using Socket = UniqueHandle<FileDescriptorTraits>;

struct Peer {
  std::uint32_t address = 0;  // IPv4, in network byte order
};

// Where a listener may listen: a firewall may let no other ports through.
struct PortRange {
  int first = 0;  // 0: any free port
  int last = 0;
};
// "A-B", or "A" for one port. ConfigError for anything else; an empty text is any free port.
PortRange parse_port_range(std::string_view text);

class Connection {
 public:
  // Of a connected socket.
  explicit Connection(Socket socket, Peer peer = {});

  int fd() const { return socket_.get(); }
  // Who has connected to a listener; of no meaning at the caller's side.
  const Peer& peer() const { return peer_; }
  void trust() { reader_.trust(); }
  // What has come in whole. DataError for what is no frame.
  std::vector<std::string> receive();
  // Keeps what the network does not take yet.
  void send(std::string_view payload);
  void flush();
  bool wants_to_write() const { return !out_.empty(); }
  // The other side is gone, or takes nothing any more.
  bool closed() const { return closed_; }
  // Waits for one payload, at most so long; nothing where the time is over or the other side gone.
  std::optional<std::string> receive_one(double seconds);
  // Waits until all is sent, at most so long. Whether it is.
  bool drain(double seconds);
  // The last word: sends what is left and passes over what still comes, until the other side ends
  // or the time is over. Who just closes with something unread has its last words thrown away.
  void part(double seconds);

 private:
  void read_some();

  Socket socket_;
  Peer peer_;
  FrameReader reader_;
  std::string out_;
  std::vector<std::string> ready_;
  bool closed_ = false;
};

class Listener {
 public:
  // On a free port of this address; "0.0.0.0": of all addresses. IoError where no port is free.
  explicit Listener(const std::string& address, PortRange ports = {});
  int fd() const { return socket_.get(); }
  int port() const { return port_; }
  // Nothing where nobody waits, or where this process has no descriptor left for it.
  std::optional<Connection> accept();
  // Whether it was the latter.
  bool is_starved() const { return is_starved_; }

 private:
  bool listen_on(const std::string& address, int port);

  Socket socket_;
  bool is_starved_ = false;
  int port_ = 0;
};

// Names or numbers, tried in turn. Nothing where none answers within `seconds` each.
std::optional<Connection> connect_to(const std::string& address, int port, double seconds);

// How others may reach this host: its IPv4 addresses, those of loopback last.
std::vector<std::string> own_addresses();

}  // namespace trireme
