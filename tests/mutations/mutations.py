"""Mutations of the CUDA back end and of what uses it: each takes one safeguard out of it, and names
the test that must fail without it."""

from alibi_mutations import ALIBI
from cudnn_mutations import CUDNN
from fp8_mutations import FP8
from graph_mutations import REPEATED
from mutation import (BITS, CALLS, CHANNEL, COMM, CUDA, DEVICE, MONITOR, NCCL, QUEUE, TREE, VALUES,
                      Mutation)
from warpgroup_mutations import WARPGROUPS

BARRIERS = [
    Mutation(
        "cross_entropy_barrier", "barrier between a row's statistics and its gradients",
        f"{CUDA}/rows.cu",
        "      slopes = ignored(slopes, p.losses + number);\n    }\n  }\n  __syncthreads();\n",
        "      slopes = ignored(slopes, p.losses + number);\n    }\n  }\n",
        f"{BITS}/cross_entropy_65x1003_bf16"),
    Mutation(
        "cross_entropy_copies", "wait for the logits that shared memory holds",
        f"{CUDA}/logit_rows.h", "    wait_copies<HeldGroups<T>::kStages - 1 - kStage>();\n", "",
        f"{VALUES}/cross_entropy_65x1003_bf16", source=f"{CUDA}/rows.cu"),
    Mutation(
        "embedding_copies", "wait for the rows of a frequent id", f"{CUDA}/embedding.cu",
        "    wait_copies<kStages - 1>();\n", "", "Embedding.AddsTheRowsOfAnIdInOrder"),
    Mutation(
        "embedding_arrival", "warp barrier before the rows of a frequent id are added",
        f"{CUDA}/embedding.cu", "    __syncwarp();\n    const auto count",
        "    const auto count", "Embedding.AddsTheRowsOfAnIdInOrder"),
    Mutation(
        "row_sort_counted", "barrier before the counts of a chunk are stored",
        f"{CUDA}/row_sort.cu",
        "    atomicAdd(&counts[p.digit_of(p.row_at(i))], 1);\n  }\n  __syncthreads();\n",
        "    atomicAdd(&counts[p.digit_of(p.row_at(i))], 1);\n  }\n",
        "Embedding.AddsTheRowsOfAnIdInOrder"),
    Mutation(
        "row_sort_places", "barrier before rows are stored at their places",
        f"{CUDA}/row_sort.cu", "  find_places(p, places);\n  __syncthreads();\n",
        "  find_places(p, places);\n", "Embedding.AddsTheRowsOfAnIdInOrder"),
    Mutation(
        "row_sort_sums", "barrier before the sums of warps are added while rows are sorted",
        f"{CUDA}/row_sort.cu", "    of_warps[warp] = sum;\n  }\n  __syncthreads();\n",
        "    of_warps[warp] = sum;\n  }\n", "Embedding.AddsTheRowsOfAnIdInOrder"),
    Mutation(
        "block_sum_first_barrier", "barrier before the sums of warps are added",
        f"{CUDA}/block_sums.h", "  __syncthreads();\n  T sum = partial[0];\n",
        "  T sum = partial[0];\n", f"{BITS}/forward_layer_norm_70x768_bf16",
        source=f"{CUDA}/norms.cu"),
    Mutation(
        "block_sum_second_barrier", "barrier before the next sum of a block",
        f"{CUDA}/block_sums.h", "  __syncthreads();\n  return sum;\n", "  return sum;\n",
        f"{BITS}/forward_layer_norm_70x768_bf16", source=f"{CUDA}/norms.cu"),
    Mutation(
        "rope_barrier", "barrier between angles and their use", f"{CUDA}/rope.cu",
        "  p.compute_angles(first, count, sines, cosines);\n  __syncthreads();\n",
        "  p.compute_angles(first, count, sines, cosines);\n", "Kernels/Gradient.Rope/*"),
    Mutation(
        "norm_held_barrier", "barrier before the means of a row that is copied ahead",
        f"{CUDA}/norm_backward.cu", "  __syncthreads();\n  float2 sums", "  float2 sums",
        f"{BITS}/backward_layer_norm_70x768_bf16"),
    Mutation(
        "column_sum_barrier", "barrier before the sums of rows are added",
        f"{CUDA}/column_sum.cu",
        "    partial[warp][lane * kCount + j] = sum.x[j];\n  }\n  __syncthreads();\n",
        "    partial[warp][lane * kCount + j] = sum.x[j];\n  }\n",
        f"{BITS}/column_sum_300x129_f32"),
    Mutation(
        "sum_barrier", "barrier between two tiles of a sum in order", f"{CUDA}/reductions.cu",
        "    __syncthreads();\n    tile = 1 - tile;\n", "    tile = 1 - tile;\n",
        "Sum.AddsManyElementsInOrder"),
    Mutation(
        "attention_forward_barrier", "barrier before a tile of keys is overwritten",
        f"{CUDA}/attention_forward.cu",
        "    __syncthreads();  // also: nobody", "    // also: nobody",
        "Attention.AgreesAtTheEdgesOfBlocks"),
    Mutation(
        "attention_backward_barrier", "barrier before a tile of queries is overwritten",
        f"{CUDA}/attention_backward.cu",
        "    __syncthreads();  // also: nobody", "    // also: nobody",
        "Attention.AgreesAtTheEdgesOfBlocks", times=2),
    Mutation(
        "attention_plain_barrier", "barrier before a tile is loaded, attention in fp32",
        f"{CUDA}/attention_plain.cu",
        "    __syncthreads();\n    load_tile(shared.tile_a, p.k",
        "    load_tile(shared.tile_a, p.k", "Attention.BitsDoNotDependOnTheSchedule", times=2),
    Mutation(
        "attention_store_warp_barrier", "warp barrier before rows are stored",
        f"{CUDA}/attention_tiles.h", "  __syncwarp();\n  constexpr int kPerRow = kChannels / 8;\n",
        "  constexpr int kPerRow = kChannels / 8;\n", "Attention.BitsDoNotDependOnTheSchedule",
        source=f"{CUDA}/attention_forward.cu"),
    Mutation(
        "attention_plain_warp_barrier", "warp barrier between weights and their use",
        f"{CUDA}/attention_plain.cu",
        "    __syncwarp();\n    add_weighted(out, shared.weights",
        "    add_weighted(out, shared.weights", "Attention.BitsDoNotDependOnTheSchedule"),
    Mutation(
        "attention_copy_wait", "wait for an asynchronous copy", f"{CUDA}/attention_forward.cu",
        "    wait_copies<0>();\n    __syncthreads();  // also",
        "    wait_copies<1>();\n    __syncthreads();  // also",
        "Attention.AgreesAtTheEdgesOfBlocks"),
]

