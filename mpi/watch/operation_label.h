// OperationLabel: which operation of its group it is. Collective operations are numbered per group,
// the same on every rank; sends and receives apart, by each rank for itself. Plain values.
#pragma once

#include <string>

#include "mpi/operation_request.h"

namespace trireme {

// What a collective operation is: the same on all ranks of the group, or they are out of step.
struct OperationLabel {
  OperationKind kind = OperationKind::barrier;
  DType dtype = DType::u8;
  SumOrder order = SumOrder::tree;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = 0;  // of a broadcast; of a send or recv, the other rank
  std::int64_t number = 0;
  // Of the whole buffer; of an all_to_all, whose blocks differ, of what this rank sends.
  std::int64_t bytes = 0;

  // "all_reduce #4711 (12.6 MiB)"
  std::string text() const;
  // "all_reduce #4711 (12.6 MiB, f32, sum)", "barrier #7": for an error that sets two against each
  // other.
  std::string full_text() const;
};

// Whether ranks that hold these labels run one and the same operation.
bool agree(const OperationLabel& a, const OperationLabel& b);

}  // namespace trireme
