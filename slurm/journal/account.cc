#include "slurm/journal/account.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, kTimeCauses> kNames = {
    "start",  "load",    "train",    "redone", "evaluate", "checkpoint",
    "detect", "exclude", "relaunch", "finish", "idle"};

double number(const json& object, const char* name, double otherwise = 0) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

std::string text(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

constexpr const char* kRunning = "running";

// An end that is not recorded counts as a good one, since a fault is not known.
bool is_good_end(const std::string& cause) {
  return cause == "finished" || cause == "stopped" || cause == kRunning || cause == kNotRecorded;
}

class Bookkeeper {
 public:
  Account account;

  void event(const json& line) {
    if (text(line, "launch") != launch_) {
      begin_launch(line);
    }
    clock_ = std::max(clock_, number(line, "clock"));
    time_ = number(line, "time");
    const std::string event = text(line, "event");
    if (event == "launch") {
      end_unrecorded(true);
      begin_attempt(line, clock_);
    } else if (event == "status") {
      note_status(line);
    } else if (event == "first_step") {
      note_first_step(line);
    } else if (event == "attempt_end") {
      note_attempt_end(line);
    } else if (event == "over" || event == "end") {
      end_unrecorded(false);
      if (event == "over") {
        add(good_end_ ? TimeCause::finish : TimeCause::exclude, clock_ - cursor_);
        cursor_ = clock_;
      }
    }
  }

  void close(RunStanding standing = RunStanding::ended) {
    if (launch_.empty()) {
      return;
    }
    if (open_ && standing == RunStanding::done) {
      end_unrecorded(false);
    } else if (open_) {
      const bool is_running = standing == RunStanding::running;
      end_attempt(first_rank_, clock_, is_running ? kRunning : "",
                  is_running ? "" : "the launcher was killed, and its ranks with it");
    }
    add(TimeCause::exclude, clock_ - cursor_);
    account.wall += clock_ - begun_;
  }

 private:
  void begin_launch(const json& line) {
    close();
    if (!launch_.empty()) {
      const double idle = std::max(0.0, number(line, "time") - time_);
      add(TimeCause::idle, idle);
      account.wall += idle;
    }
    launch_ = text(line, "launch");
    ++account.launches;
    begun_ = clock_ = cursor_ = number(line, "clock");
    fresh_ = true;
    good_end_ = false;
  }

  // Returns whether an event belongs to the open attempt. If not, the journal lacks its launch.
  bool is_of_open_attempt(const json& line) {
    const double attempt = number(line, attempt_key(line), -1);
    const bool belongs = open_ && (attempt < 0 || static_cast<std::int64_t>(attempt) ==
                                                      account.attempts.back().number);
    account.is_incomplete = account.is_incomplete || !belongs;
    return belongs;
  }

  void note_status(const json& line) {
    if (is_of_open_attempt(line)) {
      first_rank_ = line.value("rank0", json());
    }
  }

  void note_first_step(const json& line) {
    if (is_of_open_attempt(line)) {
      correct_last_step(number(line, "from", -1));
      first_rank_ = line.value("rank0", first_rank_);
      AttemptAccount& attempt = account.attempts.back();
      attempt.first_step = number(line, "after_launch", -1);
      attempt.recovery = fresh_ ? -1 : attempt.exclude + attempt.first_step;
    }
  }

  void note_attempt_end(const json& line) {
    if (!is_of_open_attempt(line)) {  // the event repeats when the attempt was launched
      end_unrecorded(true);
      begin_attempt(line, std::clamp(number(line, "launched", cursor_), cursor_, clock_));
    }
    is_refused_ = is_refused_start(line);
    end_attempt(line.value("rank0", first_rank_), number(line, "detected", clock_),
                text(line, "cause"), text(line, "what"));
  }

  // Ends the open attempt, if there is one, of which the journal lacks the end. Another attempt of
  // the same launch follows only upon a fault; otherwise it is not known whether there was one.
  void end_unrecorded(bool is_followed) {
    if (open_) {
      account.is_incomplete = true;
      end_attempt(first_rank_, clock_, is_followed ? "" : kNotRecorded, "");
      account.attempts.back().cause = kNotRecorded;
    }
  }

  void begin_attempt(const json& line, double launched) {
    AttemptAccount attempt;
    attempt.number = static_cast<std::int64_t>(number(line, attempt_key(line)));
    attempt.launch = launch_;
    attempt.launch_number = account.launches;
    attempt.ranks = static_cast<std::int64_t>(number(line, "ranks"));
    for (const json& node : line.value("nodes", json::array())) {
      attempt.nodes.push_back(node.is_string() ? node.get<std::string>() : "");
    }
    add(fresh_ ? TimeCause::start : TimeCause::exclude, launched - cursor_);
    attempt.exclude = fresh_ ? 0 : launched - cursor_;
    launched_ = cursor_ = launched;
    open_ = true;
    first_rank_ = nullptr;
    account.attempts.push_back(std::move(attempt));
  }

  // The journal of a killed launch ends up to half a minute early. If the next attempt that is not
  // refused resumes at a later step than that launch was seen at, the steps between were done by
  // it.
  void correct_last_step(double from) {
    if (killed_) {
      AttemptAccount& last = account.attempts[*killed_];
      last.to_step = std::max(last.to_step, static_cast<std::int64_t>(from));
      reached_ = std::max(reached_, last.to_step);
    }
  }

  void end_attempt(const json& rank, double detected, const std::string& cause,
                   const std::string& what) {
    AttemptAccount& attempt = account.attempts.back();
    attempt.cause = cause;
    attempt.what = what;
    attempt.seconds = std::max(0.0, detected - launched_);
    good_end_ = is_good_end(cause);
    const bool is_refused = std::exchange(is_refused_, false);
    account.failures += good_end_ || is_refused ? 0 : 1;
    const TimeCause begin = fresh_ ? TimeCause::start : TimeCause::relaunch;
    if (rank.is_object()) {
      share(attempt, rank, detected, begin);
    } else {
      add(begin, attempt.seconds);
    }
    if (cause.empty() && attempt.to_step >= 0) {
      killed_ = account.attempts.size() - 1;
    } else if (!is_refused) {
      killed_.reset();
    }
    cursor_ = launched_ + attempt.seconds;
    open_ = false;
    fresh_ = false;
  }

  // Divides the attempt's seconds among causes. Time that the progress page does not cover was
  // before its creation or after its last change.
  void share(AttemptAccount& attempt, const json& rank, double detected, TimeCause begin) {
    const json spent = rank.value("spent", json::object());
    double known = 0;
    for (const auto& [phase, seconds] : spent.items()) {
      known += seconds.is_number() ? std::max(0.0, seconds.get<double>()) : 0;
    }
    // The clock of rank 0's host may run at a slightly different rate.
    const double scale = known > attempt.seconds ? attempt.seconds / known : 1;
    known *= scale;
    const double silent = number(rank, "age") + detected - number(rank, "seen", detected);
    const double tail = std::clamp(silent, 0.0, attempt.seconds - known);
    const double before = attempt.seconds - known - tail;
    const auto phase = [&](const char* name) { return scale * std::max(0.0, number(spent, name)); };
    attempt.from_step = static_cast<std::int64_t>(number(rank, "begun_at", -1));
    attempt.to_step = static_cast<std::int64_t>(number(rank, "step", -1));
    attempt.load = phase("load");
    attempt.ranks_up = before;
    attempt.detect = good_end_ ? 0 : tail;
    add(begin, before + phase("start"));
    add(TimeCause::load, phase("load"));
    add(TimeCause::evaluate, phase("evaluate"));
    add(TimeCause::checkpoint, phase("checkpoint"));
    add(TimeCause::finish, phase("end"));
    add(good_end_ ? TimeCause::finish : TimeCause::detect, tail);
    share_steps(attempt, phase("train"));
  }

  void share_steps(const AttemptAccount& attempt, double seconds) {
    const std::int64_t steps = attempt.to_step - attempt.from_step;
    const std::int64_t again = std::min(attempt.to_step, reached_) - attempt.from_step;
    const double part =
        steps > 0 && again > 0 ? static_cast<double>(again) / static_cast<double>(steps) : 0;
    add(TimeCause::redone, part * seconds);
    add(TimeCause::train, (1 - part) * seconds);
    reached_ = std::max(reached_, attempt.to_step);
  }

  void add(TimeCause cause, double seconds) {
    account.seconds.at(static_cast<std::size_t>(cause)) += std::max(0.0, seconds);
  }

  std::string launch_;
  bool fresh_ = true;        // whether this launch has not yet ended an attempt
  bool open_ = false;        // whether an attempt is running
  bool good_end_ = false;    // whether the latest attempt ended well
  bool is_refused_ = false;  // whether the attempt that ends was refused at its start
  double begun_ = 0;         // start of this launch on its own clock, seconds
  double clock_ = 0;
  double cursor_ = 0;  // all time before this is accounted for
  double launched_ = 0;
  double time_ = 0;  // wall-clock time of the latest event
  json first_rank_;
  std::int64_t reached_ = -1;
  // The latest attempt that was not refused, if its launch was killed after its first step.
  std::optional<std::size_t> killed_;
};

}  // namespace