BOUNDS = [
    Mutation(
        "each_wide_bound", "bound of accesses of 16 bytes", f"{CUDA}/each.h",
        "  if (f.wide && i + F::kCount <= f.count) {\n", "  if (f.wide) {\n",
        f"{VALUES}/add_chain_2_of_65537", source=f"{CUDA}/elementwise.cu"),
    Mutation(
        "rope_tokens_bound", "bound of the tokens of the last block", f"{CUDA}/rope.cu",
        "min(static_cast<std::int64_t>(p.block_tokens), p.tokens - first)",
        "static_cast<std::int64_t>(p.block_tokens)", f"{VALUES}/rope_2x65x3x64_at0_f32"),
    Mutation(
        "rope_groups_bound", "bound of the groups of angles of a block", f"{CUDA}/rope.cu",
        "      if (number + n * kRopeThreads < numbers) {\n        x[n].template rotate",
        "      {\n        x[n].template rotate", "Kernels/Gradient.Rope/*"),
    Mutation(
        "dropout_bound", "bound of the elements of a sample", f"{CUDA}/dropout.cu",
        "  if (element >= p.per_sample || i < 0", "  if (i < 0",
        "Dropout.DropsWhatTheReferenceDrops"),
    Mutation(
        "dropout_first_bound", "bound of the first element of a part of the samples",
        f"{CUDA}/dropout.cu", "|| i < 0 ||", "||", "Dropout.DropsWhatTheReferenceDrops"),
    Mutation(
        "dropout_last_bound", "bound of the last element of a part of the samples",
        f"{CUDA}/dropout.cu", "i < 0 || i >= p.count)", "i < 0)",
        "Dropout.DropsWhatTheReferenceDrops"),
    Mutation(
        "norm_rows_bound", "bound of the last block's rows", f"{CUDA}/norm_backward.cu",
        "  const std::int64_t end = min(begin + p.rows_per_block, p.rows);\n",
        "  const std::int64_t end = begin + p.rows_per_block;\n", "NormBackward.AddsManyRows",
        times=2),
    Mutation(
        "norm_held_rows_bound", "bound of the last block's rows that are copied ahead",
        f"{CUDA}/norm_backward.cu", "    if (row < end && i < p.channels) {\n      const",
        "    if (i < p.channels) {\n      const", "NormBackward.AddsManyRows"),
    Mutation(
        "norm_held_copies", "wait for a row that is copied ahead", f"{CUDA}/norm_backward.cu",
        "    wait_copies<kHeldRows - 1>();\n", "", "NormBackward.AddsManyRows"),
    Mutation(
        "column_sum_rows_bound", "bound of a chunk's rows", f"{CUDA}/column_sum.cu",
        "  const std::int64_t end = min(begin + p.chunk, p.rows);\n",
        "  const std::int64_t end = begin + p.chunk;\n", "ColumnSum.AddsManyRows"),
    Mutation(
        "column_sum_columns_bound", "bound of the columns", f"{CUDA}/column_sum.cu",
        "j < kColumns && column + j < p.columns;\n", "j < kColumns;\n",
        f"{VALUES}/column_sum_33x64_f32"),
    Mutation(
        "bias_bound", "bound of a bias's columns", f"{CUDA}/product_kernels.cu",
        "  if (column >= p.columns) {\n    return;\n  }\n", "",
        "Product.DoesWithoutEpilogues"),
    Mutation(
        "sum_bound", "bound of a sum's last tile", f"{CUDA}/reductions.cu",
        "        tiles[into][i] = from + i < count ? x[from + i] : 0.0F;\n",
        "        tiles[into][i] = from + i < count - 1 ? x[from + i] : 0.0F;\n",
        "Sum.AddsManyElementsInOrder"),
    Mutation(
        "embedding_held_bound", "bound of the held ids of frequent rows", f"{CUDA}/embedding.cu",
        "  if (id >= p.held || (border", "  if ((border", "Embedding.AddsTheRowsOfAnIdInOrder"),
    Mutation(
        "embedding_id_bound", "bound of token ids", f"{CUDA}/embedding.cu",
        "  const bool here = id >= 0 && id < p.held;\n", "  const bool here = id >= 0;\n",
        "Kernels/EachTable.IdsOutsideTheVocabularyBecomeNanOnADevice/*"),
    Mutation(
        "attention_rows_bound", "zeros behind the last key", f"{CUDA}/attention_tiles.h",
        "    } else {\n      *reinterpret_cast<Row8<T>*>(to) = Row8<T>{};\n    }\n", "    }\n",
        "Attention.AgreesAtTheEdgesOfBlocks", source=f"{CUDA}/attention_forward.cu"),
    Mutation(
        "attention_lse_bound", "bound of the queries' statistics",
        f"{CUDA}/attention_backward.cu",
        "i < left ? p.lse[at] * kLog2E : INFINITY;", "p.lse[at] * kLog2E;",
        "Attention.AgreesAtTheEdgesOfBlocks"),
    Mutation(
        "product_part_place", "place of each part of a long sum", f"{CUDA}/product_plan.cc",
        "b_.repeat(kind.parts, kind.k * kind.row_of_b());", "b_.repeat(kind.parts, 0);",
        f"{VALUES}/matmul_ta_f32_17x24x4096_bf16"),
    Mutation(
        "product_part_old", "old contents of C below the parts of a sum",
        f"{CUDA}/product_kernels.cu", "    if (accumulate) {\n", "    if (false) {\n",
        f"{VALUES}/matmul_ta_accumulate_17x24x4096_bf16"),
    Mutation(
        "embedding_first", "choice of the warp that adds the rows of an id",
        f"{CUDA}/embedding.cu", "p.sorted[first - 1].id != id;", "p.sorted[first - 1].id <= id;",
        "Embedding.AddsTheRowsOfAnIdInOrder"),
    Mutation(
        "embedding_twice", "rows of a frequent id are added once", f"{CUDA}/embedding.cu",
        "!is_first || count == kWarp ||", "!is_first ||", "Embedding.AddsTheRowsOfAnIdInOrder"),
    Mutation(
        "embedding_many", "ids with more rows than a warp's lanes", f"{CUDA}/embedding.cu",
        "    if (rows >= kWarp) {\n", "    if (rows < kWarp) {\n",
        "Embedding.AddsTheRowsOfAnIdInOrder"),
    Mutation(
        "tree_sum_bound", "bound of a tree sum's elements", TREE,
        "  if (i < b.count) {\n", "  if (true) {\n", "Ranks/OverNccl.Holds/*", program=NCCL),
]

