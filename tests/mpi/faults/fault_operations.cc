#include "tests/mpi/faults/fault_operations.h"

#include <cstring>

namespace trireme {
namespace {

constexpr std::int64_t kSmall = 100;
constexpr std::int64_t kLarge = 100'000;

View f32(const Buffer& buffer) { return buffer.view(DType::f32); }

}  // namespace

std::vector<FaultCase> operations_to_disturb(bool own_memory) {
  std::vector<FaultCase> cases = {{"barrier", "barrier"}};
  for (const char* name :
       {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "send", "recv"}) {
    const std::string operation = name;
    cases.push_back({operation + "/small", operation, kSmall, false});
    cases.push_back({operation + "/large", operation, kLarge, false});
    if (own_memory) {
      cases.push_back({operation + "/in_place", operation, kLarge, true});
    }
  }
  return cases;
}

FaultOperation::FaultOperation(const FaultCase& fault_case, Communicator& group, int hub)
    : operation_(fault_case.operation),
      group_(group),
      hub_(hub),
      pool_(Device::cpu(), fault_case.own_memory ? group.memory() : host_memory()),
      data_(pool_.allocate(fault_case.elements_per_rank * group.size() * size_of(DType::f32))),
      other_(pool_.allocate(data_.bytes())) {
  if (data_.bytes() > 0) {
    std::memset(data_.data(), 0, static_cast<std::size_t>(data_.bytes()));
  }
}

void FaultOperation::run() {
  const View data = f32(data_);
  if (operation_ == "barrier") {
    group_.barrier().wait();
  } else if (operation_ == "all_reduce") {
    group_.all_reduce(data, ReduceOp::sum).wait();
  } else if (operation_ == "reduce_scatter") {
    group_.reduce_scatter(data, ReduceOp::sum).wait();
  } else if (operation_ == "all_gather") {
    group_.all_gather(data).wait();
  } else if (operation_ == "broadcast") {
    group_.broadcast(data, hub_).wait();
  } else if (operation_ == "all_to_all") {
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(group_.size()),
                                           data.count / group_.size());
    group_.all_to_all(data, counts, f32(other_), counts).wait();
  } else if (operation_ == "send") {
    send_to_hub();
  } else {
    receive_from_hub();
  }
}

// Waits for an answer, because a small message that was handed over waits for nobody.
void FaultOperation::send_to_hub() {
  const View token{&token_, 1, DType::i32};
  if (group_.rank() != hub_) {
    group_.send(f32(data_), hub_, 0).wait();
    group_.recv(token, hub_, 1).wait();
    return;
  }
  for (int r = 0; r < group_.size(); ++r) {
    if (r != hub_) {
      group_.recv(f32(other_), r, 0).wait();
      group_.send(token, r, 1).wait();
    }
  }
}

void FaultOperation::receive_from_hub() {
  const View token{&token_, 1, DType::i32};
  if (group_.rank() != hub_) {
    group_.recv(f32(other_), hub_, 0).wait();
    group_.send(token, hub_, 1).wait();
    return;
  }
  for (int r = 0; r < group_.size(); ++r) {
    if (r != hub_) {
      group_.send(f32(data_), r, 0).wait();
      group_.recv(token, r, 1).wait();
    }
  }
}

}  // namespace trireme