std::string_view name_of(TimeCause cause) { return kNames.at(static_cast<std::size_t>(cause)); }

double Account::sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

double Account::effective_ratio() const {
  const double useful = seconds[static_cast<std::size_t>(TimeCause::train)] +
                        seconds[static_cast<std::size_t>(TimeCause::evaluate)];
  return wall > 0 ? useful / wall : 0;
}

double Account::mean_hours_between_failures() const {
  const double working = wall - seconds[static_cast<std::size_t>(TimeCause::idle)];
  return failures > 0 ? working / 3600 / static_cast<double>(failures) : 0;
}

const char* attempt_key(const json& event) {
  return event.contains("attempt") ? "attempt" : "generation";
}

bool is_refused_start(const json& attempt_end) {
  const std::string cause = text(attempt_end, "cause");
  const auto rank = attempt_end.find("rank0");
  const std::string phase =
      rank != attempt_end.end() && rank->is_object() ? text(*rank, "phase") : "";
  return (cause == "usage" || cause == "refused" || cause == "not_found") &&
         (phase.empty() || phase == "start" || phase == "load");
}

Account account_of(const std::vector<json>& events, RunStanding standing) {
  Bookkeeper books;
  for (const json& line : events) {
    books.event(line);
  }
  books.close(standing);
  Account& account = books.account;
  const bool has_finished =
      std::any_of(account.attempts.begin(), account.attempts.end(),
                  [](const AttemptAccount& attempt) { return attempt.cause == "finished"; });
  account.is_incomplete |= standing == RunStanding::done && !has_finished;
  return account;
}

}  // namespace trireme
