#include "src/train/training_state.h"

#include <string>

#include "src/base/json_fields.h"

namespace trireme {
namespace {

// f32 data of the held elements [first, first + data.count) of a parameter.
struct NamedPiece {
  std::string name;
  ParameterId id;
  std::int64_t first;
  View data;
};

std::vector<NamedPiece> name_pieces(const ParameterStore& parameters,
                                    const std::vector<StatePiece>& pieces) {
  std::vector<NamedPiece> named;
  for (const StatePiece& piece : pieces) {
    const std::string& name = parameters[piece.id].name;
    named.push_back({name, piece.id, piece.first, piece.value});
    named.push_back({"optimizer.m." + name, piece.id, piece.first, piece.m});
    named.push_back({"optimizer.v." + name, piece.id, piece.first, piece.v});
  }
  return named;
}

// Calls f(place, block, the block's data with the gaps between its rows) for each of its blocks.
template <class F>
void each_block(const ParameterStore& parameters, const NamedPiece& piece, F f) {
  const Place& place = parameters[piece.id].place;
  for (const HeldBlock& block : blocks_of(place, piece.first, piece.data.count)) {
    const BlockRows rows = block_rows(block.extent, block.pitch);
    f(place, block,
      piece.data.slice(block.first - piece.first, rows.span(block.extent.elements())));
  }
}

}  // namespace

std::vector<TensorBlock> blocks_to_save(const ParameterStore& parameters,
                                        const std::vector<StatePiece>& pieces) {
  std::vector<TensorBlock> blocks;
  for (const NamedPiece& piece : name_pieces(parameters, pieces)) {
    each_block(parameters, piece, [&](const Place& place, const HeldBlock& block, const View& x) {
      blocks.push_back({piece.name, DType::f32, place.whole, block.extent, x, block.pitch});
    });
  }
  return blocks;
}

std::vector<BlockRequest> blocks_to_load(const ParameterStore& parameters,
                                         const std::vector<StatePiece>& pieces) {
  std::vector<BlockRequest> requests;
  for (const NamedPiece& piece : name_pieces(parameters, pieces)) {
    each_block(parameters, piece, [&](const Place& place, const HeldBlock& block, const View& x) {
      requests.push_back({piece.name, place.whole, block.extent, x, block.pitch});
    });
  }
  return requests;
}

std::vector<BlockRequest> parameters_to_load(const MasterWeights& masters) {
  std::vector<BlockRequest> requests;
  for (ParameterId id = 0; id < masters.store().count(); ++id) {
    const Parameter& p = masters.store()[id];
    requests.push_back({p.name, p.place.whole, Extent::whole(p.place.whole), masters.value(id)});
  }
  return requests;
}

nlohmann::json to_json(const TrainingCounters& c) {
  return {{"step", c.step},
          {"updates", c.updates},
          {"skipped_steps", c.skipped_steps},
          {"skipped_in_a_row", c.skipped_in_a_row}};
}

TrainingCounters counters_from_json(const nlohmann::json& json) {
  return {count_field(json, "step"), count_field(json, "updates"),
          count_field(json, "skipped_steps"), count_field(json, "skipped_in_a_row")};
}

}  // namespace trireme
