// What UCX says goes through here: its status codes become errors, and its own complaints are kept
// for them instead of being printed, unless the user set UCX_LOG_LEVEL. Safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include <ucp/api/ucp.h>

namespace trireme {

// CommError "ucp_worker_create failed: No such device (...)".
void ucx_check(ucs_status_t status, std::string_view call);

// From now on warnings and errors of UCX are kept. May be called again.
void keep_ucx_messages();
// The newest that was kept, in brackets after a blank: " (UCX says: ...)"; "" where there is none.
std::string last_ucx_message();

}  // namespace trireme
