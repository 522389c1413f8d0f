"""The mutations of ALiBi's bias of attention's scores."""

from mutation import CUDA, VALUES, Mutation

TEST = "Attention.BiasesDistantKeys"
FORWARD = f"{CUDA}/attention_forward.cu"
BACKWARD = f"{CUDA}/attention_backward.cu"
WARPGROUP_FORWARD = f"{CUDA}/attention_warpgroup_forward.cu"
WARPGROUP_BACKWARD = f"{CUDA}/attention_warpgroup_backward.cu"

ALIBI = [
    Mutation(
        "alibi_positions", "past keys in the distances of a cache's queries", FORWARD,
        "slope, first_key - past - own - 16 * tile);", "slope, first_key - own - 16 * tile);",
        TEST),
    Mutation(
        "alibi_tiles", "second rows of a lane in ALiBi's distances", f"{CUDA}/attention_tiles.h",
        "+ shift - lane_row() - at / 2 * 8;", "+ shift - lane_row();", TEST, source=FORWARD),
    Mutation(
        "alibi_keys", "sign of ALiBi's distances in the gradients of keys", BACKWARD,
        "add_distances<kQueries>(x[tile], -slope,", "add_distances<kQueries>(x[tile], slope,",
        TEST),
    Mutation(
        "alibi_queries", "ALiBi's distances in the gradients of queries", BACKWARD,
        "slope, first_key - at.first_query - 16 * part);", "slope, 0);", TEST),
    Mutation(
        "alibi_plain", "ALiBi's bias of attention in fp32", f"{CUDA}/attention_plain.cu",
        "s.slopes[head] * static_cast<float>(distance)",
        "s.slopes[0] * static_cast<float>(distance)", TEST),
    Mutation(
        "alibi_warpgroup", "ALiBi's distances of a warpgroup", WARPGROUP_FORWARD,
        "add_distances<kKeys>(x, slope, first_key - past - own);",
        "add_distances<kKeys>(x, slope, first_key - past);", TEST),
    Mutation(
        "alibi_warpgroup_keys", "head of ALiBi's slope in the gradients of a warpgroup's keys",
        WARPGROUP_BACKWARD, "block.query_head(turn)", "block.kv_head", TEST),
    Mutation(
        "alibi_warpgroup_queries", "ALiBi's distances in the gradients of a warpgroup's queries",
        WARPGROUP_BACKWARD, "add_distances<kKeys>(x, slope, first_key - own);",
        "add_distances<kKeys>(x, slope, first_key);", TEST),
    Mutation(
        "scale_factor", "factor of a scaled tensor", f"{CUDA}/elementwise.cu",
        "      v *= factor;\n", "", f"{VALUES}/scale_100_bf16"),
]
