// With greetings, ranks make sure that they run the same operation before they touch its data. The
// first message of an operation to each rank begins with the operation's label:
//
//   0         4     5      6   7   8         12        16              24             32
//   | magic   | kind| dtype| op| order| root | 0       | number        | bytes        | data...
//
// in the machine's byte order. Small operations append their data to it (small_collectives.h);
// larger ones call greet() first. Ranks that are out of step find it out from the label: CommError
// names both operations. Used by the thread that drives the operation.
#pragma once

#include <cstddef>
#include <optional>

#include "mpi/collective/collectives.h"

namespace trireme {

inline constexpr std::int64_t kGreetingBytes = 32;
// The longest first message: a greeting and a small operation's data, widened from bf16 to f32.
// Every buffer for a first message has this size, whatever length is expected, because Open MPI
// 4.1.4 writes beyond the end of a shorter buffer (for messages above the eager limit in shared
// memory) before it reports the error.
inline constexpr std::int64_t kFirstMessageBytes = kGreetingBytes + 2 * kSmallBytes;

// `at` has room for kGreetingBytes.
void write_greeting(std::byte* at, const OperationLabel& label);
// Returns nothing if the bytes are not a greeting.
std::optional<OperationLabel> read_greeting(const std::byte* at);

// Starts to receive a greeting and the data behind it, `bytes` in all. `at` has room for
// kFirstMessageBytes.
TransferId recv_greeting(Exchange& exchange, std::byte* at, std::int64_t bytes, int from);
// Throws CommError unless the message from rank `from` agrees with this rank's operation. Returns
// its label.
OperationLabel check_greeting(const Exchange& exchange, const std::byte* at, int from);

// Returns when all ranks of the group have entered this operation. Uses dissemination
// (collectives.h, barrier): ceil(log2(n)) steps of kGreetingBytes each way.
void greet(Exchange& exchange, Scratch& scratch);

}  // namespace trireme
