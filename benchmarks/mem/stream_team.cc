#include "benchmarks/mem/stream_team.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace trireme {
namespace {

constexpr std::int64_t kLineElements = 8;  // of 64 bytes

}  // namespace

StreamTeam::StreamTeam(std::vector<PinnedCore> cores, std::int64_t array_bytes)
    : cores_(std::move(cores)),
      a_(pool_.allocate(array_bytes)),
      b_(pool_.allocate(array_bytes)),
      c_(pool_.allocate(array_bytes)),
      arrays_{static_cast<double*>(a_.data()), static_cast<double*>(b_.data()),
              static_cast<double*>(c_.data()),
              array_bytes / static_cast<std::int64_t>(sizeof(double))} {
  run_pinned(cores_, [this](std::size_t thread) {
    const StreamArrays mine = part(thread);
    std::fill_n(mine.a, mine.count, expected_a_);
    std::fill_n(mine.b, mine.count, expected_b_);
    std::fill_n(mine.c, mine.count, expected_c_);
  });
}

StreamArrays StreamTeam::part(std::size_t thread) const {
  const std::int64_t lines = arrays_.count / kLineElements;
  const auto threads = static_cast<std::int64_t>(cores_.size());
  const auto number = static_cast<std::int64_t>(thread);
  const std::int64_t first = lines * number / threads * kLineElements;
  const std::int64_t end =
      number + 1 == threads ? arrays_.count : lines * (number + 1) / threads * kLineElements;
  return {arrays_.a + first, arrays_.b + first, arrays_.c + first, end - first};
}

double StreamTeam::run(StreamKernel kernel, StreamStores stores) {
  run_stream_once(kernel, expected_a_, expected_b_, expected_c_);
  return run_pinned(cores_, [&](std::size_t thread) { run_stream(kernel, stores, part(thread)); });
}

std::int64_t StreamTeam::wrong() const {
  std::atomic<std::int64_t> count = 0;
  run_pinned(cores_, [&](std::size_t thread) {
    const StreamArrays mine = part(thread);
    std::int64_t own = 0;
    for (std::int64_t i = 0; i < mine.count; ++i) {
      own += (mine.a[i] == expected_a_ ? 0 : 1) + (mine.b[i] == expected_b_ ? 0 : 1) +
             (mine.c[i] == expected_c_ ? 0 : 1);
    }
    count += own;
  });
  return count;
}

double StreamTeam::bytes(StreamKernel kernel) const {
  return static_cast<double>(arrays_.count) * static_cast<double>(stream_bytes_per_element(kernel));
}

}  // namespace trireme
