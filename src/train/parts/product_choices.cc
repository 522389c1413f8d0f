#include "src/train/parts/product_choices.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/units.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

// Conflict is a product or a call of attention that two ranks compute by different algorithms.
struct Conflict {
  std::string what;
  int ranks[2];
  std::string algorithms[2];
};

// RankTables holds the different tables of a job, each with the first rank that has it.
using RankTables = std::vector<std::pair<int, ProductTable>>;

// Most ranks have equal tables: only the first rank of equal ones sends its own.
RankTables gather_tables(Communicator& world, const ProductTable& own) {
  const std::string text = nlohmann::json(own).dump();
  const std::vector<std::string> digests = all_gather_text(world, sha256_hex(text));
  RankTables tables;
  for (auto digest = digests.begin(); digest != digests.end(); ++digest) {
    if (std::find(digests.begin(), digest, *digest) == digest) {
      const auto rank = static_cast<int>(digest - digests.begin());
      const std::string sent = broadcast_text(world, text, rank);
      tables.emplace_back(rank, nlohmann::json::parse(sent).get<ProductTable>());
    }
  }
  return tables;
}

bool is_attention(const ProductTable::value_type& entry) {
  return entry.first.starts_with("attention");
}

std::optional<Conflict> find_conflict(const RankTables& tables) {
  std::map<std::string, std::pair<int, std::string>> first;
  for (const auto& [rank, table] : tables) {
    for (const auto& entry : table) {
      const auto& [call, algorithm] = entry;
      const auto known = first.try_emplace(call, rank, algorithm).first->second;
      if (known.second != algorithm) {
        const std::string what = is_attention(entry) ? call : "the product " + call;
        return Conflict{what, {known.first, rank}, {known.second, algorithm}};
      }
    }
  }
  return std::nullopt;
}

// Returns a sentence about the algorithms of a step.
std::string text_of(const ProductTable& table) {
  const auto products =
      static_cast<std::int64_t>(table.size()) - std::ranges::count_if(table, is_attention);
  std::string text = fmt::format("{}: chose and checked an algorithm for each of {}",
                                 cuda_product_library(), counted(products, "matrix product"));
  if (const auto call = std::ranges::find_if(table, is_attention); call != table.end()) {
    text += fmt::format("; {} computes attention", call->second.substr(0, call->second.find(',')));
  }
  return text;
}

std::string device_name(Device device) {
  const cuda::DeviceFacts facts = cuda::device_identity(device.index);
  return fmt::format("CUDA device {} ({}, {}, {})", device.index, facts.name, facts.uuid,
                     facts.bus);
}

}  // namespace

ProductTable agree_on_products(Communicator& world, const ProductTable& own,
                               const std::string& device, const std::string& reproducibility) {
  const RankTables tables = gather_tables(world, own);
  const std::optional<Conflict> conflict = find_conflict(tables);
  if (conflict && reproducibility != "fast") {
    const std::vector<std::string> devices = all_gather_text(world, device);
    const auto who = [&](int rank) {
      return fmt::format("rank {} (host {}, {})", rank, world.host(rank),
                         devices[static_cast<std::size_t>(rank)]);
    };
    throw ConfigError(fmt::format(
        "{} computes {} by {}, but {} by {}: their results have different bits, and "
        "numerics.reproducibility is {}; install the same driver, cuBLASLt and cuDNN on all "
        "nodes, leave out the node whose GPU differs, or choose fast",
        who(conflict->ranks[0]), conflict->what, conflict->algorithms[0], who(conflict->ranks[1]),
        conflict->algorithms[1], reproducibility));
  }
  ProductTable all;
  for (const auto& [rank, table] : tables) {
    all.insert(table.begin(), table.end());  // keeps the choice of the first rank
  }
  return all;
}

ProductTable ProductChoices::choose(const LibraryCalls& calls) const {
  ProductTable table = choose_cuda_products(device_.index, calls.products);
  if (config_.train.attends_by_cudnn()) {
    table.merge(choose_cuda_attention(device_.index, calls.attention));
  }
  return agree_on_products(world_, table, device_name(device_), config_.reproducibility);
}

void ProductChoices::add_to(nlohmann::json& numerics) {
  if (device_.kind != DeviceKind::cuda) {
    return;
  }
  const ProductTable table = choose(step_calls(config_, layout_, world_.rank()));
  if (world_.rank() == 0) {
    log_.event("algorithms", {{"chosen", table}}, text_of(table));
  }
  numerics["algorithms"] = table;
}

void ProductChoices::prepare_evaluations(std::int64_t samples) {
  if (device_.kind != DeviceKind::cuda || samples == 0) {
    return;
  }
  const std::int64_t batch = std::min(config_.train.micro_batch, samples);
  std::vector<std::int64_t> sizes = {batch};
  if (samples % batch > 0) {
    sizes.push_back(samples % batch);
  }
  (void)choose(evaluation_calls(config_, layout_, world_.rank(), sizes));
}

void ProductChoices::prepare(const std::vector<Matmul>& products) {
  if (device_.kind == DeviceKind::cuda) {
    (void)choose_cuda_products(device_.index, products);
  }
}

void ProductChoices::close() {
  if (device_.kind == DeviceKind::cuda) {
    close_cuda_choices(device_.index);
  }
}

}  // namespace trireme
