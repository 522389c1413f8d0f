// Writes the log of NCCL's stand-in. NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE control it
// as they control NCCL's. Any thread.
#pragma once

#include <string>

namespace sim {

enum class NcclSubsystem { init, graph };

// Writes "HOST:PID:TID [DEVICE] NCCL INFO <message>" if the log has this subsystem.
void log_nccl(int device, NcclSubsystem subsystem, const std::string& message);

}  // namespace sim
