// Connection sends and receives frames over one TCP connection of a launch, in TLS or in plain,
// without blocking except where stated. Listener accepts connections. Each object is used by one
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/wire/frame.h"
#include "slurm/wire/tls_stream.h"
#include "src/base/file.h"

namespace trireme {

using Socket = UniqueHandle<FileDescriptorTraits>;

struct Peer {
  std::uint32_t address = 0;  // IPv4 address in network byte order
};

// The ports on which a listener may listen, for firewalls that admit only some.
struct PortRange {
  int first = 0;  // 0 for any free port
  int last = 0;
};
// Parses "A-B", or "A" for one port; an empty text means any free port. Throws ConfigError for
// anything else.
PortRange parse_port_range(std::string_view text);

class Connection {
 public:
  // Takes over a connected socket.
  explicit Connection(Socket socket, Peer peer = {});

  int fd() const { return socket_.get(); }
  // Encrypts everything from now on; called before anything is sent or received.
  void encrypt(const TlsContext& context, TlsSide side);
  // Returns whether the connection is encrypted and its handshake is not complete yet.
  bool is_opening() const { return tls_ && !tls_->is_open(); }
  // Returns bytes that only the two ends of an encrypted connection know; empty for a plain one.
  std::string binding() const { return tls_ ? tls_->binding() : ""; }
  // Returns who has connected to a listener; meaningless on the caller's side.
  const Peer& peer() const { return peer_; }
  void trust() { reader_.trust(); }
  // Returns the payloads that have arrived completely. Throws DataError for anything but frames.
  std::vector<std::string> receive();
  // Queues a payload and sends as much as the network accepts.
  void send(std::string_view payload);
  void flush();
  bool wants_to_write() const { return !out_.empty(); }
  // Returns whether the other side is gone or has stopped reading.
  bool closed() const { return closed_; }
  // Returns why it is closed, if for another reason than that the other side is gone.
  const Refusal& trouble() const { return trouble_; }
  // Waits for one payload, at most `seconds`. Returns nullopt after that or if the other side is
  // gone.
  std::optional<std::string> receive_one(double seconds);
  // Waits at most `seconds` until everything is sent. Returns whether it is.
  bool drain(double seconds);
  // Sends what is queued and then discards what arrives, until the other side closes or the time is
  // over. To close with unread data would discard the last messages sent.
  void part(double seconds);

 private:
  void read_some();
  // Reads at most `bytes` once. Returns false if nothing more can be read now.
  bool read_once(std::size_t bytes);
  // Return the number of bytes; 0 if the socket has to become ready first, and -1 if the connection
  // is over.
  std::ptrdiff_t take(char* to, std::size_t bytes);
  std::ptrdiff_t put(std::string_view from);
  void collect(std::vector<std::string>& payloads);

  Socket socket_;
  std::unique_ptr<TlsStream> tls_;  // null for a plain connection
  Refusal trouble_;
  Peer peer_;
  FrameReader reader_;
  std::string out_;
  std::vector<std::string> ready_;
  bool closed_ = false;
};

class Listener {
 public:
  // Listens on a free port of this address; "0.0.0.0" means all addresses. Throws IoError if no
  // port is free.
  explicit Listener(const std::string& address, PortRange ports = {});
  int fd() const { return socket_.get(); }
  int port() const { return port_; }
  // Returns nullopt if nobody is waiting, or if no descriptor or memory is left for a connection.
  std::optional<Connection> accept();
  // Returns whether the last accept() failed for lack of descriptors or memory.
  bool is_starved() const { return is_starved_; }

 private:
  bool listen_on(const std::string& address, int port);

  Socket socket_;
  bool is_starved_ = false;
  int port_ = 0;
};

// Connects to a host name or number, trying each of its addresses for `seconds`. Returns nullopt if
// none answers.
std::optional<Connection> connect_to(const std::string& address, int port, double seconds);

// Returns this host's IPv4 addresses, with loopback addresses last.
std::vector<std::string> own_addresses();

}  // namespace trireme
