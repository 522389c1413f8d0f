#include "src/device/stream.h"

#include <future>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Stream, RunsAtOnceWithoutAQueue) {
  Stream stream(Device::cpu(), 1);
  int runs = 0;
  stream.run([&] { ++runs; });
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(stream.record().reached());
  EXPECT_THROW(stream.run([] { throw std::runtime_error("no"); }), std::runtime_error);
}

TEST(Stream, KeepsTheOrderOfAWorkersWork) {
  Stream stream(Device::cpu(), 1, make_worker_queue());
  std::promise<void> open;
  std::vector<int> order;
  stream.run([&] {
    open.get_future().wait();
    order.push_back(1);
  });
  const StreamEvent first = stream.record();
  stream.run([&] { order.push_back(2); });
  EXPECT_FALSE(first.reached());
  open.set_value();
  stream.record().wait();
  EXPECT_TRUE(first.reached());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Stream, WaitsForAnotherStream) {
  Stream a(Device::cpu(), 1, make_worker_queue());
  Stream b(Device::cpu(), 1, make_worker_queue());
  std::promise<void> open;
  int value = 0;
  int seen = 0;
  a.run([&] {
    open.get_future().wait();
    value = 7;
  });
  b.wait(a.record());
  b.run([&] { seen = value; });
  open.set_value();
  b.record().wait();
  EXPECT_EQ(seen, 7);
}

TEST(Stream, StopsAtWorkThatThrows) {
  Stream stream(Device::cpu(), 1, make_worker_queue());
  bool ran = false;
  stream.record().wait();
  stream.run([] { throw std::runtime_error("broken"); });
  stream.run([&] { ran = true; });
  EXPECT_THROW(stream.record().wait(), std::runtime_error);
  EXPECT_FALSE(ran);
}

TEST(Stream, FinishesItsWorkBeforeItEnds) {
  int runs = 0;
  StreamEvent last;
  {
    Stream stream(Device::cpu(), 1, make_worker_queue());
    for (int i = 0; i < 100; ++i) {
      stream.run([&] { ++runs; });
    }
    last = stream.record();
  }
  EXPECT_EQ(runs, 100);
  EXPECT_TRUE(last.reached());
}

TEST(StreamEvent, IsReachedUnlessAStreamMadeIt) {
  EXPECT_TRUE(StreamEvent().reached());
  StreamEvent().wait();
}

}  // namespace
}  // namespace trireme
