#include "src/train/memory/memory_advice.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

// Keys maps keys to values, as a user types them.
using Keys = std::map<std::string, std::string>;

struct Proposal {
  RunConfig config;
  Keys keys;

  std::string text() const {
    std::vector<std::string> words;
    for (const auto& [key, value] : keys) {
      words.push_back(key + "=" + value);
    }
    return fmt::format("{}", fmt::join(words, " "));
  }
};

class Advisor {
 public:
  Advisor(const RunConfig& config, const Layout& layout, const std::vector<HostShare>& hosts,
          const std::vector<std::int64_t>& resident, MemoryPlace place)
      : config_(config), grid_(layout.grid), hosts_(hosts), resident_(resident), place_(place) {}

  std::optional<MemoryAdvice> find() const {
    const auto changes = this->changes();
    for (const auto& change : changes) {
      Proposal alone{config_, {}};
      if (change(alone) && fits(alone.config)) {
        return MemoryAdvice{alone.text(), alone.config};
      }
    }
    Proposal together{config_, {}};
    for (const auto& change : changes) {
      Proposal next = together;
      if (!change(next) || !is_valid(next.config)) {
        continue;
      }
      together = next;
      if (fits(together.config)) {
        return MemoryAdvice{together.text(), together.config};
      }
    }
    return std::nullopt;
  }

 private:
  // Changes a proposal, or returns false if the change would gain nothing.
  using Change = std::function<bool(Proposal&)>;

  std::vector<Change> changes() const {
    std::vector<Change> all = {recompute("selective"), zero(1), zero(2), recompute("full")};
    for (std::int64_t batch = config_.train.micro_batch / 2; batch >= 1; batch /= 2) {
      all.push_back(micro_batch(batch));
    }
    all.push_back(zero(3));
    for (int times = 2; times <= grid_.dp(); times *= 2) {
      all.push_back(split(times, 1));
    }
    for (int times = 2; times <= grid_.dp(); times *= 2) {
      all.push_back(split(1, times));
    }
    return all;
  }

  static Change recompute(const char* kind) {
    return [kind](Proposal& p) {
      const std::string before = p.config.train.recompute;
      const bool more = before == "none" || (before == "selective" && kind == std::string("full"));
      const bool deeper = before == "full" && kind == before && p.config.train.recompute_every > 1;
      if (!more && !deeper) {
        return false;
      }
      p.keys["train.recompute"] = p.config.train.recompute = kind;
      if (p.config.train.recompute_every != 1) {
        p.config.train.recompute_every = 1;
        p.keys["train.recompute_every"] = "1";
      }
      return true;
    };
  }

  Change zero(int level) const {
    return [this, level](Proposal& p) {
      if (grid_.dp() == 1 || p.config.parallel.zero >= level) {
        return false;
      }
      p.config.parallel.zero = level;
      p.keys["parallel.zero"] = fmt::format("{}", level);
      return true;
    };
  }

  static Change micro_batch(std::int64_t batch) {
    return [batch](Proposal& p) {
      if (p.config.train.micro_batch <= batch || p.config.batches().stage_not_multiple_of(batch)) {
        return false;
      }
      p.config.train.micro_batch = batch;
      p.keys["train.micro_batch"] = fmt::format("{}", batch);
      return true;
    };
  }

  // Trades replicas for more ranks per replica.
  Change split(int more_tp, int more_pp) const {
    return [this, more_tp, more_pp](Proposal& p) {
      if (grid_.dp() % (more_tp * more_pp) != 0) {
        return false;
      }
      const auto set = [&](const char* key, IntegerOrWord& value, int degree) {
        value = {degree, ""};
        p.keys[key] = fmt::format("{}", degree);
      };
      set("parallel.dp", p.config.parallel.dp, grid_.dp() / more_tp / more_pp);
      set("parallel.tp", p.config.parallel.tp, grid_.tp() * more_tp);
      set("parallel.pp", p.config.parallel.pp, grid_.pp() * more_pp);
      return true;
    };
  }

  std::optional<Layout> layout_of(const RunConfig& config) const {
    try {
      return make_layout(config, grid_.world_size(), 0);
    } catch (const ConfigError&) {
      return std::nullopt;
    }
  }
  bool is_valid(const RunConfig& config) const { return layout_of(config).has_value(); }

  bool fits(const RunConfig& config) const {
    const auto layout = layout_of(config);
    if (!layout) {
      return false;
    }
    const std::vector<MemoryPlan> plans = plan_memory_of_all(config, *layout, resident_, place_);
    return std::all_of(hosts_.begin(), hosts_.end(), [&](const HostShare& host) {
      return to_come(host, plans, resident_) <= host.available;
    });
  }

  const RunConfig& config_;
  const ProcessGrid& grid_;
  const std::vector<HostShare>& hosts_;
  const std::vector<std::int64_t>& resident_;
  MemoryPlace place_;
};

}  // namespace

std::int64_t to_come(const HostShare& host, const std::vector<MemoryPlan>& plans,
                     const std::vector<std::int64_t>& resident_at_start) {
  std::int64_t sum = 0;
  std::int64_t snapshots = 0;
  for (const int rank : host.ranks) {
    const auto r = static_cast<std::size_t>(rank);
    sum += plans.at(r).to_come(resident_at_start.at(r));
    snapshots += plans.at(r).snapshot;
  }
  return sum - std::min(host.held, snapshots);
}

std::optional<MemoryAdvice> memory_advice(const RunConfig& config, const Layout& layout,
                                          const std::vector<HostShare>& hosts,
                                          const std::vector<std::int64_t>& resident_at_start,
                                          MemoryPlace place) {
  return Advisor(config, layout, hosts, resident_at_start, place).find();
}

std::optional<std::string> memory_fault(const RunConfig& config, const Layout& layout,
                                        const std::vector<HostShare>& hosts,
                                        const std::vector<MemoryPlan>& plans,
                                        const std::vector<std::int64_t>& resident_at_start,
                                        MemoryPlace place) {
  const auto lack = [&](const HostShare& host) {
    return to_come(host, plans, resident_at_start) - host.available;
  };
  const auto worst =
      std::max_element(hosts.begin(), hosts.end(),
                       [&](const HostShare& a, const HostShare& b) { return lack(a) < lack(b); });
  if (worst == hosts.end() || lack(*worst) <= 0) {
    return std::nullopt;
  }
  const auto advice = memory_advice(config, layout, hosts, resident_at_start, place);
  const MemoryTable table = memory_table(plans);
  return fmt::format(
      "the run does not fit into memory: {} has {} available ({}), but its {} {} more, {} too "
      "much\nin {}:\n{}\n{}; or override with run.memory_check=off",
      worst->host, format_bytes(worst->available), worst->source,
      worst->ranks.size() == 1 ? "rank needs" : fmt::format("{} ranks need", worst->ranks.size()),
      format_bytes(to_come(*worst, plans, resident_at_start)), format_bytes(lack(*worst)),
      table.unit, fmt::join(table.lines, "\n"),
      advice ? fmt::format("the cheapest change that makes it fit: {}", advice->keys)
             : fmt::format("neither recomputation, sharding, a smaller micro-batch nor another "
                           "layout of these ranks makes it fit: use more {} or a smaller model",
                           place == MemoryPlace::device ? "devices" : "hosts"));
}

}  // namespace trireme