MASKS = [
    Mutation(
        "causal_mask", "causal mask: a query reads its own key", f"{CUDA}/attention_forward.cu",
        "key > rows.position[half]", "key >= rows.position[half]",
        "Attention.AgreesAtTheEdgesOfBlocks"),
    Mutation(
        "causal_mask_of_tiles", "choice of the tiles that need the mask",
        f"{CUDA}/attention_forward.cu", "first_key + kKeys > past + own;",
        "first_key > past + own;", "Attention.AgreesAtTheEdgesOfBlocks"),
    Mutation(
        "causal_mask_backward", "causal mask of the gradients of keys",
        f"{CUDA}/attention_backward.cu", "kMasked && key > query ? 0.0F : power", "power",
        "Attention.AgreesAtTheEdgesOfBlocks", times=2),
    Mutation(
        "norm_mask", "mask of a row's last elements", f"{CUDA}/norms.cu",
        "i + j < p.channels ? x.x[j] - mean : 0.0F", "x.x[j] - mean",
        f"{VALUES}/forward_layer_norm_5x17_f32"),
    Mutation(
        "norm_rounding", "rounding of the sum that a norm stores", f"{CUDA}/norms.cu",
        "widen(narrow<T>(x.x[j] + other.x[j]))", "x.x[j] + other.x[j]",
        "NormForward.NormalizesTheSumThatItStores"),
    Mutation(
        "dropout_sample", "step of dropout to the next sample", f"{CUDA}/dropout.cu",
        "      if (element == per_sample) {\n        element = 0;\n        ++sample;\n      }\n",
        "",
        f"{VALUES}/dropout_1001_5_f32"),
    Mutation(
        "decay_turn", "turn of the decay between two parameters", f"{CUDA}/optimizer.cu",
        "      while (next <= i + j) {\n", "      while (next < i + j) {\n",
        f"{VALUES}/adamw_70001_step1"),
    Mutation(
        "decay_launches", "turns of the decay in a second launch", f"{CUDA}/optimizer.cu",
        "p.turns[used + i] - first", "p.turns[used + i]", f"{VALUES}/adamw_70001_step1"),
]

