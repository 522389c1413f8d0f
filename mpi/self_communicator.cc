#include "mpi/self_communicator.h"

#include "mpi/blocks.h"
#include "src/base/log.h"

namespace trireme {
namespace {

class UntilEvent : public Pending::Operation {
 public:
  explicit UntilEvent(StreamEvent event) : event_(std::move(event)) {}
  bool reached() override { return event_.reached(); }
  void wait() override { event_.wait(); }
  void abandon() noexcept override {}

 private:
  StreamEvent event_;
};

}  // namespace

SelfCommunicator::SelfCommunicator() : Communicator(GroupMembers::of_world(0, {host_name()})) {}

std::unique_ptr<Communicator> SelfCommunicator::split(int, int, std::string_view) {
  return std::make_unique<SelfCommunicator>();
}

Pending run_alone(const OperationRequest& request) {
  const auto copy = [from = request.from, into = request.into] { copy_block(from, into); };
  if (request.after == nullptr) {
    copy();
    return {};
  }
  if (request.from.data != request.into.data) {
    request.after->run(copy);
  }
  StreamEvent done = request.after->record();
  return done.reached() ? Pending() : Pending(std::make_shared<UntilEvent>(std::move(done)));
}

}  // namespace trireme
