// OperationRequest: one call of a Communicator, as its implementations get it. A plain value;
// views, counts and stream are the caller's.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/device/stream.h"

namespace trireme {

enum class ReduceOp { sum, max, min };

// In which order the ranks' values are added.
enum class SumOrder : std::uint8_t {
  tree,  // the canonical tree: the same bits over every transport
  any    // whatever is fastest
};

enum class OperationKind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  barrier,
  send,
  recv
};

std::string_view name_of(OperationKind kind);
std::string_view name_of(ReduceOp op);
constexpr bool is_collective(OperationKind kind) { return kind < OperationKind::send; }

// Longest tag of a send or recv.
inline constexpr int kMaxUserTag = 16382;

struct OperationRequest {
  OperationKind kind = OperationKind::barrier;
  ConstView from = {};  // what this rank gives
  View into = {};       // what it gets; the same memory for an operation in place
  ReduceOp op = ReduceOp::sum;
  int peer = 0;  // the root of a broadcast, or the other end of a send or recv
  int tag = 0;
  std::span<const std::int64_t> send_counts = {};  // of an all_to_all
  std::span<const std::int64_t> recv_counts = {};
  Stream* after = nullptr;  // null: the buffers are ready now
};

}  // namespace trireme
