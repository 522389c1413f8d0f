// `trireme ckpt ls|show|verify|digest|prune` manages checkpoints, without MPI.
#pragma once

#include "src/app/command/audit_trail.h"
#include "src/app/command/command_line.h"

namespace trireme {

// exit_code: set by a command that succeeds but reports damage. audit: learns what is deleted. Both
// must outlive the parse.
void add_ckpt_command(CommandLine& app, int& exit_code, AuditTrail& audit);

}  // namespace trireme
