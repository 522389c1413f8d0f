// Faults that TRIREME_SIM_FAULT injects, separated by commas:
//
//   CALL:NUMBER:ERROR        the NUMBERth call (from 1) of the function CALL in this process
//                            returns ERROR: the name or value of a cudaError_t, ncclResult_t or
//                            cublasStatus_t. Errors that a device does not survive are returned by
//                            every later call, too.
//   CALL:NUMBER:ERROR:later  the call succeeds, and the device fails when it gets there
//   cublasLtMatmul:NUMBER:wrong   the product lacks the last terms of its sums
//   cublasLtMatmulAlgoGetHeuristic:NUMBER:other   another algorithm is proposed, whose sums have
//                            other bits
//   cudnnHeuristic:NUMBER:other   cuDNN first proposes an engine that is not deterministic
//   cudnnHeuristic:NUMBER:1   cuDNN proposes no other one
//   cudnnHeuristic:NUMBER:wrong   cuDNN's engine asks for more workspace than usual
//   RANK:NUMBER:hang         the NUMBERth operation (from 0) of rank RANK in a communicator never
//                            starts
//   RANK:NUMBER:error        the same, and all ranks of the communicator see an asynchronous error
//
// After CALL and RANK there may be "@ATTEMPT" or "@ATTEMPT/WORLD_RANK": the fault then happens only
// in this attempt of `trireme launch` (1 without one), and only in the process of this rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sim {

struct Fault {
  int error = 0;  // 0: none
  bool later = false;
  bool wrong = false;
  bool other = false;
};

// Counts a call, and returns the fault to inject into it.
Fault take_fault(std::string_view call);

enum class RankFault { none, hang, error };
RankFault rank_fault(int rank, std::uint64_t operation);

// Replaces TRIREME_SIM_FAULT and starts to count anew: for tests.
void set_faults(const std::string& faults);

// Returns the value of a cudaError_t, ncclResult_t or cublasStatus_t with this name.
std::optional<int> error_value(std::string_view name);

}  // namespace sim
