#include "tests/mpi/shm/process_world.h"

#include <cerrno>
#include <cstdlib>
#include <map>
#include <numeric>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpi/collective/queued_communicator.h"
#include "mpi/shm/shm_transport.h"

namespace trireme {
namespace {

// A stream between each two ranks: enough for the few small messages by which they meet.
class SocketTransport : public Transport {
 public:
  SocketTransport(int rank, std::vector<int> sockets) : rank_(rank), sockets_(std::move(sockets)) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(sockets_.size()); }
  int world_rank(int rank) const override { return rank; }
  const std::string& host(int) const override { return host_; }
  TransferId start_send(const void* data, std::int64_t bytes, int to, int) override {
    const auto n = static_cast<std::size_t>(bytes);
    check(n == 0 || ::send(socket(to), data, n, 0) == static_cast<ssize_t>(n), "a socket takes it");
    return -1;
  }
  TransferId start_recv(void* data, std::int64_t bytes, int from, int) override {
    receives_[++last_] = {static_cast<char*>(data), static_cast<std::size_t>(bytes), from};
    return last_;
  }
  bool finished(TransferId id) override {
    if (id < 0) {
      return true;
    }
    Receive& receive = receives_[id];
    if (receive.bytes > 0) {
      const ssize_t got = ::recv(socket(receive.from), receive.data, receive.bytes, MSG_DONTWAIT);
      check(got > 0 || errno == EAGAIN, "a socket stays open");
      receive.data += std::max<ssize_t>(got, 0);
      receive.bytes -= static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    }
    return receive.bytes == 0;
  }
  void cancel_all() noexcept override {}
  void pause(std::chrono::microseconds limit) override { std::this_thread::sleep_for(limit); }
  std::unique_ptr<Transport> split_off(const std::vector<int>&) override { std::abort(); }
  [[noreturn]] void abort(ExitCode code) override { ::_exit(static_cast<int>(code)); }

 private:
  struct Receive {
    char* data = nullptr;
    std::size_t bytes = 0;
    int from = 0;
  };
  int socket(int peer) const { return sockets_[static_cast<std::size_t>(peer)]; }

  int rank_;
  std::vector<int> sockets_;  // by peer
  std::string host_ = "node";
  std::map<TransferId, Receive> receives_;
  TransferId last_ = 0;
};

std::string run_rank(int rank, std::vector<int> sockets,
                     const std::function<void(Communicator&)>& rank_function) {
  try {
    std::vector<int> ranks(sockets.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    QueuedCommunicator host_group(std::make_unique<SocketTransport>(rank, std::move(sockets)),
                                  "host");
    QueuedCommunicator comm(make_shm_transport(host_group, ranks, [](ExitCode) {}), "world");
    rank_function(comm);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

ProcessWorld::ProcessWorld(int size, const std::function<void(Communicator&)>& rank_function)
    : ranks_(static_cast<std::size_t>(size)) {
  check(::pipe(life_) == 0, "a pipe is to be had");
  std::vector<std::vector<int>> sockets(ranks_.size(), std::vector<int>(ranks_.size(), -1));
  for (std::size_t a = 0; a < ranks_.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      int ends[2];
      check(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a socket is to be had");
      sockets[a][b] = ends[0];
      sockets[b][a] = ends[1];
    }
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    int ends[2];
    check(::pipe(ends) == 0, "a pipe is to be had");
    ranks_[r].reports = ends[0];
    ranks_[r].pid = ::fork();
    if (ranks_[r].pid == 0) {
      ::close(life_[1]);
      const std::string text = run_rank(static_cast<int>(r), sockets[r], rank_function) + "\n";
      char end = 0;
      const bool told = ::write(ends[1], text.data(), text.size()) > 0;
      ::_exit(told && ::read(life_[0], &end, 1) == 0 ? 0 : 1);
    }
    ::close(ends[1]);
  }
  for (const auto& row : sockets) {
    for (const int each : row) {
      if (each >= 0) {
        ::close(each);
      }
    }
  }
}

ProcessWorld::~ProcessWorld() {
  ::close(life_[1]);
  ::close(life_[0]);
  for (const Rank& rank : ranks_) {
    (void)::kill(rank.pid, SIGKILL);
    (void)::waitpid(rank.pid, nullptr, 0);
    ::close(rank.reports);
  }
}

void ProcessWorld::signal(int rank, int number) const {
  check(::kill(ranks_[static_cast<std::size_t>(rank)].pid, number) == 0, "the rank is there");
}

std::string ProcessWorld::report(int rank, double limit_seconds) {
  std::string text;
  pollfd ready{ranks_[static_cast<std::size_t>(rank)].reports, POLLIN, 0};
  while (::poll(&ready, 1, static_cast<int>(limit_seconds * 1000)) == 1) {
    char part[4096];
    const ssize_t got = ::read(ready.fd, part, sizeof(part));
    if (got <= 0) {
      break;
    }
    text.append(part, static_cast<std::size_t>(got));
    if (text.back() == '\n') {
      text.pop_back();
      return text;
    }
  }
  return "nothing";
}

}  // namespace trireme
