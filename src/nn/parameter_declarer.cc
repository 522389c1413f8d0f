#include "src/nn/parameter_declarer.h"

#include <cmath>

#include "src/nn/model_size.h"

namespace trireme {
namespace {

Parameter normal_matrix(const std::string& name, const Place& place, double deviation) {
  Parameter parameter;
  parameter.name = name;
  parameter.place = place;
  parameter.initializer = {Initializer::Kind::normal, static_cast<float>(deviation)};
  parameter.decays = true;
  return parameter;
}

Parameter constant_vector(const std::string& name, const Place& place, Initializer::Kind kind) {
  Parameter parameter;
  parameter.name = name;
  parameter.place = place;
  parameter.initializer = {kind, 0};
  return parameter;
}

Parameter hidden_matrix(const std::string& name, const Place& place, double deviation) {
  Parameter parameter = normal_matrix(name, place, deviation);
  parameter.hidden = true;
  return parameter;
}

// Returns the place of a part of an adapter that all ranks hold alike.
Place held_alike(const Shape& whole, bool primary) {
  Place place = Place::all(whole);
  place.primary = primary;
  return place;
}

}  // namespace

Place ParameterDeclarer::common(const Shape& shape) const {
  Place place = Place::all(shape);
  place.primary = share_.rank == 0;
  return place;
}

ParameterId ParameterDeclarer::add(Parameter parameter) {
  parameter.frozen = config_.freezes(parameter.name);
  parameter.trained = parameter.trained && !parameter.frozen;
  return store_.add(std::move(parameter));
}

ParameterId ParameterDeclarer::matrix(const std::string& name, const Place& place) {
  return add(hidden_matrix(name, place, config_.initializer_range));
}

ParameterId ParameterDeclarer::joined_matrix(const std::string& name, const Place& place) {
  Parameter parameter = hidden_matrix(name, place, config_.initializer_range);
  parameter.joined = true;
  return add(std::move(parameter));
}

ParameterId ParameterDeclarer::residual_matrix(const std::string& name, const Place& place) {
  const double branches = 2.0 * static_cast<double>(config_.layers);
  return add(hidden_matrix(name, place, config_.initializer_range / std::sqrt(branches)));
}

ParameterId ParameterDeclarer::ones(const std::string& name, std::int64_t elements) {
  return add(constant_vector(name, common({elements}), Initializer::Kind::ones));
}

ParameterId ParameterDeclarer::zeros(const std::string& name, std::int64_t elements) {
  return add(constant_vector(name, common({elements}), Initializer::Kind::zeros));
}

ParameterId ParameterDeclarer::zeros(const std::string& name, const Place& place) {
  return add(constant_vector(name, place, Initializer::Kind::zeros));
}

ParameterId ParameterDeclarer::joined_zeros(const std::string& name, const Place& place) {
  Parameter parameter = constant_vector(name, place, Initializer::Kind::zeros);
  parameter.joined = true;
  return add(std::move(parameter));
}

ParameterId ParameterDeclarer::common_matrix(const std::string& name, const Shape& shape) {
  return add(normal_matrix(name, common(shape), config_.initializer_range));
}

ParameterId ParameterDeclarer::vocabulary_matrix(const std::string& name, bool trained) {
  Parameter parameter =
      normal_matrix(name, Place::of_rows({config_.vocab, config_.hidden}, share_.vocabulary),
                    config_.initializer_range);
  parameter.trained = trained;
  return add(std::move(parameter));
}

std::vector<IndexRange> ParameterDeclarer::packed_columns() const {
  const std::int64_t keys = config_.attention_width();
  const std::int64_t values = keys + config_.kv_heads * config_.head_dim;
  const IndexRange kv = key_rows();
  return {query_rows(), {keys + kv.first, kv.count}, {values + kv.first, kv.count}};
}

// PEFT draws A from uniform numbers up to 1 / sqrt(in); these are normal ones of the same variance.
ParameterId ParameterDeclarer::add_a(const std::string& name, const Place& weight,
                                     const Linear& linear, bool divides_out, bool joined) {
  const std::int64_t in = weight.whole[linear.transposed ? 1 : 0];
  const Shape whole{config_.lora.rank, in};
  Parameter parameter;
  parameter.name = name + ".lora_A.weight";
  parameter.place = held_alike(whole, share_.rank == 0);
  if (!divides_out) {
    parameter.place = Place::of_columns(
        whole, linear.transposed ? weight.columns : std::vector<IndexRange>{weight.rows});
  }
  const double deviation = 1 / std::sqrt(3.0 * static_cast<double>(in));
  parameter.initializer = {Initializer::Kind::normal, static_cast<float>(deviation)};
  parameter.decays = true;
  parameter.joined = joined;
  return store_.add(std::move(parameter));
}

ParameterId ParameterDeclarer::add_b(const std::string& name, const Place& weight,
                                     const Linear& linear, bool divides_out) {
  const std::int64_t rank = config_.lora.rank;
  const std::int64_t out = weight.whole[linear.transposed ? 0 : 1];
  const Shape whole = linear.transposed ? Shape{out, rank} : Shape{rank, out};
  Parameter parameter;
  parameter.name = name + ".lora_B.weight";
  parameter.place = held_alike(whole, share_.rank == 0);
  if (divides_out) {
    parameter.place = linear.transposed ? Place::of_rows(whole, weight.rows)
                                        : Place::of_columns(whole, weight.columns);
    parameter.place.primary = weight.primary;
  }
  parameter.decays = true;
  return store_.add(std::move(parameter));
}

void ParameterDeclarer::adapt(Linear& linear, const std::vector<AdaptedWeight>& weights,
                              bool divides_out) {
  Adapters adapters;
  adapters.rank = config_.lora.rank;
  adapters.in = linear.in;
  adapters.out = linear.out;
  adapters.scale = static_cast<float>(config_.lora.scale());
  adapters.transposed = linear.transposed;
  adapters.divides_out = divides_out;
  std::vector<const AdaptedWeight*> chosen;
  std::int64_t first = 0;
  for (const AdaptedWeight& weight : weights) {
    const std::int64_t out = linear.transposed ? weight.place.rows.count : weight.place.width();
    if (config_.lora.adapts(weight.product)) {
      chosen.push_back(&weight);
      adapters.slots.push_back({-1, first, out});
    }
    first += out;
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const ParameterId a = add_a(chosen[i]->module, chosen[i]->place, linear, divides_out, i > 0);
    adapters.a = i == 0 ? a : adapters.a;
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    adapters.slots[i].b = add_b(chosen[i]->module, chosen[i]->place, linear, divides_out);
  }
  linear.adapters = adapters.slots.empty() ? Adapters{} : std::move(adapters);
}

}  // namespace trireme
