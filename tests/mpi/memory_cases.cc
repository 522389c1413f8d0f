// Tests buffers in the communicator's own memory, which some transports read in place. The results
// are those of ordinary buffers, whichever ranks use which.
#include <cstring>

#include <gtest/gtest.h>

#include "src/device/pool.h"
#include "tests/mpi/collective_cases.h"

namespace trireme {
namespace {

// These sizes are around the limits between small, staged and in-place operations.
const std::vector<std::int64_t> kMemoryCounts = {1, 500, 5000, 20001, 150003};

// Says which ranks take their buffer from the communicator's memory.
enum class Place { all, none, even };

class Data {
 public:
  Data(Communicator& comm, Place place, std::int64_t count, DType dtype)
      : ordinary_(place == Place::none || (place == Place::even && comm.rank() % 2 != 0)),
        pool_(Device::cpu(), ordinary_ ? host_memory() : comm.memory()),
        buffer_(pool_.allocate(count * size_of(dtype))),
        view_(buffer_.view(dtype)) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = sample(comm.rank(), i);
      if (dtype == DType::bf16) {
        as<bf16>(view_)[i] = to_bf16(static_cast<float>(value));
      } else {
        as<float>(view_)[i] = static_cast<float>(value);
      }
    }
  }
  const View& view() const { return view_; }
  bool same_bytes(const Data& other, std::int64_t first, std::int64_t count) const {
    const View mine = view_.slice(first, count);
    const View theirs = other.view_.slice(first, count);
    return std::memcmp(mine.data, theirs.data, static_cast<std::size_t>(mine.bytes())) == 0;
  }

 private:
  bool ordinary_;
  Pool pool_;
  Buffer buffer_;
  View view_;
};

// Runs the operation on buffers of each place, and compares elements [first, first + count) of what
// the operation leaves there.
template <class Operation>
void compare(Communicator& comm, std::int64_t elements, DType dtype, std::int64_t first,
             std::int64_t count, Operation operation) {
  const Data expected(comm, Place::none, elements, dtype);
  operation(expected.view());
  for (const Place place : {Place::all, Place::even}) {
    const Data got(comm, place, elements, dtype);
    operation(got.view());
    EXPECT_TRUE(got.same_bytes(expected, first, count))
        << elements << " elements, place " << static_cast<int>(place);
  }
}

template <DType dtype>
void reduced_in_place(Communicator& comm) {
  for (const std::int64_t count : kMemoryCounts) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
      compare(comm, count, dtype, 0, count,
              [&](const View& data) { comm.all_reduce(data, op).wait(); });
      const std::int64_t all = count * comm.size();
      compare(comm, all, dtype, count * comm.rank(), count,
              [&](const View& data) { comm.reduce_scatter(data, op).wait(); });
    }
  }
}

// Tries every kind of memory for source and destination. Peers may write only into buffers in the
// transport's memory.
template <DType dtype>
void reduced_out_of_place(Communicator& comm) {
  for (const std::int64_t count : kMemoryCounts) {
    const Data expected(comm, Place::none, count, dtype);
    comm.all_reduce(expected.view(), ReduceOp::sum).wait();
    const Data untouched(comm, Place::none, count, dtype);
    for (const Place source : {Place::all, Place::none, Place::even}) {
      for (const Place result : {Place::all, Place::none, Place::even}) {
        const Data from(comm, source, count, dtype);
        const Data into(comm, result, count, dtype);
        comm.all_reduce(from.view(), into.view(), ReduceOp::sum).wait();
        EXPECT_TRUE(into.same_bytes(expected, 0, count)) << count << " elements";
        EXPECT_TRUE(from.same_bytes(untouched, 0, count)) << count << " elements: the source";
      }
    }
  }
}

void moved_in_place(Communicator& comm) {
  for (const std::int64_t count : kMemoryCounts) {
    const std::int64_t all = count * comm.size();
    compare(comm, all, DType::f32, 0, all, [&](const View& data) { comm.all_gather(data).wait(); });
    compare(comm, count, DType::f32, 0, count,
            [&](const View& data) { comm.broadcast(data, comm.size() - 1).wait(); });
    compare(comm, 2 * all, DType::f32, 0, all, [&](const View& data) {
      const std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), count);
      comm.all_to_all(data.slice(all, all), counts, data.slice(0, all), counts).wait();
    });
  }
}

void passed_round_in_place(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() - 1 + comm.size()) % comm.size();
  for (const std::int64_t count : kMemoryCounts) {
    compare(comm, 2 * count, DType::f32, 0, count, [&](const View& data) {
      Pending sent = comm.send(data.slice(count, count), next, 0);
      comm.recv(data.slice(0, count), previous, 0).wait();
      sent.wait();
    });
  }
}

// Many messages that nobody receives yet are sent before the one that is received first.
void early_messages_hold_up_nothing(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  constexpr int kEarly = 100;
  constexpr std::int64_t kCount = 30000;
  std::vector<std::vector<float>> data(kEarly + 1, std::vector<float>(kCount, -1.0F));
  std::vector<Pending> pending;
  for (int i = 0; comm.rank() == 0 && i <= kEarly; ++i) {
    data[static_cast<std::size_t>(i)].assign(kCount, static_cast<float>(i));
    pending.push_back(comm.send(view_of(data[static_cast<std::size_t>(i)]), 1, i < kEarly ? 0 : 1));
  }
  if (comm.rank() == 1) {
    comm.recv(view_of(data[kEarly]), 0, 1).wait();
    EXPECT_EQ(data[kEarly].back(), static_cast<float>(kEarly));
    for (int i = 0; i < kEarly; ++i) {
      comm.recv(view_of(data[static_cast<std::size_t>(i)]), 0, 0).wait();
      EXPECT_EQ(data[static_cast<std::size_t>(i)].front(), static_cast<float>(i));
      EXPECT_EQ(data[static_cast<std::size_t>(i)].back(), static_cast<float>(i));
    }
  }
  for (Pending& each : pending) {
    each.wait();
  }
  comm.barrier().wait();
}

}  // namespace

std::vector<CollectiveCase> memory_cases() {
  return {{"reduced_in_place_f32", reduced_in_place<DType::f32>},
          {"reduced_in_place_bf16", reduced_in_place<DType::bf16>},
          {"reduced_out_of_place_f32", reduced_out_of_place<DType::f32>},
          {"reduced_out_of_place_bf16", reduced_out_of_place<DType::bf16>},
          {"moved_in_place", moved_in_place},
          {"passed_round_in_place", passed_round_in_place},
          {"early_messages_hold_up_nothing", early_messages_hold_up_nothing}};
}

}  // namespace trireme
