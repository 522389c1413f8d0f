// What lies in shared memory for one group: a block in each rank's own segment, written by the
// owner except where said, read by its peers.
//
//   GroupHeader  posts of the operations, by turns; the counter of steps within them; flags
//   Offer[n]     for each peer: where the owner's block of a new group lies (Transport::split_off)
//   counts[2][n] i64, of an all_to_all, by turns: bytes for each rank
//   Ring[n]      messages to the owner, written by rank r
//   slots[2]     kSlotBytes each: the data of small operations, by turns
//   inlets[2]    kChunkBytes each: pieces of large buffers that do not lie in the arena, by turns
//   outlets[2]   kChunkBytes/2 each: pieces of results, by turns
//
// By turns: operation k uses number k % 2 and may, because whoever starts operation k+2 has seen
// all ranks start k+1, and so finish k.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "mpi/collective/exchange.h"

namespace trireme {

inline constexpr std::int64_t kSlotBytes = 64 << 10;
inline constexpr std::int64_t kChunkBytes = 128 << 10;

// Where an operation's data is to be read from.
inline constexpr std::int64_t kInPost = -1;
inline constexpr std::int64_t kInSlot = -2;
inline constexpr std::int64_t kStaged = -3;  // comes piece by piece; else an offset in the segment

// What a rank has to say about its next operation.
struct Notice {
  static constexpr std::int64_t kTinyBytes =
      64 - sizeof(std::uint64_t) - sizeof(OperationLabel) - sizeof(std::int64_t);
  OperationLabel label;
  std::int64_t source;
  // The data of a tiny operation. Where `source` is an offset: the offset at which the result is
  // wanted, an i64 in the first bytes (see offer_both() in offer_data.h).
  std::array<std::byte, kTinyBytes> tiny;
};

// One cache line, written at one go: a peer that polls it takes it away between two stores.
struct alignas(64) Post {
  Notice notice;
  std::atomic<std::uint64_t> number;  // written last; counts the group's operations from 1
};
static_assert(sizeof(Post) == 64 && std::is_trivially_copyable_v<Notice>);

struct GroupHeader {
  std::array<Post, 2> posts;
  alignas(64) std::atomic<std::uint64_t> step;
  alignas(64) std::atomic<std::uint32_t> touching;  // the owner is at its peers' buffers
  alignas(64) std::atomic<std::uint32_t> revoked;   // the owner's buffers are no longer to be used
  alignas(64) std::atomic<std::int32_t> left;       // ranks that need this block no more; by all
};

struct alignas(64) Offer {
  std::atomic<std::uint64_t> number;  // of the split, from 1
  std::atomic<std::int64_t> offset;
  std::atomic<std::uint64_t> taken;  // by the peer: the number it has read
};

// A message to the ring's owner: its head, and the whole of a short one.
struct alignas(64) Letter {
  static constexpr std::int64_t kInlineBytes = 256 - 24;
  std::int64_t bytes;
  std::int64_t ticket;  // offset in the sender's segment; 0: the data is here
  std::int32_t tag;
  std::array<std::byte, kInlineBytes> data;
};
static_assert(sizeof(Letter) == 256);

struct Ring {
  static constexpr std::uint64_t kLetters = 16;
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> taken;
  std::array<Letter, kLetters> letters;
};

// The state of a message too long for a letter, in the sender's segment. The data lies at `source`
// as a whole, or passes through kStreamBytes there, in turns.
struct alignas(64) Ticket {
  enum State : std::uint32_t { offered, claimed, done, withdrawn, mismatched };
  std::atomic<std::uint32_t> state;                // offered -> claimed -> done by the receiver
  std::int64_t received_bytes;                     // what a mismatched receive expected
  std::atomic<std::int64_t> source;                // offset in the sender's segment
  bool streamed;                                   // source is set when the receiver has claimed it
  std::atomic<std::int64_t> produced;              // bytes, by the sender
  alignas(64) std::atomic<std::int64_t> consumed;  // bytes, by the receiver
};
inline constexpr std::int64_t kStreamPieceBytes = 64 << 10;
inline constexpr std::int64_t kStreamBytes = 4 * kStreamPieceBytes;

// Offsets within the block of a group of n ranks.
struct GroupLayout {
  explicit constexpr GroupLayout(int ranks)
      : n(ranks),
        offers(sizeof(GroupHeader)),
        counts(offers + n * static_cast<std::int64_t>(sizeof(Offer))),
        rings((counts + 2 * n * 8 + 63) / 64 * 64),
        slots(rings + n * static_cast<std::int64_t>(sizeof(Ring))),
        inlets(slots + (n > 1 ? 2 * kSlotBytes : 0)),
        outlets(inlets + (n > 1 ? 2 * kChunkBytes : 0)),
        bytes(outlets + (n > 1 ? kChunkBytes : 0)) {}
  std::int64_t n, offers, counts, rings, slots, inlets, outlets, bytes;
};

}  // namespace trireme
