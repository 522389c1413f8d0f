#include "benchmarks/p2p/point_to_point.h"

#include "mpi/session/mpi_native.h"
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

// Returns the seconds of a message one way.
template <class Send, class Recv>
std::vector<double> half_round_trips(const PointToPoint& how, Send send, Recv recv) {
  std::vector<double> seconds = timed(how, [&] {
    if (how.sends) {
      send();
      recv();
    } else {
      recv();
      send();
    }
  });
  for (double& one : seconds) {
    one /= 2;
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

std::vector<double> latency_seconds(Communicator& comm, const ConstView& out, const View& in,
                                    const PointToPoint& how) {
  return half_round_trips(
      how, [&] { comm.send(out, how.peer, kDataTag).wait(); },
      [&] { comm.recv(in, how.peer, kDataTag).wait(); });
}

std::vector<double> latency_seconds(MpiNative& mpi, const ConstView& out, const View& in,
                                    const PointToPoint& how) {
  return half_round_trips(
      how, [&] { mpi.send(out, how.peer); }, [&] { mpi.recv(in, how.peer); });
}

std::vector<double> window_seconds(Communicator& comm, const View& data, int window,
                                   const PointToPoint& how) {
  std::uint32_t answer = 0;
  const View answer_view = how.answer.empty() ? View{&answer, 1, DType::u32} : how.answer;
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

std::vector<double> window_seconds(MpiNative& mpi, const View& data, int window,
                                   const PointToPoint& how) {
  std::uint32_t answer = 0;
  const View answer_view{&answer, 1, DType::u32};
  return timed(how, [&] {
    if (how.sends) {
      mpi.send_window(data, window, how.peer);
      mpi.recv(answer_view, how.peer);
    } else {
      mpi.recv_window(data, window, how.peer);
      mpi.send(answer_view, how.peer);
    }
  });
}

}  // namespace trireme
