// TlsStream encrypts what one connection sends, over a socket that does not block. The handshake
// happens by itself while the caller reads and writes. Used by one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "slurm/wire/tls_context.h"

struct ssl_st;

namespace trireme {

enum class TlsSide { caller, listener };

struct TlsStreamTraits {
  using Handle = ssl_st*;
  static Handle none() { return nullptr; }
  static void close(Handle stream);
};

class TlsStream {
 public:
  // Uses the socket, which the caller keeps open, and none of the context after the stream's end.
  TlsStream(const TlsContext& context, TlsSide side, int socket);

  // Return the number of bytes read or written; 0 if the socket has to become ready first, and -1
  // if the connection is over.
  std::ptrdiff_t read(char* to, std::size_t bytes);
  std::ptrdiff_t write(std::string_view from);
  // Returns how many decrypted bytes wait to be read, which poll(2) on the socket does not show.
  std::size_t pending() const;
  // Tells the other side that nothing follows.
  void close_write();
  // Returns whether the handshake is complete, so that the other side is authenticated.
  bool is_open() const { return is_open_; }
  // Returns bytes that only the two ends of this connection know (RFC 9266), for proofs that are
  // worth nothing on another connection; empty before the handshake is complete.
  std::string binding() const;
  // Returns why the connection is over, if for another reason than that the other side closed it.
  const Refusal& trouble() const { return trouble_; }

 private:
  // Judges the result of an operation: what read() and write() return if it is not above 0.
  std::ptrdiff_t judge(int result);
  void note_open();
  Refusal reason() const;

  UniqueHandle<TlsStreamTraits> stream_;
  bool uses_certificates_;
  bool is_open_ = false;
  Refusal trouble_;
};

}  // namespace trireme
