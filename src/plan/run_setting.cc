#include "src/plan/published_runs.h"

namespace trireme {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string cluster_of(const PublishedRun& run) {
  const std::string& gpu = run.gpu_type;
  if (run.source == "bigscience_a100") {
    return "a100-jean-zay";
  }
  if (run.source == "vtrain_multi") {
    return "a100-800g";
  }
  if (contains(gpu, "500W")) {
    return "h100-500w";
  }
  if (contains(gpu, "GB200")) {
    return "gb200-nvl72";
  }
  if (contains(gpu, "B200")) {
    return "b200-pod";
  }
  if (contains(gpu, "H200")) {
    return "h200-pod";
  }
  if (contains(gpu, "H100") || contains(gpu, "h100")) {
    return "h100-pod";
  }
  if (contains(gpu, "40gb") || contains(gpu, "40GB")) {
    return "a100-40gb";
  }
  return contains(gpu, "A100") || contains(gpu, "a100") ? "a100-selene" : "";
}

// Megatron-LM before flash attention: scores are stored, softmax and dropout are kernels of their
// own, gradients are added and reduced in fp16 after the last backward (its sources of April 2021).
Software early_megatron() {
  return {.name = "Megatron-LM 2021",
          .materializes_attention = true,
          .gradient_bytes = 2,
          .accumulate_bytes = 6,
          .overlaps_gradients = false,
          .overlaps_transfers = false,
          .scatters_transfers = true,
          .balances_stages = false};
}

// Megatron-DeepSpeed: DeepSpeed's pipeline also scatters transfers over the tp ranks
// (is_pipe_partitioned); BLOOM's runs added and reduced gradients in fp32.
Software megatron_deepspeed(bool fp32_gradients) {
  Software software = early_megatron();
  software.name = "Megatron-DeepSpeed 2022";
  if (fp32_gradients) {
    software.gradient_bytes = 4;
    software.accumulate_bytes = 12;
  }
  return software;
}

// Megatron-Core: gradients are added by the product that computes them, and transfers are hidden
// (its documents on --overlap-grad-reduce, --tp-comm-overlap and --overlap-p2p-communication).
Software megatron_core() {
  return {.name = "Megatron-Core 2025",
          .accumulate_bytes = 4,
          .overlaps_tensor = true,
          .scatters_transfers = true,
          .balances_stages = false};
}

// Foundry's attention was the first FlashAttention, in Triton: 25 to 40 % of the peak on A100, and
// half of its successor's 35 % on H100 (Dao, 2023, introduction and section 4.1). Its element-wise
// kernels are PyTorch's own, several where one would do.
Software llm_foundry(bool h100) {
  return {.name = "LLM Foundry 2023",
          .attention_share = h100 ? 0.45 : 0.6,
          .kernel_traffic = 2,
          .gradient_bytes = 2,
          .balances_stages = false};
}

// torchtitan in eager mode: element-wise kernels of PyTorch, norms and rotations in fp32.
Software torchtitan() {
  return {.name = "torchtitan 2024",
          .kernel_traffic = 2,
          .overlaps_tensor = false,
          .balances_stages = false};
}

}  // namespace

RunSetting setting_of(const PublishedRun& run) {
  RunSetting setting;
  setting.cluster = cluster_of(run);
  if (run.source == "sc21_t1") {
    setting.software = early_megatron();
  } else if (run.source == "vtrain_multi" || run.source == "bigscience_a100") {
    setting.software = megatron_deepspeed(run.source == "bigscience_a100");
  } else if (run.source == "mbridge" || run.source == "dgxc_2025" || run.source == "llama3_t4") {
    setting.software = megatron_core();
  } else if (run.source == "llm_foundry") {
    setting.software = llm_foundry(setting.cluster.starts_with("h100"));
  } else if (run.source.starts_with("torchtitan")) {
    setting.software = torchtitan();
  }
  return setting;
}

}  // namespace trireme