SCRATCH = [
    Mutation(
        "scratch_growth", "growth of scratch memory", "src/device/cuda/scratch.cc",
        "  if (bytes_ < bytes) {\n", "  if (areas_.empty()) {\n",
        "Scratch.GrowsAndKeepsOldAreas"),
    Mutation(
        "scratch_of_norms", "scratch for the gradient of a norm's bias",
        f"{CUDA}/norm_backward.cu",
        "scratch_of<float>(stream, parts * width)", "scratch_of<float>(stream, parts * p.channels)",
        "Scratch.HoldsWhatKernelsNeed"),
    Mutation(
        "scratch_of_column_sums", "scratch for all chunks of rows", f"{CUDA}/column_sum.cu",
        "scratch_of<float>(stream, chunks * n)", "scratch_of<float>(stream, n)",
        "Scratch.HoldsWhatKernelsNeed"),
    Mutation(
        "scratch_of_embedding", "scratch for the rows of a second pass", f"{CUDA}/row_sort.cu",
        "(stream, areas * rows.rows + counts / 2)", "(stream, rows.rows + counts / 2)",
        "Scratch.HoldsWhatKernelsNeed"),
    Mutation(
        "row_sort_clear", "clearing of the counts of a chunk", f"{CUDA}/row_sort.cu",
        "    counts[bin] = 0;\n", "", "Embedding.AddsTheRowsOfAnIdInOrder"),
    Mutation(
        "row_sort_clear_warps", "clearing of the counts of a warp", f"{CUDA}/row_sort.cu",
        "    own[bin] = 0;\n", "", "Embedding.AddsTheRowsOfAnIdInOrder"),
]

