#include <algorithm>
#include <regex>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/watch/operation_label.h"
#include "src/base/error.h"
#include "tests/mpi/collective_cases.h"

namespace trireme {
namespace {

// Describes what a rank runs: an operation on a buffer of its own.
struct Step {
  OperationKind kind;
  std::int64_t count = 0;  // a multiple of the number of ranks
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
};

// All ranks but one run `most`; that one runs `odd`.
struct Pair {
  Step most;
  Step odd;
};

std::vector<Pair> all_pairs(std::int64_t count) {
  using enum OperationKind;
  const std::vector<OperationKind> kinds = {all_reduce, reduce_scatter, all_gather,
                                            all_to_all, broadcast,      barrier};
  std::vector<Pair> pairs;
  for (std::size_t a = 0; a < kinds.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const Pair pair{{kinds[a], count}, {kinds[b], count}};
      pairs.push_back(a + b == 2 ? Pair{pair.odd, pair.most} : pair);
    }
    if (kinds[a] != barrier && kinds[a] != all_to_all) {
      pairs.push_back({{kinds[a], count}, {kinds[a], 2 * count}});
      pairs.push_back({{kinds[a], count}, {kinds[a], count / 1000}});
      pairs.push_back({{kinds[a], count}, {kinds[a], 0}});
      pairs.push_back({{kinds[a], count}, {kinds[a], count, DType::i32}});
    }
  }
  pairs.push_back({{all_reduce, count}, {all_reduce, count, DType::f32, ReduceOp::max}});
  pairs.push_back({{reduce_scatter, count}, {reduce_scatter, count, DType::f32, ReduceOp::min}});
  pairs.push_back({{broadcast, count}, {broadcast, count, DType::f32, ReduceOp::sum, 1}});
  pairs.push_back({{broadcast, count, DType::f32, ReduceOp::sum, 1}, {all_reduce, count}});
  pairs.push_back({{all_to_all, count}, {all_to_all, 2 * count}});
  return pairs;
}

// Runs one of the pairs in a group of its own.
class Meeting {
 public:
  Meeting(Communicator& comm, const Pair& pair, int odd_rank)
      : group_(comm.split(0, 0)),
        own_(comm.rank()),
        step_(comm.rank() == odd_rank ? pair.odd : pair.most) {
    group_->set_deadline(std::chrono::seconds(3));
    data_.assign(static_cast<std::size_t>(2 * step_.count), 1 + own_);
  }

  void start() {
    const View data{data_.data(), step_.count, step_.dtype};
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(group_->size()),
                                           step_.count / group_->size());
    using enum OperationKind;
    switch (step_.kind) {
      case all_reduce:
        pending_ = group_->all_reduce(data, step_.op);
        break;
      case reduce_scatter:
        pending_ = group_->reduce_scatter(data, step_.op);
        break;
      case all_gather:
        pending_ = group_->all_gather(data);
        break;
      case all_to_all:
        pending_ = group_->all_to_all(
            data, counts, {data_.data() + step_.count, step_.count, step_.dtype}, counts);
        break;
      case broadcast:
        pending_ = group_->broadcast(data, step_.root);
        break;
      default:
        pending_ = group_->barrier();
    }
  }
  // Returns what went wrong on this rank. A broadcast may reach some ranks before others find the
  // mismatch. The group is abandoned on all ranks, because messages for it may still be under way.
  std::string finish() {
    std::string text;
    try {
      pending_.wait();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::hang);
      text = error.what();
    }
    if (step_.kind != OperationKind::broadcast || !text.empty()) {
      const auto size = static_cast<std::ptrdiff_t>(data_.size());
      EXPECT_EQ(std::count(data_.begin(), data_.end(), 1 + own_), size)
          << "data was touched: " << text;
    }
    group_->recv({&own_, 1, DType::i32}, (group_->rank() + 1) % group_->size(), 9).abandon();
    return text;
  }

 private:
  std::unique_ptr<Communicator> group_;
  std::int32_t own_;
  Step step_;
  std::vector<std::int32_t> data_;
  Pending pending_;
};

// Returns whether sums stay inside hosts first. Operations may then run in parts of the group that
// never meet.
bool has_parts(const Communicator& comm) {
  std::set<std::string> hosts;
  for (int rank = 0; rank < comm.size(); ++rank) {
    hosts.insert(comm.host(rank));
  }
  return hosts.size() > 1 && static_cast<int>(hosts.size()) < comm.size();
}

// Returns whether some rank names both operations long before its deadline. If the world is not
// watched (mpi/watch), the ranks of a group with parts may report nothing but their deadline.
bool names_lost_step(const std::vector<std::string>& texts, bool has_parts) {
  static const std::regex unwatched("ranks did not finish within [^:]*: still waiting");
  bool named = false;
  bool hung = false;
  for (const std::string& text : texts) {
    named = named || text.find("out of step") != std::string::npos ||
            text.find("in an all_to_all where") != std::string::npos;
    hung = hung || std::regex_search(text, unwatched);
  }
  return named || (has_parts && hung);
}

// Starts all pairs at once, because many of them end at their deadlines.
void desync_is_named(Communicator& comm, std::int64_t count_per_rank) {
  if (comm.size() == 1 || comm.size() > 5) {
    return;
  }
  const std::vector<Pair> pairs = all_pairs(count_per_rank * comm.size());
  std::vector<Meeting> meetings;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    meetings.emplace_back(comm, pairs[i], static_cast<int>(i) % comm.size());
  }
  for (Meeting& meeting : meetings) {
    meeting.start();
  }
  std::vector<std::string> texts;
  for (Meeting& meeting : meetings) {
    texts.push_back(meeting.finish());
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto all = all_gather_text(comm, texts[i]);
    EXPECT_TRUE(names_lost_step(all, has_parts(comm)))
        << "pair " << i << ": " << fmt::format("{}", fmt::join(all, "\n"));
  }
}

void small_desync_is_named(Communicator& comm) { desync_is_named(comm, 1000); }
void large_desync_is_named(Communicator& comm) { desync_is_named(comm, 9000); }

}  // namespace

std::vector<CollectiveCase> desync_cases() {
  return {{"small_desync_is_named", small_desync_is_named},
          {"large_desync_is_named", large_desync_is_named}};
}

}  // namespace trireme
