#include "benchmarks/bench_command.h"

#include <memory>

#include <nlohmann/json.hpp>

#include "benchmarks/busy_watch.h"
#include "benchmarks/ckpt.h"
#include "benchmarks/coll_command.h"
#include "benchmarks/loader.h"
#include "benchmarks/pipeline.h"
#include "benchmarks/point_commands.h"
#include "benchmarks/report.h"
#include "benchmarks/step.h"
#include "mpi/session/backend.h"
#include "src/app/command/number_check.h"
#include "src/base/units.h"
#include "src/parallel/pipeline/schedule.h"

namespace trireme {
namespace {

// Only rank 0 reports the results.
void report_once(const nlohmann::ordered_json& results, const std::string& file,
                 AppContext& context) {
  if (!context.has_session() || context.session().world().rank() == 0) {
    report(results, file);
  }
}

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
  command.add_option("--backend", options.backend, "The transport between ranks")
      .check(one_of(backend_names()));
}

void add_step(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "step", "Time a training step and compare it with the machine's rate of matrix products");
  const auto options = std::make_shared<BenchStepOptions>();
  const auto file = std::make_shared<std::string>();
  command.add_option("--model", options->model, "The model preset").type_name("NAME");
  command.add_option("--precision", options->precision, "Precision of the products and activations")
      .check(one_of({"bf16", "fp32"}));
  command.add_option("--micro-batch", options->micro_batch, "Sequences computed at a time")
      .check(positive_count());
  command
      .add_option("--micro-batches", options->micro_batches, "Micro-batches per replica and step")
      .check(positive_count());
  command.add_option("--sequence", options->sequence, "Tokens per sequence")
      .check(positive_count());
  command
      .add_option("--threads", options->threads,
                  "Compute threads per rank (default: its share of the cores)")
      .check(thread_count());
  command.add_option("--rounds", options->rounds, "Timed rounds, after a warm-up round")
      .check(positive_count());
  command.add_option("--steps", options->steps, "Steps per round").check(positive_count());
  add_layout(command, *options);
  command.add_option("-J,--json-file", *file, "Also write the results to FILE as JSON")
      .type_name("FILE");
  command.footer(
      "Examples:\n"
      "  trireme bench step --model gpt2-124m --sequence 1024 -J step.json\n"
      "  mpirun -n 2 trireme bench step --pp 2 --micro-batches 16 \\\n"
      "    --schedule zero_bubble -J step.json");
  command.callback([options, file, &context] {
    check_can_measure();
    run_watched(context, [&] {
      report_once(nlohmann::ordered_json::array({bench_step(*options, context)}), *file, context);
    });
  });
}

void add_pipeline(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "pipeline",
      "Run a pipeline whose stages sleep, one stage per rank, and compare it with its simulation");
  const auto options = std::make_shared<BenchPipelineOptions>();
  const auto bytes = std::make_shared<std::string>("1536K");
  const auto file = std::make_shared<std::string>();
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
  command.add_option("--backend", options->backend, "The transport between ranks")
      .check(one_of(backend_names()));
  command.add_option("-J,--json-file", *file, "Also write the results to FILE as JSON")
      .type_name("FILE");
  command.footer(
      "Example:\n"
      "  mpirun -n 4 --oversubscribe trireme bench pipeline --schedule zero_bubble \\\n"
      "    --micro-batches 8 -J pipeline.json");
  command.callback([options, bytes, file, &context] {
    check_can_measure();
    options->bytes = parse_bytes(*bytes);
    run_watched(context, [&] {
      report_once(nlohmann::ordered_json::array({bench_pipeline(*options, context.session())}),
                  *file, context);
    });
  });
}

void add_loader(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "loader", "Time the data loader and compare it with plain reads of the same bytes");
  const auto options = std::make_shared<BenchLoaderOptions>();
  const auto file = std::make_shared<std::string>();
  command
      .add_option("--data", options->data,
                  "The dataset's folder (default: random bytes, packed for the measurement)")
      .type_name("DIR");
  command.add_option("--sequence", options->sequence, "Tokens per sample").check(positive_count());
  command.add_option("--micro-batch", options->micro_batch, "Samples read at a time")
      .check(positive_count());
  command.add_option("--shuffle", options->shuffle, "Order of the samples")
      .check(one_of({"block", "global", "none"}));
  command.add_option("--threads", options->threads, "Threads of the loader").check(thread_count());
  command
      .add_option("--rounds", options->rounds,
                  "Timed rounds of the loader and of plain reads, alternating")
      .check(positive_count());
  command.add_option("-J,--json-file", *file, "Also write the results to FILE as JSON")
      .type_name("FILE");
  command.footer("Example:\n  trireme bench loader -J loader.json");
  command.callback([options, file, &context] {
    check_can_measure();
    run_watched(context, [&] {
      const BenchLoaderResult result = bench_loader(*options);
      report_once(nlohmann::ordered_json::array({bench_loader_json(*options, result)}), *file,
                  context);
    });
  });
}

void add_ckpt(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "ckpt", "Time saving and loading of checkpoints and compare with memcpy and dd");
  const auto options = std::make_shared<BenchCkptOptions>();
  const auto bytes = std::make_shared<std::string>("2G");
  const auto file = std::make_shared<std::string>();
  options->folder = ".";
  command.add_option("--dir", options->folder, "Measure the disk that holds DIR").type_name("DIR");
  command.add_option("--bytes", *bytes, "Size of the training state").type_name("BYTES");
  command.add_option("--rounds", options->rounds, "Timed rounds").check(positive_count());
  command.add_option("--threads", options->threads, "Threads that copy (default: all cores)")
      .check(thread_count());
  command
      .add_option("--memory", options->memory,
                  "Also time checkpoints in memory, in DIR on a tmpfs with room for three times "
                  "the state")
      .type_name("DIR");
  command.add_option("-J,--json-file", *file, "Also write the results to FILE as JSON")
      .type_name("FILE");
  command.footer(
      "Example:\n"
      "  trireme bench ckpt --dir /scratch --memory /dev/shm --bytes 2G -J ckpt.json");
  command.callback([options, bytes, file, &context] {
    check_can_measure();
    options->bytes = parse_bytes(*bytes);
    run_watched(context, [&] { report_once(bench_ckpt(*options), *file, context); });
  });
}

}  // namespace

void add_bench_command(CommandLine& app, AppContext& context) {
  CommandLine& bench = app.add_command(
      "bench", "Measure this machine and compare with the ceilings measured in the same run");
  bench.require_command();
  bench.footer("Example:\n  trireme bench step --model gpt2-124m --sequence 1024 -J step.json");
  add_step(bench, context);
  add_pipeline(bench, context);
  add_loader(bench, context);
  add_ckpt(bench, context);
  add_coll_bench(bench, context);
  add_p2p_bench(bench, context);
  add_pairs_bench(bench, context);
}

}  // namespace trireme
