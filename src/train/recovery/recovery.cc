#include "src/train/recovery/recovery.h"

#include <algorithm>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/store.h"
#include "mpi/agreement.h"
#include "mpi/rank_fault.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"
#include "src/train/memory/held_memory.h"
#include "src/train/recovery/data_origin.h"
#include "src/train/recovery/replay_start.h"

namespace trireme {
namespace {

constexpr std::size_t kShownMicroBatches = 3;

// Returns the configuration without what belongs to the first start of a process: the memory was
// found to suffice, but now some of it is still held for the parts to come.
RunConfig of_later_starts(RunConfig config) {
  config.trace = 0;
  config.memory_check = "off";
  return config;
}

// Returns the number of steps to keep records of.
std::int64_t most_records(const RunConfig& config) {
  const DivergenceConfig& d = config.divergence;
  const auto breaks_off = [](const std::string& word) {
    return word == "rewind" || word == "stop";
  };
  const bool replays = config.reproducibility != "fast" && d.replay_steps > 0;
  return replays && (breaks_off(d.spike) || breaks_off(d.not_finite)) ? d.replay_steps + 1 : 0;
}

// A step whose counters cannot be read is not used.
bool may_go_back_to(const StepFolder& step, const TrainingCounters& failed) {
  try {
    return has_passed(failed, counters_of(step.manifest.value().meta));
  } catch (const DataError&) {
    return false;
  }
}

// Returns the steps that rank 0 finds, on all ranks.
std::vector<std::int64_t> agreed_rewind_steps(const RunConfig& config, Communicator& world,
                                              const TrainingCounters& failed) {
  const std::string text = run_on_root(world, [&] {
    return nlohmann::json(rewind_steps(config.checkpoint_dir(), failed,
                                       config.checkpoint.every.integer,
                                       config.divergence.rewind_steps))
        .dump();
  });
  return parse_json(text).get<std::vector<std::int64_t>>();
}

// Returns on all ranks what rank 0 finds out about the data of the current step.
std::string origin_of(TrainingParts& parts, const StepResult& failed) {
  return run_on_root(parts.world, [&] {
    const std::vector<std::string> lines =
        data_origin(parts.data, parts.config, parts.counters.batches(), failed.micro_losses,
                    kShownMicroBatches);
    return fmt::format("the micro-batches with the largest losses:\n  {}",
                       fmt::join(lines, "\n  "));
  });
}

}  // namespace

std::vector<std::int64_t> rewind_steps(const std::filesystem::path& folder,
                                       const TrainingCounters& failed, std::int64_t every,
                                       std::int64_t least) {
  const std::int64_t most = std::max<std::int64_t>(failed.step - least, 0) / every * every;
  if (most == 0) {
    return {0};
  }
  std::vector<std::int64_t> steps;
  for (const StepFolder& step : list_steps(folder)) {
    if (step.manifest && step.step > 0 && step.step <= most && step.step % every == 0 &&
        may_go_back_to(step, failed)) {
      steps.push_back(step.step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

Recovery::Recovery(RunConfig config, const TrainingHost& host)
    : config_(of_later_starts(std::move(config))), host_(host), records_(most_records(config_)) {}

void Recovery::say(const std::string& text) const {
  if (host_.world.rank() == 0) {
    host_.log.warning(text);
  }
}

std::unique_ptr<TrainingParts> Recovery::after(std::unique_ptr<TrainingParts> parts,
                                               const StepResult& failed) {
  const TrainingCounters counters = parts->counters;
  const Response response = failed.judgement.response;
  records_.add({counters.step, failed.loss, failed.grad_norm, failed.bits});
  parts->enter("checkpoint", config_.deadline.checkpoint);
  (void)parts->checkpoints->finish(counters.step);
  const std::string origin = origin_of(*parts, failed);
  parts.reset();
  const std::string replayed = replay(counters);
  const std::string what = fmt::format("step {}: {}; {}; {}", counters.step + 1,
                                       failed.judgement.what, replayed, origin);
  if (response == Response::stop) {
    throw DivergenceError(fmt::format(
        "{}\nLower optimizer.lr, lengthen the warmup, or let the run rewind and leave out the "
        "data: divergence.spike=rewind divergence.not_finite=rewind",
        what));
  }
  if (counters.rewinds >= config_.divergence.max_rewinds) {
    throw DivergenceError(
        fmt::format("{}\nThe run has already rewound {} (divergence.max_rewinds): check "
                    "optimizer.lr and the data before you continue",
                    what, counted(counters.rewinds, "time")));
  }
  return go_back(agreed_rewind_steps(config_, host_.world, counters), counters, what);
}

// Replays the failed step, and returns the result in words.
std::string Recovery::replay(const TrainingCounters& failed) {
  const std::int64_t most = config_.divergence.replay_steps;
  if (most == 0 || config_.reproducibility == "fast") {
    return "not replayed";
  }
  const std::int64_t step = failed.step;
  const auto start = agreed_replay_start(host_.world, config_.checkpoint_dir(), failed, step + 1);
  if (!start) {
    return "not replayed, because no checkpoint has the data of these steps";
  }
  const std::int64_t from = start->step;
  if (step - from > most) {
    return fmt::format(
        "not replayed, because step {} is further back than divergence.replay_steps {}", from,
        most);
  }
  say(fmt::format("replaying steps {} to {} to compare their bits", from + 1, step + 1));
  std::unique_ptr<TrainingParts> built;
  try {
    built = std::make_unique<TrainingParts>(config_, host_, start);
  } catch (const DataError& error) {
    return fmt::format("not replayed: {}", error.what());
  } catch (const NotFound& error) {
    return fmt::format("not replayed: {}", error.what());
  }
  TrainingParts& parts = *built;
  while (parts.counters.step <= step) {
    parts.enter("train", config_.deadline.step);
    const std::int64_t now = parts.counters.step;
    const StepResult again = naming_held_memory(
        parts.engine, [&] { return parts.step->run(parts.counters, host_.stop.signal()); });
    compare(parts, now, again,
            fmt::format("step {} stood out; replayed from step {}", step + 1, from));
    if (again.judgement.breaks_off()) {
      break;
    }
    if (again.stop_signal != 0) {
      return "not replayed to the end, because the run was asked to stop";
    }
  }
  return fmt::format(
      "replayed from step {}, it has the same bits: data or the optimizer caused it, not the "
      "hardware",
      from);
}

// Throws if the step's bits differ from the recorded ones; does nothing without a record.
void Recovery::compare(TrainingParts& parts, std::int64_t step, const StepResult& result,
                       const std::string& where) const {
  const StepRecord* const first = records_.find(step);
  if (first == nullptr) {
    return;
  }
  Communicator& world = host_.world;
  const StepRecord again{step, result.loss, result.grad_norm, result.bits};
  const std::string own = difference(*first, again, parts.engine.micro_batches(result.sequences));
  const std::string ranks = gather_faults(world, own);
  const std::string sums = difference_of_sums(*first, again);
  if (ranks.empty() && sums.empty()) {
    return;
  }
  const std::string advice =
      "A processor, its memory or the network changed bits: drain the node, check it, and start "
      "again";
  if (ranks.empty()) {
    throw DeviceError(
        fmt::format("{}, step {} has different bits: {}; {}. {}", where, step + 1, sums,
                    config_.divergence.digests ? "the micro-batches of all ranks have the same bits"
                                               : "divergence.digests=true names the rank next time",
                    advice));
  }
  const std::int64_t rank = all_reduce_value(
      world, std::int64_t{own.empty() ? world.size() : world.rank()}, ReduceOp::min);
  throw RankFault(
      fmt::format("{}, step {} has different bits: {}. {}", where, step + 1, ranks, advice),
      static_cast<int>(rank));
}

std::unique_ptr<TrainingParts> Recovery::go_back(const std::vector<std::int64_t>& steps,
                                                 const TrainingCounters& failed,
                                                 const std::string& what) {
  for (const std::int64_t step : steps) {
    try {
      auto parts =
          std::make_unique<TrainingParts>(config_, host_, StartPoint{step, step == 0, failed});
      const DataWindow& window = parts->counters.left_out.back();
      say(fmt::format(
          "{}\nrewound to step {}; batches {} to {} of the data are left out (rewind {} of {})",
          what, step, window.first, window.first + window.count - 1, parts->counters.rewinds,
          config_.divergence.max_rewinds));
      if (host_.world.rank() == 0) {
        host_.log.event("rewind", {{"from", failed.step + 1},
                                   {"step", step},
                                   {"first", window.first},
                                   {"count", window.count},
                                   {"rewinds", parts->counters.rewinds}});
      }
      return parts;
    } catch (const DataError& error) {
      say(fmt::format("cannot rewind to step {}: {}", step, error.what()));
    }
  }
  throw DivergenceError(fmt::format(
      "{}\nThere is no complete checkpoint at least {} back (divergence.rewind_steps): raise "
      "checkpoint.keep, or resume from another one (checkpoint.resume=STEP)",
      what, counted(config_.divergence.rewind_steps, "step")));
}

}  // namespace trireme
