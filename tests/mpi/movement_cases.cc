#include <algorithm>

#include <gtest/gtest.h>

#include "tests/mpi/collective_cases.h"

namespace trireme {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint8_t byte_of(int rank, std::int64_t i) {
  return static_cast<std::uint8_t>((i * 7 + i / 251 + rank * 31 + 1) & 0xFF);
}

Bytes bytes_of(int rank, std::int64_t count) {
  Bytes bytes(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    bytes[static_cast<std::size_t>(i)] = byte_of(rank, i);
  }
  return bytes;
}

void all_gather_fills_all_blocks(Communicator& comm) {
  for (const std::int64_t block : {0, 1, 13, 4097, 2500001}) {
    const Bytes own = bytes_of(comm.rank(), block);
    Bytes all(static_cast<std::size_t>(block * comm.size()));
    std::copy(own.begin(), own.end(), all.begin() + block * comm.rank());
    comm.all_gather(view_of(all)).wait();
    Bytes expected;
    for (int rank = 0; rank < comm.size(); ++rank) {
      const Bytes theirs = bytes_of(rank, block);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    EXPECT_TRUE(all == expected) << "blocks of " << block;
  }
}

// Returns how many elements rank a sends to rank b. Some blocks are empty, and no rank sends equal
// blocks to all.
std::int64_t block_of(int a, int b, std::int64_t unit) { return (a * 3 + b * 5) % 4 * unit; }

void all_to_all_with_counts(Communicator& comm) {
  const int size = comm.size();
  for (const std::int64_t unit : {0, 1, 1001, 400009}) {
    std::vector<std::int64_t> given;
    std::vector<std::int64_t> taken;
    Bytes out;
    Bytes expected;
    for (int r = 0; r < size; ++r) {
      given.push_back(block_of(comm.rank(), r, unit));
      taken.push_back(block_of(r, comm.rank(), unit));
      const Bytes block = bytes_of(comm.rank() * size + r, given.back());
      const Bytes theirs = bytes_of(r * size + comm.rank(), taken.back());
      out.insert(out.end(), block.begin(), block.end());
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    Bytes got(expected.size());
    Pending pending = comm.all_to_all(view_of(out), given, view_of(got), taken);
    given.clear();  // the counts need not outlive the call
    taken.clear();
    pending.wait();
    EXPECT_TRUE(got == expected) << "unit " << unit;
  }
}

void broadcast_from_every_root(Communicator& comm) {
  for (int root = 0; root < comm.size(); ++root) {
    for (const std::int64_t count : {0, 1, 999, 3000001}) {
      const Bytes expected = bytes_of(root, count);
      Bytes got = comm.rank() == root ? expected : Bytes(expected.size());
      comm.broadcast(view_of(got), root).wait();
      EXPECT_TRUE(got == expected) << count << " bytes from rank " << root;
    }
  }
}

// All ranks send before they receive, and no send may wait for the receive of another rank.
void neighbours_exchange(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() - 1 + comm.size()) % comm.size();
  for (const std::int64_t count : {0, 1, 100000, 5000000}) {
    const Bytes own = bytes_of(comm.rank(), count);
    Bytes got(own.size());
    Pending sent = comm.send({own.data(), count, DType::u8}, next, 3);
    Pending received = comm.recv(view_of(got), previous, 3);
    received.wait();
    sent.wait();
    EXPECT_TRUE(got == bytes_of(previous, count)) << count << " bytes";
  }
}

// Tags select messages, whatever the order of the calls; within a tag, the order of the calls
// holds.
void tags_select(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  std::vector<Pending> pending;
  std::vector<std::int64_t> values = {10, 11, 20};
  const auto at = [&](int i) { return view_of(values).slice(i, 1); };
  if (comm.rank() == 0) {
    pending = {comm.send(at(0), 1, 1), comm.send(at(1), 1, 1), comm.send(at(2), 1, 2)};
  } else if (comm.rank() == 1) {
    values.assign(3, 0);
    pending = {comm.recv(at(2), 0, 2), comm.recv(at(0), 0, 1), comm.recv(at(1), 0, 1)};
  }
  for (Pending& each : pending) {
    each.wait();
  }
  EXPECT_EQ(values, (std::vector<std::int64_t>{10, 11, 20}));
}

// A send under way does not delay the collective operations behind it.
void collectives_pass_a_waiting_send(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  Bytes data = bytes_of(0, 3000000);
  Pending sent;
  if (comm.rank() == 0) {
    sent = comm.send(view_of(data), 1, 0);
  }
  EXPECT_EQ(all_reduce_value(comm, std::int64_t{1}, ReduceOp::sum), comm.size());
  if (comm.rank() == 1) {
    Bytes got(data.size());
    comm.recv(view_of(got), 0, 0).wait();
    EXPECT_TRUE(got == data);
  }
  sent.wait();
}

// Operations run in the order of the calls: each one uses the result of the one before.
void queued_operations_keep_their_order(Communicator& comm) {
  constexpr int kSteps = 40;
  std::vector<std::int64_t> values(100, comm.rank() + 1);
  std::vector<Pending> pending;
  for (int step = 0; step < kSteps; ++step) {
    pending.push_back(comm.broadcast(view_of(values), step % comm.size()));
    pending.push_back(comm.all_reduce(view_of(values), ReduceOp::sum));
    pending.push_back(comm.barrier());
  }
  pending.back().wait();
  for (Pending& each : pending) {
    EXPECT_TRUE(each.done());
    each.wait();
  }
  // Rank 0 starts with 1, which each step multiplies by the number of ranks, modulo 2^64.
  std::uint64_t expected = 1;
  for (int step = 0; step < kSteps; ++step) {
    expected *= static_cast<std::uint64_t>(comm.size());
  }
  EXPECT_EQ(static_cast<std::uint64_t>(values.front()), expected);
  EXPECT_EQ(values.front(), values.back());
}

void texts(Communicator& comm) {
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * 5000), 'a');
  };
  const std::vector<std::string> all = all_gather_text(comm, text_of(comm.rank()));
  ASSERT_EQ(static_cast<int>(all.size()), comm.size());
  for (int rank = 0; rank < comm.size(); ++rank) {
    EXPECT_EQ(all[static_cast<std::size_t>(rank)], text_of(rank));
  }
  const int root = comm.size() - 1;
  const std::string mine = comm.rank() == root ? "root's words" : "something longer than that";
  EXPECT_EQ(broadcast_text(comm, mine, root), "root's words");
  EXPECT_EQ(broadcast_text(comm, "", root), "");
}

}  // namespace

std::vector<CollectiveCase> movement_cases() {
  return {{"all_gather", all_gather_fills_all_blocks},
          {"all_to_all", all_to_all_with_counts},
          {"broadcast", broadcast_from_every_root},
          {"neighbours_exchange", neighbours_exchange},
          {"tags_select", tags_select},
          {"collectives_pass_a_waiting_send", collectives_pass_a_waiting_send},
          {"queued_operations_keep_their_order", queued_operations_keep_their_order},
          {"texts", texts}};
}

}  // namespace trireme
