// TunedTransport connects one group over several backends; a tuning table says which of them runs
// which collective operation at which size. Transfers, and operations that the table does not list,
// go over the first. Owns the transports. Thread rule: transport.h.
#pragma once

#include <memory>
#include <vector>

#include "mpi/collective/transport.h"
#include "mpi/session/tuning.h"

namespace trireme {

class TunedTransport : public Transport {
 public:
  struct Choice {
    Backend backend;
    std::unique_ptr<Transport> transport;  // connects the whole group
  };
  // Precondition: there is at least one choice.
  TunedTransport(std::vector<Choice> choices, Tuning tuning);

  TransferId start_send(const void* data, std::int64_t bytes, int to, int tag) override {
    return first().start_send(data, bytes, to, tag);
  }
  TransferId start_recv(void* data, std::int64_t bytes, int from, int tag) override {
    return first().start_recv(data, bytes, from, tag);
  }
  TransferId start_recv_of_any_length(void* data, std::int64_t bytes, std::int64_t room, int from,
                                      int tag) override {
    return first().start_recv_of_any_length(data, bytes, room, from, tag);
  }
  bool finished(TransferId id) override { return first().finished(id); }
  void cancel_all() noexcept override;
  void pause(std::chrono::microseconds limit) override { first().pause(limit); }
  void check_peers() override { first().check_peers(); }

  std::unique_ptr<Algorithms> make_algorithms() override;
  MemorySource* memory() override { return first().memory(); }
  std::unique_ptr<Transport> split_off(const std::vector<int>& members) override;

 private:
  Transport& first() const { return *choices_.front().transport; }

  std::vector<Choice> choices_;
  Tuning tuning_;
};

}  // namespace trireme
