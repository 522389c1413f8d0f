#include "io/checkpoint/load/inventory.h"

#include <algorithm>
#include <tuple>

#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "mpi/agreement.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

// Returns why the step is of no use to this run, or "".
std::string refusal(const MemoryStep& step, const RunIdentity& identity) {
  if (!step.manifest) {
    return step.problem;
  }
  const json& extra = *step.manifest->meta.extra;
  const auto run = extra.find(kRunField);
  if (run != extra.end() && *run != identity.run) {
    return fmt::format("{} belongs to another run ({})", step.path.string(), run->dump());
  }
  if (identity.generation > 0 && step.name.generation >= identity.generation) {
    return fmt::format(
        "{} has generation {}, but this run has {}: its checkpoint folder was replaced",
        step.path.string(), step.name.generation, identity.generation);
  }
  return "";
}

json to_json(const InventoryEntry& entry) {
  return {{"step", entry.name.step},     {"generation", entry.name.generation},
          {"partner", entry.is_partner}, {"id", entry.id},
          {"shards", entry.shards},      {"path", entry.path.string()}};
}

InventoryEntry entry_from(const json& object) {
  InventoryEntry entry;
  entry.name = {count_field(object, "step"), count_field(object, "generation")};
  entry.is_partner = flag_field(object, "partner");
  entry.id = text_field(object, "id");
  entry.shards = counts_field(object, "shards");
  entry.path = text_field(object, "path");
  return entry;
}

NodeInventory parse_inventory(const std::string& text) {
  NodeInventory inventory;
  const json object = parse_json(text);
  for (const json& entry : array_field(object, "entries")) {
    inventory.entries.push_back(entry_from(entry));
  }
  for (const json& line : array_field(object, "problems")) {
    inventory.problems.push_back(line.get<std::string>());
  }
  inventory.is_damaged = flag_field(object, "damaged");
  return inventory;
}

// Replaces invalid UTF-8, since a path may contain any bytes.
std::string dumped(const json& object) {
  return object.dump(-1, ' ', true, json::error_handler_t::replace);
}

auto sort_key(const StepCandidate& step) {
  return std::tuple(-step.name.generation, -step.name.step, step.places.empty(), step.id);
}

// Returns the steps that rank 0 finds on disk, and appends their manifests.
json disk_steps(const fs::path& folder, std::optional<std::int64_t> only,
                std::vector<Inventory::Found>& manifests) {
  json found = {{"any", false}, {"steps", json::array()}};
  std::vector<std::string> problems;
  for (StepFolder& step : list_steps(folder)) {
    if (only && step.path.filename() != step_folder_name(*only)) {
      continue;
    }
    found["any"] = true;
    check_readable(step);
    if (!step.manifest) {
      problems.push_back(step.problem);
      continue;
    }
    const std::string id = contents_id(*step.manifest);
    found["steps"].push_back({{"step", step.step},
                              {"generation", step.manifest->generation},
                              {"id", id},
                              {"sha256", step.manifest_sha256}});
    manifests.push_back({id, std::move(*step.manifest), step.path});
  }
  found["problems"] = shortened(std::move(problems), folder);
  return found;
}

}  // namespace

Inventory::Inventory(Communicator& comm, const NodeMap& nodes, const NodeMemory& own,
                     const RunIdentity& identity)
    : comm_(comm) {
  if (!nodes.any()) {
    return;
  }
  json mine = {{"entries", json::array()}, {"problems", json::array()}, {"damaged", false}};
  if (nodes.leads(comm.rank())) {
    for (MemoryStep& step : list_memory_steps(own)) {
      if (const std::string why = refusal(step, identity); !why.empty()) {
        mine["problems"].push_back(why);
        mine["damaged"] = mine["damaged"] || step.is_damaged;
        continue;
      }
      const std::string id = contents_id(*step.manifest);
      mine["entries"].push_back(to_json({step.name, step.is_partner, id, step.shards, step.path}));
      found_.push_back({id, std::move(*step.manifest), step.path});
    }
  }
  const std::vector<std::string> texts = all_gather_text(comm, dumped(mine));
  for (std::size_t node = 0; node < nodes.ranks.size(); ++node) {
    const int leader = nodes.ranks[node].front();
    inventories_.push_back(parse_inventory(texts[static_cast<std::size_t>(leader)]));
    const NodeInventory& inventory = inventories_.back();
    memory_is_damaged_ = memory_is_damaged_ || inventory.is_damaged;
    for (std::size_t i = 0; i < inventory.entries.size(); ++i) {
      add({inventory.entries[i].name, inventory.entries[i].id, {{node, i}}, {}, leader, {}});
    }
    for (const std::string& problem : inventory.problems) {
      problems_.push_back(fmt::format("memory of {}: {}", nodes.names[node], problem));
    }
  }
}

// Merges the candidate with the other copies of the same step.
void Inventory::add(StepCandidate candidate) {
  const auto same =
      std::find_if(candidates_.begin(), candidates_.end(), [&](const StepCandidate& known) {
        return known.name == candidate.name && known.id == candidate.id;
      });
  if (same == candidates_.end()) {
    candidates_.push_back(std::move(candidate));
    return;
  }
  same->places.insert(same->places.end(), candidate.places.begin(), candidate.places.end());
  if (!candidate.disk.empty()) {
    same->disk = candidate.disk;
    same->manifest_sha256 = candidate.manifest_sha256;
  }
}

void Inventory::add_disk(const fs::path& folder, std::optional<std::int64_t> only) {
  if (only) {
    std::erase_if(candidates_,
                  [&](const StepCandidate& candidate) { return candidate.name.step != *only; });
  }
  const std::string text =
      run_on_root(comm_, [&] { return dumped(disk_steps(folder, only, found_)); });
  const json found = parse_json(text);
  disk_has_any_ = flag_field(found, "any");
  for (const json& step : array_field(found, "steps")) {
    add({{count_field(step, "step"), count_field(step, "generation")},
         text_field(step, "id"),
         {},
         folder / step_folder_name(count_field(step, "step")),
         0,
         text_field(step, "sha256")});
  }
  for (const json& line : array_field(found, "problems")) {
    problems_.push_back(line.get<std::string>());
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [](const auto& a, const auto& b) { return sort_key(a) < sort_key(b); });
  if (only && candidates_.empty() && !disk_has_any_) {
    throw NotFound(fmt::format("{} has no {}", folder.string(), step_folder_name(*only)));
  }
}

const Inventory::Found& Inventory::found(const StepCandidate& candidate) const {
  const auto found = std::find_if(found_.begin(), found_.end(),
                                  [&](const Found& known) { return known.id == candidate.id; });
  check(found != found_.end(), "a candidate's manifest_rank has its manifest");
  return *found;
}

}  // namespace trireme
