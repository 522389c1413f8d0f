#include "src/train/engine/fp8_scaling.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "src/kernels/fp8.h"

namespace trireme {
namespace {

// Returns the names of the parameters of all ranks, sorted, each once.
std::vector<std::string> all_names(const ModelChunks& chunks, Communicator& world) {
  std::string own;
  for (const auto& chunk : chunks) {
    for (const Parameter& parameter : chunk->parameters.all()) {
      own += parameter.name + '\n';
    }
  }
  std::vector<std::string> texts = all_gather_text(world, own);
  texts.push_back(own);  // predicting memory gathers nothing: it has no other ranks
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    std::istringstream lines(text);
    for (std::string name; std::getline(lines, name);) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Fp8Format format_of(std::size_t role) {
  return Fp8Products::format_of(static_cast<Fp8Products::Role>(role));
}

}  // namespace

Fp8Scaling::Fp8Scaling(const RunConfig& config, const ModelChunks& chunks, Communicator& world)
    : config_(config),
      chunks_(chunks),
      world_(world),
      is_on_(config.train.uses_fp8()),
      is_delayed_(is_on_ && config.train.fp8_scaling == "delayed"),
      products_(chunks.size()) {
  if (!is_delayed_) {
    return;
  }
  names_ = all_names(chunks, world);
  for (const auto& chunk : chunks) {
    DeviceContext& context = chunk->parameters.context();
    const Shape shape{chunk->parameters.count(), Fp8Products::kRoles};
    ChunkState state;
    state.scales = Tensor(context.state(), shape, DType::f32);
    state.most = Tensor(context.state(), shape, DType::f32);
    for (const Parameter& parameter : chunk->parameters.all()) {
      const auto at = std::lower_bound(names_.begin(), names_.end(), parameter.name);
      state.parameters.push_back(static_cast<std::size_t>(at - names_.begin()));
    }
    products_[states_.size()] = Fp8Products(state.scales.view(), state.most.view());
    states_.push_back(std::move(state));
  }
}

void Fp8Scaling::begin_step(const Fp8History& history) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const ChunkState& state = states_[i];
    Stream& stream = chunks_[i]->parameters.context().stream();
    const std::vector<float> scales = scales_of(state, history);
    stream.clear(state.most.view());
    stream.copy(state.scales.view(),
                {scales.data(), static_cast<std::int64_t>(scales.size()), DType::f32});
  }
}

// Returns the scales of a chunk's operands: [parameters, kRoles].
std::vector<float> Fp8Scaling::scales_of(const ChunkState& state, const Fp8History& history) const {
  constexpr auto kRoles = static_cast<std::size_t>(Fp8Products::kRoles);
  std::vector<float> scales;
  for (const std::size_t parameter : state.parameters) {
    const auto found = history.find(names_[parameter]);
    for (std::size_t role = 0; role < kRoles; ++role) {
      const bool is_known = found != history.end() && !found->second[role].empty();
      scales.push_back(is_known ? fp8_scale(*std::max_element(found->second[role].begin(),
                                                              found->second[role].end()),
                                            format_of(role))
                                : 0);
    }
  }
  return scales;
}

void Fp8Scaling::read(HostReads& reads) {
  for (ChunkState& state : states_) {
    state.read = reads.add(state.most.view());
  }
}

void Fp8Scaling::take(const HostReads& reads) {
  constexpr auto kRoles = static_cast<std::size_t>(Fp8Products::kRoles);
  magnitudes_.assign(names_.size() * kRoles, 0.0F);
  for (const ChunkState& state : states_) {
    const auto own = reads.at<float>(state.read);
    for (std::size_t at = 0; at < own.size(); ++at) {
      float& most = magnitudes_[state.parameters[at / kRoles] * kRoles + at % kRoles];
      most = std::max(most, std::isfinite(own[at]) ? own[at] : INFINITY);
    }
  }
}

void Fp8Scaling::finish_step(Fp8History& history) {
  if (!is_delayed_) {
    return;
  }
  constexpr auto kRoles = static_cast<std::size_t>(Fp8Products::kRoles);
  std::vector<float>& all = magnitudes_;
  world_.all_reduce({all.data(), static_cast<std::int64_t>(all.size()), DType::f32}, ReduceOp::max)
      .wait();
  const auto length = static_cast<std::size_t>(config_.train.fp8_history);
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (all[at] > 0 && std::isfinite(all[at])) {
      std::vector<float>& past = history[names_[at / kRoles]][at % kRoles];
      past.push_back(all[at]);
      past.erase(past.begin(),
                 past.end() - static_cast<std::ptrdiff_t>(std::min(past.size(), length)));
    }
  }
}

}  // namespace trireme
