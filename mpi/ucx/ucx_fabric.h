// UcxFabric: UCX as this process uses it (a ucp_context). Shared by the groups that are split from
// one another, whose workers need it to their end; their threads may use it at the same time.
//
// What we set unless the user's UCX_* variable does:
//   KEEPALIVE_INTERVAL 0.5 s          how often the processes of the same host are looked at
//   TCP_KEEPIDLE 1 s, _KEEPINTVL 1 s, _KEEPCNT 2
//                                     a silent host is given up after 3 s. UCX hands whole seconds
//                                     to the kernel; with one probe alone (2 s) a single lost
//                                     packet on an idle link would end the job.
// TCP_USER_TIMEOUT, which would cover data in flight too, ends connections to a process that is
// alive but does not read for a while (zero window); net.ipv4.tcp_retries2 does not, and is the
// administrator's to set.
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
