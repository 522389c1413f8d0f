"""Mutations of attention by cuDNN (train.attention)."""

from mutation import CUDA, GRAPHS, TRAIN, Mutation

GRAPH = f"{CUDA}/cudnn_attention.cc"
ENTRIES = f"{CUDA}/cudnn_entries.cc"
PLANS = f"{CUDA}/cudnn_graph.cc"
AGREES = "DTypes/CudnnAttentionOf.AgreesWithTheReference/BF16"
ENGINES = "CudnnAttentionEngines"

CUDNN = [
    Mutation(
        "cudnn_mask", "causal mask of cuDNN's attention", GRAPH, "{row, column}", "{column, row}",
        AGREES),
    Mutation(
        "cudnn_gradient_mask", "causal mask of the gradients of cuDNN's attention", GRAPH,
        "{mask(shifted)}", "{shifted}", AGREES),
    Mutation(
        "cudnn_out_stride", "stride of the result of cuDNN's attention", GRAPH,
        "tensor(kTensorOut, kind_.heads, out_stride()));\n}",
        "tensor(kTensorOut, kind_.heads, kind_.head_dim));\n}", AGREES),
    Mutation(
        "cudnn_kv_stride", "stride of the gradients of keys and values", GRAPH,
        "tensor(id, kind_.kv_heads, kind_.kv_stride);\n    if",
        "tensor(id, kind_.kv_heads, kind_.kv_heads * kind_.head_dim);\n    if", AGREES),
    Mutation(
        "cudnn_scale", "scale of the gradients of scores", GRAPH, "{weighted, scale}",
        "{weighted, graph_.number(kTensorOne)}", AGREES),
    Mutation(
        "cudnn_delta", "term of the softmax in the gradients of scores", GRAPH,
        "CUDNN_POINTWISE_SUB, {dp, delta}", "CUDNN_POINTWISE_ADD, {dp, delta}", AGREES),
    Mutation(
        "cudnn_delta_place", "place of the row sums beside the workspace", ENTRIES,
        "{kTensorDelta, area + workspace}", "{kTensorDelta, area}", AGREES),
    Mutation(
        "cudnn_lse_place", "place of a log-sum-exp that nobody keeps", ENTRIES,
        "p.lse.empty() ? area + workspace : p.lse.data", "p.lse.data",
        "CudnnAttention.NeedsNoPlaceForTheLogSumExp"),
    Mutation(
        "cudnn_dropout", "dropout that cuDNN's graphs do not have", ENTRIES,
        " && p.dropout.probability == 0", "", "CudnnAttention.LeavesOtherCallsToOwnKernels"),
    Mutation(
        "cudnn_alignment", "alignment of the operands of cuDNN's attention", ENTRIES,
        " && is_aligned(p.k)", "", "CudnnAttention.LeavesOtherCallsToOwnKernels"),
    Mutation(
        "cudnn_stream", "stream of cuDNN's attention", ENTRIES,
        "calls_.set_stream(handle_, cuda_stream(stream))", "calls_.set_stream(handle_, nullptr)",
        f"{GRAPHS}/cudnn", program=TRAIN),
    Mutation(
        "cudnn_determinism", "refusal of engines that are not deterministic", PLANS,
        "CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) > 0", "CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) > 9",
        f"{ENGINES}.RefusesAnEngineThatIsNotDeterministic"),
    Mutation(
        "cudnn_workspace", "refusal of an engine with a larger workspace", ENTRIES,
        "plan->workspace_bytes > expected", "plan->workspace_bytes > 2 * expected",
        f"{ENGINES}.RefusesAnEngineThatWantsMoreThanWasPredicted"),
    Mutation(
        "cudnn_choice", "refusal of calls for which no engine was chosen", ENTRIES,
        "    is_closed_ = true;\n", "", f"{ENGINES}.AreNotChosenAfterTheFirstStep"),
    Mutation(
        "cudnn_memory", "workspace of cuDNN's attention in the predicted memory",
        "src/train/memory/memory_plan.cc", "return cuda_attention_bytes(call);", "return 0;",
        "Layouts/DeviceMemory.IsPredicted/cudnn_grows", program=TRAIN),
]
