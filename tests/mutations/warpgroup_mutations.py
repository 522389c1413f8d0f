"""The mutations of attention by warpgroups."""

from mutation import CUDA, Mutation

FORWARD = f"{CUDA}/attention_warpgroup_forward.cu"
BACKWARD = f"{CUDA}/attention_warpgroup_backward.cu"
VALUES = "Attention.AgreesForAnyHeadDimension"
BITS = "Attention.BitsDoNotDependOnTheSchedule"
BARRIER = "    __syncthreads();  // also: nobody", "    // also: nobody"

WARPGROUPS = [
    Mutation(
        "warpgroup_forward_barrier", "barrier before a warpgroup's tile of keys is overwritten",
        FORWARD, *BARRIER, BITS),
    Mutation(
        "warpgroup_keys_barrier", "barrier before a warpgroup's tile of queries is overwritten",
        BACKWARD, *BARRIER, BITS, times=2),
    Mutation(
        "warpgroup_copy_wait", "wait for the tile that a warpgroup reads next", FORWARD,
        "    wait_copies<0>();\n", "    wait_copies<1>();\n", VALUES),
    Mutation(
        "warpgroup_scores_wait", "wait for a warpgroup's scores", FORWARD,
        "    wait_products<1>(x);\n", "", VALUES),
    Mutation(
        "warpgroup_results_wait", "wait for a warpgroup's results before they are rescaled",
        FORWARD, "  wait_products<0>(out, weights);\n  if (", "  if (", VALUES),
    Mutation(
        "warpgroup_slopes_wait", "wait for the products of a warpgroup's gradients", BACKWARD,
        "    wait_products<0>(dx);\n", "", VALUES, times=2),
    Mutation(
        "warpgroup_store_barrier", "warp barrier before a warpgroup's rows are stored",
        f"{CUDA}/attention_warpgroup.h", "  __syncwarp();\n", "", BITS, source=FORWARD),
    Mutation(
        "warpgroup_mask", "causal mask of a warpgroup: a query reads its own key", FORWARD,
        "key > rows.position[at / 2]", "key >= rows.position[at / 2]", VALUES),
    Mutation(
        "warpgroup_mask_of_tiles", "choice of a warpgroup's tiles that need the mask", FORWARD,
        "first_key + kKeys > past + first", "first_key > past + first", VALUES),
    Mutation(
        "warpgroup_mask_of_queries", "causal mask of the gradients of a warpgroup's keys",
        BACKWARD, "key + at / 2 * 8 > query ? -INFINITY : x[n][at]", "x[n][at]", VALUES),
    Mutation(
        "warpgroup_mask_of_keys", "causal mask of the gradients of a warpgroup's queries",
        BACKWARD, "key > rows.query[at / 2] ? -INFINITY : x[n][at]", "x[n][at]", VALUES),
    Mutation(
        "warpgroup_statistics", "bound of the statistics of a warpgroup's queries", BACKWARD,
        "i < left ? p.lse[at] * kLog2E : INFINITY;", "p.lse[at] * kLog2E;", VALUES),
    Mutation(
        "warpgroup_rows", "bound of the rows that a warpgroup copies",
        f"{CUDA}/attention_warpgroup.h", "first_row + row < rows;", "true;", VALUES,
        source=FORWARD),
]
