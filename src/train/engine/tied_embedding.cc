#include "src/train/engine/tied_embedding.h"

namespace trireme {
namespace {

// No other message is in flight between steps.
constexpr int kTag = 0;

}  // namespace

void refresh_tied_embedding(ModelChunk& first, ModelChunk& last, Communicator& pp, Stream& stream) {
  if (last.model.is_tied_last()) {
    const ParameterId matrix = last.model.tied_matrix();
    last.state.parameters().need(matrix, matrix + 1);
    pp.send(last.parameters.compute(matrix), 0, kTag, &stream).wait(stream);
    last.state.parameters().release(matrix, matrix + 1);
  }
  if (first.model.is_tied_first()) {
    const View matrix = first.parameters.compute(first.model.tied_matrix());
    pp.recv(matrix, pp.size() - 1, kTag, &stream).wait(stream);
  }
}

}  // namespace trireme
