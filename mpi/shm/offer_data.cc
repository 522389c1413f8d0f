#include "mpi/shm/offer_data.h"

#include <cstring>

#include "mpi/shm/shm_algorithms.h"

namespace trireme {

bool is_small(const ShmGroup& group, std::int64_t bytes) {
  return bytes <= kSlotBytes && bytes * (group.size() - 1) <= kSmallReadBytes;
}

void offer(ShmGroup& group, const void* data, std::int64_t bytes) {
  Notice& notice = group.next_notice();
  if (is_small(group, bytes)) {
    const bool tiny = bytes <= Notice::kTinyBytes;
    notice.source = tiny ? kInPost : kInSlot;
    if (bytes > 0) {
      std::memcpy(tiny ? notice.tiny.data() : group.slot(group.rank(), group.next_turn()), data,
                  static_cast<std::size_t>(bytes));
    }
    return;
  }
  const Segment& own = group.segment(group.rank());
  notice.source = own.contains(data, bytes) ? own.offset_of(data) : kStaged;
}

void offer_both(ShmGroup& group, const void* data, void* into, std::int64_t bytes) {
  offer(group, data, bytes);
  Notice& notice = group.next_notice();
  if (notice.source < 0) {
    return;
  }
  const Segment& own = group.segment(group.rank());
  if (!own.contains(into, bytes)) {
    notice.source = kStaged;
    return;
  }
  const std::int64_t offset = own.offset_of(into);
  std::memcpy(notice.tiny.data(), &offset, sizeof(offset));
}

std::byte* wanted(const ShmGroup& group, int r) {
  std::int64_t offset = 0;
  std::memcpy(&offset, group.posted(r).tiny.data(), sizeof(offset));
  return group.segment(r).at(offset);
}

const std::byte* offered(const ShmGroup& group, int r) {
  const Notice& notice = group.posted(r);
  switch (notice.source) {
    case kInPost:
      return notice.tiny.data();
    case kInSlot:
      return group.slot(r, group.turn());
    case kStaged:
      return nullptr;
    default:
      return group.segment(r).at(notice.source);
  }
}

bool any_staged(const ShmGroup& group) {
  for (int r = 0; r < group.size(); ++r) {
    if (group.posted(r).source == kStaged) {
      return true;
    }
  }
  return false;
}

bool any_in_place(const ShmGroup& group) {
  for (int r = 0; r < group.size(); ++r) {
    if (group.posted(r).source >= 0) {
      return true;
    }
  }
  return false;
}

}  // namespace trireme
