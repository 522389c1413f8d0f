#include "src/device/sim/nccl_communication.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "src/device/sim/kernel_thread.h"
#include "src/device/sim/machine.h"
#include "src/device/sim/nccl_reduction.h"

namespace sim {

bool Communication::advance(Communicator& communicator) {
  if (at_ < arguments_.bytes) {
    switch (arguments_.kind) {
      case CommunicationKind::send:
        send(communicator);
        break;
      case CommunicationKind::receive:
        receive(communicator);
        break;
      default:
        take_turns(communicator);
    }
  }
  return at_ >= arguments_.bytes;
}

void Communication::send(Communicator& communicator) {
  Pipe& pipe = communicator.pipe(communicator.rank(), arguments_.peer);
  const std::byte* from = accessible(arguments_.from);
  while (at_ < arguments_.bytes) {
    const std::uint64_t written = pipe.written.load();
    const std::size_t room = kPipeBytes - (written - pipe.read.load());
    const std::size_t start = written % kPipeBytes;
    const std::size_t count = std::min({arguments_.bytes - at_, room, kPipeBytes - start});
    if (count == 0) {
      return;
    }
    std::memcpy(pipe.data + start, from + at_, count);
    pipe.written.store(written + count);
    at_ += count;
  }
}

void Communication::receive(Communicator& communicator) {
  Pipe& pipe = communicator.pipe(arguments_.peer, communicator.rank());
  std::byte* to = accessible(arguments_.to);
  while (at_ < arguments_.bytes) {
    const std::uint64_t read = pipe.read.load();
    const std::size_t there = pipe.written.load() - read;
    const std::size_t start = read % kPipeBytes;
    const std::size_t count = std::min({arguments_.bytes - at_, there, kPipeBytes - start});
    if (count == 0) {
      return;
    }
    std::memcpy(to + at_, pipe.data + start, count);
    pipe.read.store(read + count);
    at_ += count;
  }
}

std::size_t Communication::longest_piece(const Communicator& communicator) const {
  const std::size_t parts = arguments_.kind == CommunicationKind::reduce_scatter
                                ? static_cast<std::size_t>(communicator.ranks())
                                : 1;
  return kBoxBytes / parts / 64 * 64;  // whole numbers of any type
}

void Communication::take_turns(Communicator& communicator) {
  while (at_ < arguments_.bytes) {
    const std::size_t piece = std::min(longest_piece(communicator), arguments_.bytes - at_);
    if (!is_posted_) {
      post(communicator, piece);
      is_posted_ = true;
    }
    if (!have_all_posted(communicator)) {
      return;
    }
    take(communicator, piece);
    ++communicator.turns;
    is_posted_ = false;
    at_ += piece;
  }
}

CollectiveShape Communication::shape() const {
  return {static_cast<int>(arguments_.kind), arguments_.type, arguments_.reduction, arguments_.peer,
          arguments_.bytes};
}

// The half of the box is free: this rank has seen the posts of the turn before, and a rank posts a
// turn only after it has read everything of the one before that.
void Communication::post(Communicator& communicator, std::size_t piece) const {
  const std::uint64_t turn = communicator.turns;
  Box& own = communicator.box(communicator.rank());
  own.shapes[turn % 2] = shape();
  std::byte* data = own.data[turn % 2];
  const std::byte* from = accessible(arguments_.from);
  if (arguments_.kind == CommunicationKind::reduce_scatter) {
    const std::size_t longest = longest_piece(communicator);
    for (std::size_t part = 0; part < static_cast<std::size_t>(communicator.ranks()); ++part) {
      std::memcpy(data + part * longest, from + part * arguments_.bytes + at_, piece);
    }
  } else if (arguments_.kind != CommunicationKind::broadcast ||
             arguments_.peer == communicator.rank()) {
    std::memcpy(data, from + at_, piece);
  }
  own.posted.store(turn + 1);
}

bool Communication::have_all_posted(Communicator& communicator) const {
  for (int rank = 0; rank < communicator.ranks(); ++rank) {
    Box& box = communicator.box(rank);
    if (box.posted.load() < communicator.turns + 1) {
      return false;
    }
    if (box.shapes[communicator.turns % 2] != shape()) {
      char text[200];
      std::snprintf(text, sizeof text,
                    "NCCL: ranks %d and %d are in different operations, or with different sizes, "
                    "types or roots",
                    communicator.rank(), rank);
      die(text);
    }
  }
  return true;
}

void Communication::take(Communicator& communicator, std::size_t piece) const {
  const std::size_t half = communicator.turns % 2;
  std::byte* to = accessible(arguments_.to);
  switch (arguments_.kind) {
    case CommunicationKind::all_gather:
      for (int rank = 0; rank < communicator.ranks(); ++rank) {
        const std::size_t start = static_cast<std::size_t>(rank) * arguments_.bytes + at_;
        std::memcpy(to + start, communicator.box(rank).data[half], piece);
      }
      break;
    case CommunicationKind::broadcast:
      std::memcpy(to + at_, communicator.box(arguments_.peer).data[half], piece);
      break;
    default:
      reduce(communicator, piece);
  }
}

// The order of the terms depends on the place in the data and the number of ranks, like that of a
// ring, and is the same on all ranks.
void Communication::reduce(Communicator& communicator, std::size_t piece) const {
  const bool scatters = arguments_.kind == CommunicationKind::reduce_scatter;
  const auto ranks = static_cast<std::size_t>(communicator.ranks());
  const auto own = static_cast<std::size_t>(communicator.rank());
  const std::size_t longest = longest_piece(communicator);
  const std::size_t first = at_ / longest + (scatters ? own : 0);
  std::byte* to = accessible(arguments_.to) + at_;
  for (std::size_t term = 0; term < ranks; ++term) {
    const Box& box = communicator.box(static_cast<int>((first + term) % ranks));
    const std::byte* from = box.data[communicator.turns % 2] + (scatters ? own * longest : 0);
    if (term == 0) {
      std::memcpy(to, from, piece);
    } else {
      reduce_into(to, from, piece, arguments_.type, arguments_.reduction);
    }
  }
  if (arguments_.reduction == ncclAvg) {
    finish_average(to, piece, arguments_.type, communicator.ranks());
  }
}

}  // namespace sim
