// Converts UCX's status codes to errors. UCX's own warnings and errors are kept for their texts
// instead of being printed, unless the user set UCX_LOG_LEVEL. Safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include <ucp/api/ucp.h>

namespace trireme {

// Throws CommError "ucp_worker_create failed: No such device (...)" unless `status` is UCS_OK.
void ucx_check(ucs_status_t status, std::string_view call);

// From the first call on, warnings and errors of UCX are kept. Later calls do nothing.
void keep_ucx_messages();
// Returns the last message that was kept, as " (UCX says: ...)", or "" if there is none.
std::string last_ucx_message();

}  // namespace trireme
