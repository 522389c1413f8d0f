#include "benchmarks/command/bench_command.h"

#include <chrono>
#include <memory>

#include <nlohmann/json.hpp>

#include "benchmarks/all/all_command.h"
#include "benchmarks/bench_options.h"
#include "benchmarks/ckpt/ckpt_command.h"
#include "benchmarks/coll/coll_command.h"
#include "benchmarks/gemm/gemm_command.h"
#include "benchmarks/io/io_command.h"
#include "benchmarks/loader/loader_command.h"
#include "benchmarks/mem/mem_command.h"
#include "benchmarks/noise/noise_command.h"
#include "benchmarks/p2p/point_commands.h"
#include "benchmarks/scratch_folders.h"
#include "benchmarks/step/pipeline.h"
#include "benchmarks/step/step.h"
#include "benchmarks/train/train_command.h"
#include "src/app/command/last_act.h"
#include "src/app/command/number_check.h"
#include "src/base/units.h"
#include "src/parallel/pipeline/schedule.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kFolderPatience{10};  // for removing a folder after an error

void add_layout(CommandLine& command, BenchStepOptions& options) {
  command
      .add_option("--dp", options.dp,
                  "Data-parallel replicas (default: as many as the ranks allow)")
      .check(positive_count());
  command.add_option("--tp", options.tp, "Tensor-parallel ranks per stage").check(positive_count());
  command.add_option("--pp", options.pp, "Pipeline stages").check(positive_count());
  command.add_option("--schedule", options.schedule, "The pipeline schedule")
      .check(one_of(pipeline_schedule_names()));
  command.add_option("--virtual-stages", options.virtual_stages, "Virtual stages per rank")
      .check(positive_count());
  command
      .add_option(
          "--zero", options.zero,
          "What replicas shard: 0 nothing, 1 optimizer state, 2 also gradients, 3 also parameters")
      .check(integer_within(0, 3));
  command.add_option("--recompute", options.recompute, "What the backward pass recomputes")
      .check(one_of({"none", "selective", "full"}));
  add_backend_option(command, options.backend);
}

void add_step(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "step", "Time a training step and compare it with the machine's rate of matrix products");
  const auto options = std::make_shared<BenchStepOptions>();
  command.add_option("--model", options->model, "The model preset").type_name("NAME");
  command.add_option("--precision", options->precision, "Precision of the products and activations")
      .check(one_of({"bf16", "fp32"}));
  command.add_option("--micro-batch", options->micro_batch, "Sequences computed at a time")
      .check(positive_count());
  command
      .add_option("--micro-batches", options->micro_batches, "Micro-batches per replica and step")
      .check(positive_count());
  command
      .add_option("--sequence", options->sequence,
                  "Tokens per sequence (default: 1024, but at most the model's context)")
      .no_default()
      .check(positive_count());
  command
      .add_option("--threads", options->threads,
                  "Compute threads per rank (default: its share of the cores)")
      .check(thread_count());
  command.add_option("--rounds", options->rounds, "Timed rounds, after a warm-up round")
      .check(positive_count());
  command.add_option("--steps", options->steps, "Steps per round").check(positive_count());
  add_layout(command, *options);
  command.footer(
      "Examples:\n"
      "  trireme bench step --model gpt2-124m --sequence 1024 -J step.json\n"
      "  mpirun -n 2 trireme bench step --pp 2 --micro-batches 16 \\\n"
      "    --schedule zero_bubble -J step.json");
  run_when_given(command, context, "step", [options, &context](const BenchOutput& output) {
    options->duration = output.duration;
    return Json::array({bench_step(*options, context)});
  });
}

void add_pipeline(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "pipeline",
      "Run a pipeline whose stages sleep, one stage per rank, and compare it with its simulation");
  const auto options = std::make_shared<BenchPipelineOptions>();
  const auto bytes = std::make_shared<std::string>("1536K");
  const Check milliseconds = within(0.01, 60000.0);
  command.add_option("--schedule", options->schedule, "The pipeline schedule")
      .check(one_of(pipeline_schedule_names()));
  command.add_option("--chunks", options->chunks, "Virtual stages per rank")
      .check(integer_within(1, 1024));
  command.add_option("--micro-batches", options->micro_batches, "Micro-batches per step")
      .check(integer_within(1, 100'000));
  command
      .add_option("--forward-ms", options->forward_ms,
                  "Time of a rank for the forward pass of a micro-batch")
      .check(milliseconds)
      .type_name("MS");
  command
      .add_option("--input-ms", options->input_ms, "Time of a rank for the gradient of its input")
      .check(milliseconds)
      .type_name("MS");
  command
      .add_option("--weight-ms", options->weight_ms,
                  "Time of a rank for the gradients of its weights")
      .check(milliseconds)
      .type_name("MS");
  command.add_option("--bytes", *bytes, "Size of an activation").type_name("BYTES");
  command.add_option("--rounds", options->rounds, "Timed rounds, after a warm-up round")
      .check(positive_count());
  add_backend_option(command, options->backend);
  command.footer(
      "Example:\n"
      "  mpirun -n 4 --oversubscribe trireme bench pipeline --schedule zero_bubble \\\n"
      "    --micro-batches 8 -J pipeline.json");
  run_when_given(command, context, "pipeline",
                 [options, bytes, &context](const BenchOutput& output) {
                   options->bytes = parse_bytes(*bytes);
                   options->duration = output.duration;
                   return Json::array({bench_pipeline(*options, context.session())});
                 });
}

}  // namespace

void add_bench_command(CommandLine& app, AppContext& context) {
  CommandLine& bench = app.add_command(
      "bench", "Measure this machine and compare with the ceilings measured in the same run");
  bench.require_command();
  // mpirun lets the rank that has made a folder remove it; srun kills it at once.
  set_last_act([&context] {
    if (context.has_session() && context.session().launcher() == Launcher::srun) {
      ScratchFolders::remove_abandoned(kFolderPatience);
    }
  });
  bench.footer("Example:\n  trireme bench step --model gpt2-124m --sequence 1024 -J step.json");
  add_all_bench(bench, context);
  add_step(bench, context);
  add_pipeline(bench, context);
  add_train_bench(bench, context);
  add_loader_bench(bench, context);
  add_ckpt_bench(bench, context);
  add_gemm_bench(bench, context);
  add_io_bench(bench, context);
  add_mem_bench(bench, context);
  add_noise_bench(bench, context);
  add_coll_bench(bench, context);
  add_p2p_bench(bench, context);
  add_pairs_bench(bench, context);
}

}  // namespace trireme
