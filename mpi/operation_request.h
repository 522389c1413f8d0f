// OperationRequest is one call of a Communicator, in the form in which implementations get it. A
// plain value; the memory of views and counts and the stream belong to the caller.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/device/stream.h"

namespace trireme {

enum class ReduceOp { sum, max, min };

// Says in which order the ranks' values are added.
enum class SumOrder : std::uint8_t {
  tree,  // the canonical tree, which gives the same bits on every transport
  any    // the order that is fastest
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

// Largest tag of a send or recv.
inline constexpr int kMaxUserTag = 16382;
// The tags are divided into lanes of equal length. Some implementations have no tags and keep the
// order of messages within a lane: there, messages of one lane between two ranks must be received
// in the order in which they are sent.
inline constexpr int kTagLanes = 3;
inline constexpr int kTagsPerLane = (kMaxUserTag + 1) / kTagLanes;
constexpr int lane_of(int tag) { return tag / kTagsPerLane; }

struct OperationRequest {
  OperationKind kind = OperationKind::barrier;
  ConstView from = {};  // the data that this rank contributes
  View into = {};       // where its result goes; equals `from` for an operation in place
  ReduceOp op = ReduceOp::sum;
  int peer = 0;  // the root of a broadcast, or the other end of a send or recv
  int tag = 0;
  std::span<const std::int64_t> send_counts = {};  // for all_to_all; elements, one count per rank
  std::span<const std::int64_t> recv_counts = {};
  Stream* after = nullptr;  // null: the buffers are ready now
};

}  // namespace trireme
