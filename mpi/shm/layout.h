// Defines the layout of shared memory for one group: each rank has a block in its own segment. Its
// owner writes it, except where noted, and its peers read it.
//
//   GroupHeader  posts of the operations, by turns; the count of steps within them; flags
//   Offer[n]     for each peer: the offset of the owner's block of a new group (split_off())
//   counts[2][n] i64, for all_to_all, by turns: bytes for each rank
//   Ring[n]      messages to the owner, written by rank r
//   slots[2]     kSlotBytes each: the data of small operations, by turns
//   inlets[2]    kChunkBytes each: pieces of large buffers outside the arena, by turns
//   outlets[2]   kChunkBytes/2 each: pieces of results, by turns
//
// "By turns" means that operation k uses number k % 2. This is safe because a rank that starts
// operation k+2 has seen all ranks start k+1, which they do after they have finished k.
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

// Values of Notice::source, which says where an operation's data is to be read.
inline constexpr std::int64_t kInPost = -1;
inline constexpr std::int64_t kInSlot = -2;
inline constexpr std::int64_t kStaged = -3;  // through inlets, in pieces

// A Notice says what operation a rank runs next and where its data is.
struct Notice {
  static constexpr std::int64_t kTinyBytes =
      64 - sizeof(std::uint64_t) - sizeof(OperationLabel) - sizeof(std::int64_t);
  OperationLabel label;
  std::int64_t source;
  // Holds the data of a tiny operation. If `source` is an offset, the first bytes hold an i64: the
  // offset at which the result is wanted (see offer_both() in offer_data.h).
  std::array<std::byte, kTinyBytes> tiny;
};

// A Post is one cache line and is written in one go, because a peer that polls it could take the
// line away between two stores.
struct alignas(64) Post {
  Notice notice;
  std::atomic<std::uint64_t> number;  // written last; numbers the group's operations from 1
};
static_assert(sizeof(Post) == 64 && std::is_trivially_copyable_v<Notice>);

struct GroupHeader {
  std::array<Post, 2> posts;
  alignas(64) std::atomic<std::uint64_t> step;
  alignas(64) std::atomic<std::uint32_t> touching;  // whether the owner uses its peers' buffers
  alignas(64) std::atomic<std::uint32_t> revoked;   // whether the owner's buffers must not be used
  alignas(64) std::atomic<std::int32_t> left;       // ranks done with this block; written by all
};

struct alignas(64) Offer {
  std::atomic<std::uint64_t> number;  // number of the split, from 1
  std::atomic<std::int64_t> offset;
  std::atomic<std::uint64_t> taken;  // written by the peer: the last number that it has read
};

// A Letter is the head of a message to the ring's owner, and holds all data of a short one.
struct alignas(64) Letter {
  static constexpr std::int64_t kInlineBytes = 256 - 24;
  std::int64_t bytes;
  std::int64_t ticket;  // offset of a Ticket in the sender's segment; 0: `data` is here
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

// A Ticket is the state of a message that does not fit a letter, in the sender's segment. The data
// either lies at `source` as a whole, or passes through a buffer of kStreamBytes there, which is
// used cyclically.
struct alignas(64) Ticket {
  enum State : std::uint32_t { offered, claimed, done, withdrawn, mismatched };
  std::atomic<std::uint32_t> state;    // offered -> claimed -> done by the receiver
  std::int64_t received_bytes;         // size that a mismatched receive expected
  std::atomic<std::int64_t> source;    // offset of the data in the sender's segment
  bool streamed;                       // whether `source` is a buffer, set after the claim
  std::atomic<std::int64_t> produced;  // bytes so far, written by the sender
  alignas(64) std::atomic<std::int64_t> consumed;  // bytes so far, written by the receiver
};
inline constexpr std::int64_t kStreamPieceBytes = 64 << 10;
inline constexpr std::int64_t kStreamBytes = 4 * kStreamPieceBytes;

// Computes the byte offsets within the block of a rank in a group of n ranks, and the block's size.
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
