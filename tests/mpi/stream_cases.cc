// Tests operations in the order of streams whose work runs beside the host.
#include <future>

#include <gtest/gtest.h>

#include "tests/mpi/collective_cases.h"

namespace trireme {
namespace {

// These sizes are below and above the one from which operations run beside the caller.
const std::vector<std::int64_t> kStreamCounts = {1, 3000, 100'000};

Stream worker_stream() { return {Device::cpu(), 1, make_worker_queue()}; }

double sum_over_ranks(int size) { return size * (size + 1) / 2.0; }

// The buffer is filled by work that starts only when this rank lets it.
void start_after_their_stream(Communicator& comm) {
  for (const std::int64_t count : kStreamCounts) {
    Stream stream = worker_stream();
    std::promise<void> open;
    std::vector<float> data(static_cast<std::size_t>(count));
    stream.run([&] {
      open.get_future().wait();
      data.assign(data.size(), static_cast<float>(comm.rank() + 1));
    });
    Pending sum = comm.all_reduce(view_of(data), ReduceOp::sum, &stream);
    EXPECT_FALSE(sum.done());
    open.set_value();
    sum.wait();
    EXPECT_EQ(data,
              std::vector<float>(data.size(), static_cast<float>(sum_over_ranks(comm.size()))));
  }
}

// A sum, work on it, and a second sum of the result run in order; the host waits once, at the end.
void are_awaited_by_streams(Communicator& comm) {
  for (const std::int64_t count : kStreamCounts) {
    Stream stream = worker_stream();
    std::vector<double> data(static_cast<std::size_t>(count), comm.rank() + 1.0);
    std::vector<double> doubled(data.size());
    comm.all_reduce(view_of(data), ReduceOp::sum, &stream).wait(stream);
    stream.run([&] {
      for (std::size_t i = 0; i < data.size(); ++i) {
        doubled[i] = 2 * data[i];
      }
    });
    std::vector<double> result(data.size());
    comm.all_reduce(view_of(doubled), view_of(result), ReduceOp::max, &stream).wait(stream);
    stream.record().wait();
    EXPECT_EQ(result, std::vector<double>(data.size(), 2 * sum_over_ranks(comm.size())));
  }
}

// Every rank sends to the next one.
void order_sends_too(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  Stream stream = worker_stream();
  std::int64_t given = 0;
  std::int64_t got = -1;
  stream.run([&] { given = comm.rank(); });
  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  Pending receive = comm.recv({&got, 1, DType::i64}, previous, 3);
  Pending send = comm.send({&given, 1, DType::i64}, next, 3, &stream);
  receive.wait(stream);
  send.wait(stream);
  stream.record().wait();
  EXPECT_EQ(got, previous);
}

// Work that runs at once leaves nothing to wait for.
void start_at_once_on_the_host(Communicator& comm) {
  Stream stream(Device::cpu(), 1);
  std::int64_t value = 0;
  stream.run([&] { value = comm.rank() + 1; });
  comm.all_reduce({&value, 1, DType::i64}, ReduceOp::max, &stream).wait(stream);
  EXPECT_EQ(value, comm.size());
}

}  // namespace

std::vector<CollectiveCase> stream_cases() {
  return {{"OperationsStartAfterTheirStream", start_after_their_stream},
          {"OperationsAreAwaitedByStreams", are_awaited_by_streams},
          {"StreamsOrderSendsToo", order_sends_too},
          {"StreamsOfTheHostStartAtOnce", start_at_once_on_the_host}};
}

}  // namespace trireme
