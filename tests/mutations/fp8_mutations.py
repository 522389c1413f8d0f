"""Mutations of products in fp8 (train.products)."""

from mutation import CUDA, Mutation

ROUNDING = f"{CUDA}/fp8.cu"
AGREE = "Fp8.ProductsAgreeWithTheReference"

FP8 = [
    Mutation(
        "fp8_scale", "scale of the operands of products in fp8", ROUNDING,
        "  const float factor = scale->scale;\n  const Row8 low", "  const float factor = 1;\n"
        "  const Row8 low", AGREE),
    Mutation(
        "fp8_inverse", "division of a product in fp8 by its scales", ROUNDING,
        "{.inverse = 1 / scale,", "{.inverse = 1,", AGREE),
    Mutation(
        "fp8_given", "scale of the history (delayed scaling)", ROUNDING,
        "given > 0 ? given : fp8_scale(most, p.format)", "fp8_scale(most, p.format)",
        "Fp8.AScaleOfZeroIsACurrentOne"),
    Mutation(
        "fp8_no_history", "current scale where there is no history", ROUNDING,
        "given > 0 ? given :", "p.given != nullptr ? given :", "Fp8.AScaleOfZeroIsACurrentOne"),
    Mutation(
        "fp8_most", "the largest magnitude is only raised", ROUNDING, "!(most <= *p.most) && ", "",
        AGREE),
    Mutation(
        "fp8_infinity", "an infinite operand makes NaN", ROUNDING,
        "finite ? wide * scale : NAN", "wide * scale", "Fp8.InfinityBecomesNan"),
    Mutation(
        "fp8_most_barrier", "barrier before the magnitudes of warps are compared", ROUNDING,
        "  __syncthreads();\n  for (unsigned warp", "  for (unsigned warp", AGREE),
    Mutation(
        "fp8_tile_barrier", "barrier before a transposed tile is stored", ROUNDING,
        "  __syncthreads();\n  for (int i", "  for (int i", AGREE),
    Mutation(
        "fp8_tile_bound", "bound of the last tile of a transposed operand", ROUNDING,
        "    if (row + r < rows && column + c < columns) {\n      *reinterpret_cast",
        "    if (column + c < columns) {\n      *reinterpret_cast", AGREE),
]
