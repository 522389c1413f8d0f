// UcxFabric is UCX as configured for this process (a ucp_context). The groups that are split from
// one another share it, and their workers need it until they end; their threads may use it at the
// same time.
//
// It sets the following unless the user's UCX_* variable does:
//   RNDV_THRESH infinite if all goes over TCP
//                       Two ranks that send each other large messages by rendezvous take turns on
//                       their one connection, because the answer to a request waits behind the data
//                       that goes the other way: they reach 0.48 of a link of 1 Gbit/s each way,
//                       and 0.95 without rendezvous. One way, the extra copy costs nothing
//                       measurable (1.6 to 2.2 GiB/s over loopback, both).
//   KEEPALIVE_INTERVAL 0.5 s, infinite if all goes over TCP
//                       Interval at which UCX itself probes its peers. Over TCP, an unanswered
//                       probe counts as data in flight and keeps the kernel from probing.
//   TCP_KEEPIDLE 1 s, TCP_KEEPINTVL 1 s, TCP_KEEPCNT 2
//                       The kernel gives up a silent host after 3 s. It takes whole seconds only;
//                       with a single probe, one lost packet could end the job.
//   TCP_MAX_POLL 1      Number of sockets handled per round. If it is larger, UCX 1.13 may process
//                       an event of a connection that an earlier event has closed, and then ends
//                       the process (seen once in some hundred groups of 4 ranks: "conn_state !=
//                       CLOSED").
//   TCP_TX_SEG_SIZE 64k, TCP_RX_SEG_SIZE 128k
//                       Larger segments need fewer rounds of send, wake-up and copy per message.
// Measured with UCX 1.13 between network namespaces: a killed process is noticed within 0.1 s. A
// host whose cable is pulled is noticed within 3 s by the end that opened the connection, if it has
// nothing in flight. Data in flight, and the other end, have only the deadline: TCP_USER_TIMEOUT
// would cover them, but it also ends connections to processes that are alive and do not read for a
// while (zero window). net.ipv4.tcp_retries2 would not, but only the administrator can set it.
#pragma once

#include <memory>

#include <ucp/api/ucp.h>

#include "src/base/unique_handle.h"

namespace trireme {

class UcxFabric {
 public:
  // `ranks` is an estimate of the number of peers. Throws ConfigError if this host has nothing of
  // what the user selected.
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