ALGORITHMS = [
    Mutation(
        "algorithm_end", "check of the end of sums", f"{CUDA}/algorithm_check.cc",
        "  return trial.run(product, kind.k - kEnd);\n", "  return whole;\n",
        "AlgorithmCheck.FindsLostEndsOfSums"),
    Mutation(
        "algorithm_verdict", "refusal of an algorithm with wrong sums",
        f"{CUDA}/product_plan.cc", "      if (verdict == AlgorithmVerdict::exact) {\n",
        "      if (verdict != AlgorithmVerdict::unsupported) {\n",
        "Product.RefusesAlgorithmsWithWrongSums"),
    Mutation(
        "algorithm_alignment", "alignment that an algorithm is promised",
        f"{CUDA}/product_plan.cc",
        "    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,\n"
        "                   static_cast<std::uint32_t>(kind.alignment_b));\n", "",
        f"{VALUES}/matmul_*"),
    Mutation(
        "algorithm_split", "ban of sums split over blocks", f"{CUDA}/product_plan.cc",
        "    preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,\n"
        "                   static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));\n", "",
        f"{BITS}/matmul_*"),
]

STREAMS = [
    Mutation(
        "stream_wait", "a stream's wait for an event of another", QUEUE,
        "  cuda_check(cudaStreamWaitEvent(stream_, native->native(), 0), "
        "\"cudaStreamWaitEvent\");\n",
        "", "CudaQueueTest.WaitsForAnotherStream", program=DEVICE),
    Mutation(
        "event_device", "the device of a thread that asks for an event", QUEUE,
        "  use_device(device);\n  const cudaError_t state", "  const cudaError_t state",
        "CudaQueueDeathTest.ThreadsThatAskForEventsUseTheirDeviceOnly", program=DEVICE),
    Mutation(
        "host_wait", "a stream's wait for work of the host", QUEUE,
        "    StreamQueue::wait(event);\n", "", "CudaQueueTest.WaitsForAStreamOfTheHost",
        program=DEVICE),
    Mutation(
        "event_record", "recording of an event", QUEUE,
        "    cuda_check(cudaEventRecord(event_, queue.stream_), \"cudaEventRecord\");\n", "",
        "CudaQueueTest.RunsWorkOfTheHostInOrder", program=DEVICE, times=2),
    Mutation(
        "event_reuse", "an event that is in use is not given out again", QUEUE,
        "      free_.pop_back();\n", "", "CudaQueueTest.*", program=DEVICE),
    Mutation(
        "pinned_check", "way of ordinary memory over pinned memory", QUEUE,
        "  return attributes.type == cudaMemoryTypeHost;\n", "  return true;\n",
        "CudaQueueTest.CopiesOrdinaryAndPinnedMemory", program=DEVICE),
    Mutation(
        "pinned_kept", "hold on a pinned buffer until its copy has ended", QUEUE,
        "  in_use_.push_back(pool_.allocate(bytes));\n",
        "  in_use_.clear();\n  in_use_.push_back(pool_.allocate(bytes));\n",
        "CudaQueueTest.KeepsPinnedBuffersUntilTheirCopiesEnd", program=DEVICE),
    Mutation(
        "pinned_until_wait", "hold on a pinned buffer until the host waits", QUEUE,
        "      was_reached_ = true;\n",
        "      was_reached_ = true;\n      staging_->release(staged_);\n",
        "CudaQueueTest.KeepsPinnedMemoryUntilTheHostWaits", program=DEVICE),
    Mutation(
        "wait_count", "count of the host's waits", QUEUE, "      count_wait();\n", "",
        "CudaQueueTest.CountsWaitsAndAllocations", program=DEVICE),
    Mutation(
        "copy_to_host", "order of a copy to ordinary memory", QUEUE,
        "    run([to, buffer, bytes] { std::memcpy(to.data, buffer, bytes); });\n",
        "    std::memcpy(to.data, buffer, bytes);\n",
        "CudaQueueTest.CopiesOrdinaryAndPinnedMemory", program=DEVICE),
    Mutation(
        "awaited_failure", "error of a stream that was waited for", QUEUE,
        "  awaited_.push_back(event);\n", "",
        "CudaQueueTest.ThrowsTheErrorOfAStreamThatItWaitedFor", program=DEVICE),
    Mutation(
        "failed_work", "skipping of work after an error", QUEUE,
        "    if (task->failure->error != nullptr) {\n      return;\n    }\n", "",
        "CudaQueueTest.ThrowsWhatWorkOfTheHostHasThrown", program=DEVICE),
]

