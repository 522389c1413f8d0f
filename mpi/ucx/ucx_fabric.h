// UcxFabric: UCX as this process uses it (a ucp_context). Shared by the groups that are split from
// one another, whose workers need it to their end; their threads may use it at the same time.
//
// What we set unless the user's UCX_* variable does:
//   RNDV_THRESH endless where all goes over TCP
//                       two ranks that send each other large messages by rendezvous take turns on
//                       their one connection (the answer to a request waits behind the data that
//                       goes the other way): 0.48 of a link of 1 Gbit/s each way, without 0.95;
//                       one way, the copy that it costs does not show (1.6 to 2.2 GiB/s over
//                       loopback, both).
//   KEEPALIVE_INTERVAL 0.5 s, endless where all goes over TCP
//                       how often UCX itself asks whether a peer is there. Over TCP its question,
//                       unanswered, counts as data in flight and keeps the kernel from asking.
//   TCP_KEEPIDLE 1 s, TCP_KEEPINTVL 1 s, TCP_KEEPCNT 2
//                       when the kernel gives up a silent host: after 3 s (whole seconds are all
//                       it takes; one probe alone would let one lost packet end the job).
//   TCP_MAX_POLL 1      sockets looked at in one round. With more of them UCX 1.13 may meet the
//                       event of a connection that an event before it closed, and ends the process
//                       (seen once in some hundred groups of 4 ranks: "conn_state != CLOSED").
// Measured with UCX 1.13 between network namespaces: a killed process is noticed within 0.1 s; a
// host whose cable is pulled within 3 s by the end that opened the connection, if it has nothing in
// flight. The other end, and data in flight, have the deadline: TCP_USER_TIMEOUT would cover them,
// but ends connections to processes that live and do not read for a while, too (zero window).
// net.ipv4.tcp_retries2 does not; it is the administrator's to set.
#pragma once

#include <memory>

#include <ucp/api/ucp.h>

#include "src/base/unique_handle.h"

namespace trireme {

class UcxFabric {
 public:
  // For about so many ranks. ConfigError where nothing of what the user asked for is here.
  explicit UcxFabric(int ranks);
  ucp_context_h context() const { return context_.get(); }

 private:
  struct ContextTraits {
    using Handle = ucp_context_h;
    static ucp_context_h none() { return nullptr; }
    static void close(ucp_context_h context) { ucp_cleanup(context); }
  };
  UniqueHandle<ContextTraits> context_;
};

}  // namespace trireme
