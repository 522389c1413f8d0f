#include "mpi/shm/offer_data.h"

#include <cstring>

#include "mpi/shm/shm_algorithms.h"

namespace trireme {

bool is_small(const ShmGroup& group, std::int64_t bytes) {
  return bytes <= kSlotBytes && bytes * (group.size() - 1) <= kSmallReadBytes;
}

namespace {

// Returns whether peers use this data of this rank in place.
bool stays(const ShmGroup& group, const void* data, std::int64_t bytes) {
  return bytes > kMostCopiedBytes && group.segment(group.rank()).contains(data, bytes);
}

void copy_with_post(ShmGroup& group, const void* data, std::int64_t bytes) {
  Notice& notice = group.next_notice();
  const bool tiny = bytes <= Notice::kTinyBytes;
  notice.source = tiny ? kInPost : kInSlot;
  if (bytes > 0) {
    std::memcpy(tiny ? notice.tiny.data() : group.slot(group.rank(), group.next_turn()), data,
                static_cast<std::size_t>(bytes));
  }
}

}  // namespace

void offer(ShmGroup& group, const void* data, std::int64_t bytes) {
  if (stays(group, data, bytes)) {
    group.next_notice().source = group.segment(group.rank()).offset_of(data);
  } else if (is_small(group, bytes)) {
    copy_with_post(group, data, bytes);
  } else {
    group.next_notice().source = kStaged;
  }
}

void offer_both(ShmGroup& group, const void* data, void* into, std::int64_t bytes) {
  Notice& notice = group.next_notice();
  if (stays(group, data, bytes) && stays(group, into, bytes)) {
    const SharedSegment& own = group.segment(group.rank());
    notice.source = own.offset_of(data);
    const std::int64_t offset = own.offset_of(into);
    std::memcpy(notice.tiny.data(), &offset, sizeof(offset));
  } else if (is_small(group, bytes)) {
    copy_with_post(group, data, bytes);
  } else {
    notice.source = kStaged;
  }
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

namespace {

// Returns whether `holds` is true for any rank's source.
template <class Holds>
bool any_source(const ShmGroup& group, Holds holds) {
  for (int r = 0; r < group.size(); ++r) {
    if (holds(group.posted(r).source)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool any_staged(const ShmGroup& group) {
  return any_source(group, [](std::int64_t source) { return source == kStaged; });
}

bool any_in_place(const ShmGroup& group) {
  return any_source(group, [](std::int64_t source) { return source >= 0; });
}

bool all_with_posts(const ShmGroup& group) {
  return !any_source(group,
                     [](std::int64_t source) { return source != kInPost && source != kInSlot; });
}

bool all_in_place(const ShmGroup& group) {
  return !any_source(group, [](std::int64_t source) { return source < 0; });
}

}  // namespace trireme