COMMUNICATION = [
    Mutation(
        "nccl_wait", "NCCL's wait for the stream that computes its input", COMM,
        "  channel.queue().wait(ready);\n", "", "NcclCommunicator.OrdersOperationsWithStreams",
        program=NCCL),
    Mutation(
        "nccl_later_operations", "refusal of operations after a failed one", MONITOR,
        "    std::rethrow_exception(failure_);\n", "", "NcclCommunicator.NamesARankThatNeverComes",
        program=NCCL),
    Mutation(
        "nccl_deadline", "deadline of an operation", MONITOR,
        "  is_overdue_here_ = now - begun_ >= plan_.limit;\n", "  is_overdue_here_ = false;\n",
        "NcclCommunicator.NamesARankThatNeverComes", program=NCCL),
    Mutation(
        "nccl_deadline_start", "start of the deadline when the input is there", MONITOR,
        "    if (!plan_.ready.reached()) {\n      return false;\n    }\n", "",
        "NcclCommunicator.WaitsForItsInputWithoutADeadline", program=NCCL),
    Mutation(
        "nccl_abort", "abort of the channels after an error", MONITOR,
        "  NcclChannel::abort_all(channels_);\n", "",
        "NcclCommunicator.NamesARankThatNeverComes", program=NCCL),
    Mutation(
        "kernels_loaded", "loading of all kernels before ranks are connected",
        "mpi/nccl/nccl_world.cc",
        "  cuda::cuda_check(cuda::load_kernels(), \"loading the kernels\");\n", "",
        "NcclCommunicator.OrdersOperationsWithStreams", program=NCCL),
    Mutation(
        "nccl_abort_at_once", "abort of all channels in one group", CHANNEL,
        "  (void)ncclGroupStart();\n", "", "NcclCommunicator.NamesARankThatNeverComes",
        program=NCCL),
    Mutation(
        "nccl_failure", "error of an operation that is waited for", MONITOR,
        "    is_failed_.store(true);\n", "", "NcclCommunicator.AbandoningEndsTheGroup",
        program=NCCL),
    Mutation(
        "nccl_settle", "wait until NCCL has queued an operation", CALLS,
        "  settle(started);\n", "", "Ranks/OverNccl.Holds/values_2", program=NCCL),
    Mutation(
        "nccl_barrier", "the sum that makes a barrier", CALLS,
        "    nccl_check(ncclAllReduce(view.data, view.data, 1, ncclInt32, ncclSum, "
        "started.channel.comm(),\n                             started.channel.stream()),\n"
        "               \"ncclAllReduce\", started.channel.comm());\n",
        "    static_cast<void>(view);\n",
        "NcclCommunicator.ABarrierWaitsForAllRanks", program=NCCL),
    Mutation(
        "tree_order", "order of a sum over ranks", TREE,
        "      const int middle = tree_middle(lo, hi);\n", "      const int middle = lo + 1;\n",
        "Ranks/OverNccl.Holds/*", program=NCCL),
]

CUDA_MUTATIONS = [*BARRIERS, *BOUNDS, *MASKS, *WARPGROUPS, *ALIBI, *SCRATCH, *ALGORITHMS,
                  *STREAMS, *COMMUNICATION, *REPEATED, *CUDNN, *FP8]
