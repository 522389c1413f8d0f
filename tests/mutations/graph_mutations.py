"""The mutations of micro-batches that are repeated as CUDA graphs."""

from mutation import GRAPHS, TRAIN, Mutation

FLIGHT = "src/train/engine/flight_graphs.cc"
REPEATED = [
    Mutation(
        "graph_position", "refresh of dropout's position before a graph is repeated", FLIGHT,
        "  if (parts_.drops) {\n", "  if (parts_.drops && begun_ == 0) {\n", f"{GRAPHS}/dropout",
        program=TRAIN),
    Mutation(
        "graph_attention_position", "the same for a model with dropout in attention only",
        "src/train/engine/micro_batch_graphs.cc",
        "  return model.dropout > 0 || model.attention_dropout > 0;\n",
        "  return model.dropout > 0;\n", f"{GRAPHS}/attention_dropout", program=TRAIN),
    Mutation(
        "graph_tokens", "refresh of the tokens before a graph is repeated", FLIGHT,
        "  place_tokens(micro_batch);\n", "  if (begun_ == 0) place_tokens(micro_batch);\n",
        f"{GRAPHS}/one_micro_batch", program=TRAIN),
    Mutation(
        "graph_input", "refresh of a stage's input before a graph is repeated", FLIGHT,
        "    own_.stream().copy(recorded.input.view(), input.view());\n",
        "    if (mode_ != Mode::repeat) own_.stream().copy(recorded.input.view(), input.view());\n",
        f"{GRAPHS}/interleaved", program=TRAIN),
    Mutation(
        "graph_scale", "a new recording for another weight of the loss", FLIGHT,
        "scale != scale_ || ", "", f"{GRAPHS}/batch_ramp", program=TRAIN),
    Mutation(
        "graph_gradients", "copy of a bucket that cannot be added yet",
        "src/parallel/gradient_leaf.cc",
        "    buffers_[static_cast<std::size_t>(bucket)] = take(bucket);\n",
        "    buffers_[static_cast<std::size_t>(bucket)] = memory_.take_whole(bucket);\n",
        f"{GRAPHS}/pp_tied", program=TRAIN),
]
