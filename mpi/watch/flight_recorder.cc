#include "mpi/watch/flight_recorder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "src/base/units.h"

namespace trireme {
namespace {

// Groups that have ended are remembered for the dump until there are this many groups.
constexpr std::size_t kMostGroups = 256;

// The other fields of a slot are stored between two stores to `ticket`, and read between two loads
// of it. Release stores and acquire loads keep that order.
constexpr auto kStore = std::memory_order_release;
constexpr auto kLoad = std::memory_order_acquire;
// Replaces the ticket while the other fields are stored.
constexpr FlightTicket kBeingWritten = std::numeric_limits<FlightTicket>::max();

std::int64_t nanoseconds(FlightRecorder::Clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

}  // namespace

std::string_view name_of(FlightState state) {
  switch (state) {
    case FlightState::queued:
      return "queued";
    case FlightState::started:
      return "started";
    case FlightState::finished:
      return "finished";
    case FlightState::failed:
      return "failed";
  }
  return "?";
}

std::string compact_ranks(const std::vector<int>& ranks) {
  if (ranks.size() > 2 && ranks.back() - ranks.front() == static_cast<int>(ranks.size()) - 1 &&
      std::is_sorted(ranks.begin(), ranks.end())) {
    return fmt::format("{}..{}", ranks.front(), ranks.back());
  }
  if (ranks.size() <= 8) {
    return fmt::format("{}", fmt::join(ranks, ","));
  }
  return fmt::format("{},{},{},..,{} ({} ranks)", ranks[0], ranks[1], ranks[2], ranks.back(),
                     ranks.size());
}

FlightRecorder::FlightRecorder(int rank, std::string host) : rank_(rank), host_(std::move(host)) {}

FlightRecorder::~FlightRecorder() {
  if (dumper_.joinable()) {
    dumper_.join();
  }
}

const char* FlightRecorder::enter_phase(const char* phase) {
  const std::lock_guard lock(mutex_);
  phase_since_ = Clock::now();
  return std::exchange(phase_, phase);
}

FlightGroup& FlightRecorder::add_group(std::uint64_t id, std::string name,
                                       std::vector<int> members) {
  const std::lock_guard lock(mutex_);
  for (auto at = groups_.begin(); at != groups_.end() && groups_.size() >= kMostGroups;) {
    at = at->second->ended.load() ? groups_.erase(at) : std::next(at);
  }
  auto group = std::make_unique<FlightGroup>();
  group->serial = next_serial_++;
  group->id = id == 0 ? ++worlds_ : id;
  group->name = std::move(name);
  group->members = std::move(members);
  return *groups_.emplace(group->serial, std::move(group)).first->second;
}

// Takes the lock because add_group() may erase the group from now on.
void FlightRecorder::group_ended(FlightGroup& group) {
  const std::lock_guard lock(mutex_);
  group.ended.store(true);
}

FlightTicket FlightRecorder::queued(FlightGroup& group, const OperationLabel& label,
                                    Clock::time_point now) {
  const FlightTicket ticket = last_ticket_.fetch_add(1, std::memory_order_relaxed) + 1;
  Slot& slot = slot_of(ticket);
  if (claim(slot, ticket)) {
    fill(slot, ticket, group, label, now);
  }
  if (is_collective(label.kind)) {
    group.entered_ticket.store(ticket, kStore);
    group.entered.store(label.number, kStore);
  }
  return ticket;
}

// Keeps writers that are a whole ring apart from writing at the same time: the one that comes
// second, or late, leaves its entry out.
bool FlightRecorder::claim(Slot& slot, FlightTicket ticket) {
  FlightTicket held = slot.ticket.load(kLoad);
  return held < ticket && slot.ticket.compare_exchange_strong(held, kBeingWritten);
}

void FlightRecorder::fill(Slot& slot, FlightTicket ticket, const FlightGroup& group,
                          const OperationLabel& label, Clock::time_point now) {
  slot.number.store(label.number, kStore);
  slot.bytes.store(label.bytes, kStore);
  slot.queued_ns.store(nanoseconds(now), kStore);
  slot.started_ns.store(0, kStore);
  slot.ended_ns.store(0, kStore);
  slot.group.store(group.serial, kStore);
  slot.root.store(label.root, kStore);
  slot.kind.store(label.kind, kStore);
  slot.dtype.store(label.dtype, kStore);
  slot.order.store(label.order, kStore);
  slot.op.store(label.op, kStore);
  slot.state.store(FlightState::queued, kStore);
  slot.ticket.store(ticket, kStore);
}

// Does nothing if the entry was overwritten while its operation waited.
void FlightRecorder::started(FlightTicket ticket, Clock::time_point now) {
  Slot& slot = slot_of(ticket);
  if (slot.ticket.load(kLoad) == ticket) {
    slot.started_ns.store(nanoseconds(now), kStore);
    slot.state.store(FlightState::started, kStore);
  }
}

void FlightRecorder::ended(FlightTicket ticket, FlightGroup& group, const OperationLabel& label,
                           bool failed, Clock::time_point now) {
  Slot& slot = slot_of(ticket);
  if (slot.ticket.load(kLoad) == ticket) {
    slot.ended_ns.store(nanoseconds(now), kStore);
    slot.state.store(failed ? FlightState::failed : FlightState::finished, kStore);
  }
  if (!failed && is_collective(label.kind) && group.finished.load(kLoad) < label.number) {
    group.finished.store(label.number, kStore);
  }
}

std::optional<FlightEntry> FlightRecorder::read(FlightTicket ticket) const {
  const Slot& slot = slots_[ticket % kEntries];
  if (ticket == 0 || slot.ticket.load(kLoad) != ticket) {
    return std::nullopt;
  }
  FlightEntry entry;
  entry.ticket = ticket;
  entry.group = slot.group.load(kLoad);
  entry.label.kind = slot.kind.load(kLoad);
  entry.label.dtype = slot.dtype.load(kLoad);
  entry.label.order = slot.order.load(kLoad);
  entry.label.op = slot.op.load(kLoad);
  entry.label.root = slot.root.load(kLoad);
  entry.label.number = slot.number.load(kLoad);
  entry.label.bytes = slot.bytes.load(kLoad);
  entry.state = slot.state.load(kLoad);
  entry.queued_ns = slot.queued_ns.load(kLoad);
  entry.started_ns = slot.started_ns.load(kLoad);
  entry.ended_ns = slot.ended_ns.load(kLoad);
  return slot.ticket.load(kLoad) == ticket ? std::optional(entry) : std::nullopt;
}

std::vector<FlightEntry> FlightRecorder::entries(FlightTicket after) const {
  const FlightTicket last = last_ticket_.load(kLoad);
  std::vector<FlightEntry> found;
  const FlightTicket oldest = last > kEntries ? last - kEntries : 0;
  for (FlightTicket t = std::max(oldest, after) + 1; t <= last; ++t) {
    if (const auto entry = read(t)) {
      found.push_back(*entry);
    }
  }
  return found;
}

std::map<std::uint32_t, std::string> FlightRecorder::group_names() const {
  const std::lock_guard lock(mutex_);
  std::map<std::uint32_t, std::string> names;
  for (const auto& [serial, group] : groups_) {
    names.emplace(serial, group->name);
  }
  return names;
}

std::string FlightRecorder::describe(const FlightEntry& entry) const {
  const auto found = groups_.find(entry.group);
  std::string where;
  if (found != groups_.end()) {
    const FlightGroup& group = *found->second;
    where = fmt::format(", group {} {}", group.name, compact_ranks(group.members));
    if (!is_collective(entry.label.kind)) {
      where += fmt::format(", {} rank {}", entry.label.kind == OperationKind::send ? "to" : "from",
                           group.members.at(static_cast<std::size_t>(entry.label.root)));
    }
  }
  const double seconds = static_cast<double>(nanoseconds(Clock::now()) - entry.queued_ns) * 1e-9;
  return fmt::format("{} #{} ({}{}) for {}", name_of(entry.label.kind), entry.label.number,
                     format_bytes(entry.label.bytes), where, format_seconds(seconds));
}

void FlightRecorder::report_group(const FlightQuestion& question, FlightReport& report) {
  const auto found = std::find_if(groups_.rbegin(), groups_.rend(), [&](const auto& each) {
    return each.second->id == question.group;
  });
  if (found == groups_.rend()) {
    return;
  }
  FlightGroup& group = *found->second;
  report.knows_group = true;
  report.left_group = group.ended.load();
  report.entered = group.entered.load(kLoad);
  report.finished = group.finished.load(kLoad);
  if (const auto last = read(group.entered_ticket.load(kLoad))) {
    report.last = last->label;
  }
  if (question.number >= 0 && question.asker != rank_) {
    group.alarmed_by.store(question.asker);
    group.alarm.store(question.number);
  }
}

FlightReport FlightRecorder::answer(const FlightQuestion& question) {
  constexpr std::size_t kMostWaiting = 4;
  const auto all = entries();
  const std::lock_guard lock(mutex_);
  FlightReport report;
  report.rank = rank_;
  report.host = host_;
  report.phase = phase_;
  report.phase_seconds = std::chrono::duration<double>(Clock::now() - phase_since_).count();
  report_group(question, report);
  for (const FlightEntry& entry : all) {
    const auto group = groups_.find(entry.group);
    const bool asked = group != groups_.end() && group->second->id == question.group;
    if (asked && is_collective(entry.label.kind) && entry.label.number == question.number) {
      report.overdue = entry.label;
    }
    if (entry.ended_ns == 0 && report.waiting.size() < kMostWaiting) {
      report.waiting.push_back(describe(entry));
    }
  }
  return report;
}

void FlightRecorder::set_dump_folder(std::filesystem::path folder,
                                     std::shared_ptr<const RunSealer> sealer) {
  const std::lock_guard lock(mutex_);
  folder_ = std::move(folder);
  sealer_ = std::move(sealer);
}

std::filesystem::path FlightRecorder::dump_folder() const {
  const std::lock_guard lock(mutex_);
  return folder_;
}

}  // namespace trireme
