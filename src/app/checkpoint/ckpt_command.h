// `trireme ckpt ls|show|verify|digest|export|prune` manages checkpoints, without MPI.
#pragma once

#include "src/app/command/audit_trail.h"
#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

// exit_code: set by a command that succeeds but reports damage. audit: learns what is deleted. Both
// must outlive the parse. access: says what the policy of the site allows.
void add_ckpt_command(CommandLine& app, int& exit_code, AuditTrail& audit,
                      const AccessSource& access);

}  // namespace trireme
