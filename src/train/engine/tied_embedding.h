// Refreshes the copy of a tied embedding that the first pipeline stage holds
// (docs/decisions/0010-tied-embedding-on-the-last-stage.md).
#pragma once

#include "mpi/communicator.h"
#include "src/train/engine/model_chunk.h"

namespace trireme {

// Sends the working copy of the matrix from the last stage to the first. Does nothing on other
// stages, or if embedding and head are not one matrix on two stages. first, last: the first and the
// last chunk of this rank; pp: its pipeline; stream: the one that their work is queued on.
void refresh_tied_embedding(ModelChunk& first, ModelChunk& last, Communicator& pp, Stream& stream);

}  // namespace trireme
