#include "mpi/nccl/nccl_monitor.h"

#include <algorithm>

#include <pthread.h>

#include "mpi/nccl/nccl_check.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::chrono::milliseconds kRound{2};

}  // namespace

NcclMonitor::NcclMonitor(int device) : device_(device), thread_([this] { run(); }) {}

NcclMonitor::~NcclMonitor() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void NcclMonitor::add(NcclChannel& channel) {
  const std::lock_guard lock(mutex_);
  channels_.push_back(&channel);
}

void NcclMonitor::remove(NcclChannel& channel) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return asked_about_ != &channel; });
  std::erase(channels_, &channel);
  std::erase_if(operations_, [&](const auto& operation) {
    if (&operation->channel() != &channel) {
      return false;
    }
    operation->finish(failure_);
    return true;
  });
}

void NcclMonitor::watch(std::shared_ptr<NcclOperation> operation) {
  const std::lock_guard lock(mutex_);
  operations_.push_back(std::move(operation));
  if (operations_.size() == 1) {
    changed_.notify_all();
  }
}

void NcclMonitor::check_failed() const {
  const std::lock_guard lock(mutex_);
  if (failure_ != nullptr) {
    std::rethrow_exception(failure_);
  }
}

void NcclMonitor::give_up(const std::string& who) noexcept {
  (void)fail(std::make_exception_ptr(CommError(who + " stopped communicating after an error")));
}

std::exception_ptr NcclMonitor::fail(const std::exception_ptr& error) noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_ == nullptr) {
    fail_all(error);
  }
  return failure_;
}

void NcclMonitor::run() {
  ::pthread_setname_np(::pthread_self(), "trireme-nccl");
  (void)cudaSetDevice(device_);
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    if (operations_.empty() || failure_ != nullptr) {
      changed_.wait(lock);
      continue;
    }
    std::exception_ptr error;
    try {
      error = look(lock);
    } catch (...) {  // for example, the device failed, which the calls about its events return
      error = std::current_exception();
    }
    if (error != nullptr && failure_ == nullptr) {
      fail_all(error);
    }
    changed_.wait_for(lock, kRound);
  }
}

std::exception_ptr NcclMonitor::look(std::unique_lock<std::mutex>& lock) {
  for (auto operation = operations_.begin(); operation != operations_.end();) {
    if ((*operation)->has_finished()) {
      (*operation)->finish(nullptr);
      operation = operations_.erase(operation);
    } else {
      ++operation;
    }
  }
  for (NcclChannel* channel : channels_) {
    if (const ncclResult_t error = channel->asynchronous_error(); error != ncclSuccess) {
      throw_nccl_error(error, describe_work_of(*channel).c_str(), channel->comm());
    }
  }
  const auto now = std::chrono::steady_clock::now();
  std::vector<NcclChannel*> seen;  // operations of a channel run one after another
  for (const auto& each : operations_) {
    if (std::find(seen.begin(), seen.end(), &each->channel()) != seen.end()) {
      continue;
    }
    seen.push_back(&each->channel());
    if (each->is_overdue(now)) {
      const std::shared_ptr<NcclOperation> operation = each;  // which may end without the lock
      asked_about_ = &operation->channel();
      lock.unlock();
      const std::exception_ptr error = describe_hang(operation->hang());
      lock.lock();
      asked_about_ = nullptr;
      changed_.notify_all();
      return error;
    }
  }
  return nullptr;
}

std::string NcclMonitor::describe_work_of(const NcclChannel& channel) const {
  const auto oldest =
      std::find_if(operations_.begin(), operations_.end(),
                   [&](const auto& operation) { return &operation->channel() == &channel; });
  if (oldest == operations_.end()) {
    return "an operation of NCCL";
  }
  const HangFacts facts = (*oldest)->hang();
  return fmt::format("{}: {} over NCCL in a group of {} ranks",
                     facts.members.describe(facts.members.rank()), facts.label.text(),
                     facts.members.size());
}

// The operations fail before the channels are aborted, so that nobody takes their buffers for
// results.
void NcclMonitor::fail_all(const std::exception_ptr& error) noexcept {
  failure_ = error;
  for (const auto& operation : operations_) {
    operation->finish(error);
  }
  operations_.clear();
  NcclChannel::abort_all(channels_);
}

std::exception_ptr describe_hang(const HangFacts& facts) {
  const std::string limit = format_seconds(std::chrono::duration<double>(facts.limit).count());
  const std::string late = facts.is_overdue_here ? fmt::format("did not finish within {}", limit)
                                                 : fmt::format("has passed its deadline on rank {}",
                                                               facts.watch->alarmed_by());
  const std::string culprits =
      facts.watch == nullptr ? "" : ": " + facts.watch->find_culprits(facts.label);
  return std::make_exception_ptr(Hang(fmt::format(
      "{}: {} over NCCL{} in a group of {} ranks {}{}. Look at what those ranks did last "
      "(<run>/logs) and whether their hosts and devices are alive; if such a wait is normal here, "
      "raise comm.deadline",
      facts.members.describe(facts.members.rank()), facts.label.text(),
      facts.links.empty() ? "" : fmt::format(" ({})", facts.links), facts.members.size(), late,
      culprits)));
}

NcclOperation::NcclOperation(Plan plan)
    : plan_(std::move(plan)), done_(plan_.channel.queue().record()) {}

void NcclOperation::wait() {
  if (!is_failed_.load()) {
    done_.wait();
  }
  rethrow_failure();
}

void NcclOperation::abandon() noexcept {
  try {
    if (!reached()) {
      plan_.monitor->give_up(plan_.members.describe(plan_.members.rank()));
    }
    done_.wait();  // until the aborted operation no longer touches its buffers
  } catch (...) {  // the caller already handles an error
    return;
  }
}

cudaEvent_t NcclOperation::native() const {
  return dynamic_cast<const cuda::NativeEvent&>(*done_.point()).native();
}

void NcclOperation::rethrow_failure() {
  if (is_failed_.load()) {
    std::rethrow_exception(error_);
  }
}

bool NcclOperation::is_overdue(std::chrono::steady_clock::time_point now) {
  if (begun_ == std::chrono::steady_clock::time_point{}) {
    if (!plan_.ready.reached()) {
      return false;
    }
    begun_ = now;
    if (plan_.watch != nullptr) {
      plan_.watch->started(plan_.ticket, now);
    }
  }
  is_overdue_here_ = now - begun_ >= plan_.limit;
  return is_overdue_here_ ||
         (plan_.watch != nullptr && plan_.watch->is_overdue_elsewhere(plan_.label));
}

HangFacts NcclOperation::hang() const {
  return {plan_.label, plan_.members, plan_.limit, plan_.watch, plan_.links, is_overdue_here_};
}

void NcclOperation::finish(std::exception_ptr error) noexcept {
  if (plan_.watch != nullptr) {
    plan_.watch->ended(plan_.ticket, plan_.label, error != nullptr,
                       std::chrono::steady_clock::now());
  }
  if (error != nullptr) {
    error_ = std::move(error);
    is_failed_.store(true);
  }
}

}  // namespace trireme
