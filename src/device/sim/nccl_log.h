// The log of NCCL's stand-in, which NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE control as
// they do NCCL's. Any thread.
#pragma once

#include <string>

namespace sim {

enum class NcclSubsystem { init, graph };

// Writes "HOST:PID:TID [DEVICE] NCCL INFO <message>" if the log has this subsystem.
void log_nccl(int device, NcclSubsystem subsystem, const std::string& message);

}  // namespace sim
