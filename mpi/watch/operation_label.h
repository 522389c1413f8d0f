// OperationLabel identifies and describes an operation of a group. Collective operations are
// numbered per group, equally on every rank; sends and receives share a separate count that each
// rank keeps for itself. A plain value.
#pragma once

#include <string>

#include "mpi/operation_request.h"

namespace trireme {

// For a collective operation, all ranks of the group must have labels that agree(); otherwise they
// are out of step.
struct OperationLabel {
  OperationKind kind = OperationKind::barrier;
  DType dtype = DType::u8;
  SumOrder order = SumOrder::tree;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = 0;  // of a broadcast; the other rank of a send or recv
  std::int64_t number = 0;
  // Size of the whole buffer. For an all_to_all, the size of what this rank sends.
  std::int64_t bytes = 0;

  // Returns "all_reduce #4711 (12.6 MiB)".
  std::string text() const;
  // Returns "all_reduce #4711 (12.6 MiB, f32, sum)" or "barrier #7", for errors that compare two
  // operations.
  std::string full_text() const;
};

// Returns the label of an operation that is requested, with number 0. order: that of the group.
OperationLabel label_of(const OperationRequest& request, SumOrder order);

// Returns whether ranks with these labels run the same operation. The sizes of all_to_alls may
// differ.
bool agree(const OperationLabel& a, const OperationLabel& b);

}  // namespace trireme
