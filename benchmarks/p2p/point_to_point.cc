#include "benchmarks/p2p/point_to_point.h"

#include "src/base/stopwatch.h"

namespace trireme {
namespace {

constexpr int kDataTag = 1;
constexpr int kAnswerTag = 2;

// Calls `once` for the warm-up and then for each timed iteration.
template <class Once>
std::vector<double> timed(const PointToPoint& how, Once once) {
  for (int i = 0; i < how.warmup; ++i) {
    once();
  }
  std::vector<double> seconds;
  for (int i = 0; i < how.iterations; ++i) {
    const Stopwatch watch;
    once();
    seconds.push_back(how.sends ? watch.seconds() : 0);
  }
  return seconds;
}

void wait_all(std::vector<Pending>& pending) {
  for (Pending& one : pending) {
    one.wait();
  }
  pending.clear();
}

}  // namespace

std::vector<double> latency_seconds(Communicator& comm, const View& data, const PointToPoint& how) {
  auto seconds = timed(how, [&] {
    if (how.sends) {
      comm.send(data, how.peer, kDataTag).wait();
      comm.recv(data, how.peer, kDataTag).wait();
    } else {
      comm.recv(data, how.peer, kDataTag).wait();
      comm.send(data, how.peer, kDataTag).wait();
    }
  });
  for (double& one : seconds) {
    one /= 2;
  }
  return seconds;
}

std::vector<double> window_seconds(Communicator& comm, const View& data, int window,
                                   const PointToPoint& how) {
  std::uint32_t answer = 0;
  const View answer_view{&answer, 1, DType::u32};
  std::vector<Pending> pending;
  return timed(how, [&] {
    for (int message = 0; message < window; ++message) {
      pending.push_back(how.sends ? comm.send(data, how.peer, kDataTag)
                                  : comm.recv(data, how.peer, kDataTag));
    }
    wait_all(pending);
    (how.sends ? comm.recv(answer_view, how.peer, kAnswerTag)
               : comm.send(answer_view, how.peer, kAnswerTag))
        .wait();
  });
}

}  // namespace trireme
