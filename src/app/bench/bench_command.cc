#include "src/app/bench/bench_command.h"

#include <memory>

#include <nlohmann/json.hpp>

#include "mpi/session/backend.h"
#include "src/app/bench/busy_watch.h"
#include "src/app/bench/ckpt.h"
#include "src/app/bench/coll_command.h"
#include "src/app/bench/loader.h"
#include "src/app/bench/pipeline.h"
#include "src/app/bench/point_commands.h"
#include "src/app/bench/report.h"
#include "src/app/bench/step.h"
#include "src/app/number_check.h"
#include "src/base/units.h"
#include "src/parallel/pipeline/schedule.h"

namespace trireme {
namespace {

// Rank 0 speaks for all.
void report_once(const nlohmann::ordered_json& results, const std::string& file,
                 AppContext& context) {
  if (!context.has_session() || context.session().world().rank() == 0) {
    report(results, file);
  }
}

void add_layout(CommandLine& command, BenchStepOptions& options) {
  command.add_option("--dp", options.dp, "replicas; default: as many as there are ranks for")
      .check(positive_count());
  command.add_option("--tp", options.tp, "tensor-parallel ranks a stage (1)")
      .check(positive_count());
  command.add_option("--pp", options.pp, "pipeline stages (1)").check(positive_count());
  command.add_option("--schedule", options.schedule, "of the pipeline (1f1b)")
      .check(one_of(pipeline_schedule_names()));
  command.add_option("--virtual-stages", options.virtual_stages, "a rank (1)")
      .check(positive_count());
  command.add_option("--zero", options.zero, "what replicas shard (0)").check(within(0, 3));
  command.add_option("--recompute", options.recompute, "none, selective or full (none)")
      .check(one_of({"none", "selective", "full"}));
  command.add_option("--backend", options.backend, "transport between ranks (auto)")
      .check(one_of(backend_names()));
}

void add_step(CommandLine& bench, AppContext& context) {
  CommandLine& command =
      bench.add_command("step", "A training step against the product rate of the same machine");
  const auto options = std::make_shared<BenchStepOptions>();
  const auto file = std::make_shared<std::string>();
  command.add_option("--model", options->model, "a preset of configs/model/ (gpt2-124m)");
  command.add_option("--precision", options->precision, "bf16 or fp32")
      .check(one_of({"bf16", "fp32"}));
  command.add_option("--micro-batch", options->micro_batch, "sequences at a time (1)")
      .check(positive_count());
  command.add_option("--micro-batches", options->micro_batches, "a replica and step (1)")
      .check(positive_count());
  command.add_option("--sequence", options->sequence, "tokens (1024)").check(positive_count());
  command.add_option("--threads", options->threads, "a rank; default: its share of the cores")
      .check(thread_count());
  command.add_option("--rounds", options->rounds, "timed, after one that warms up (7)")
      .check(positive_count());
  command.add_option("--steps", options->steps, "a round, one right after the other (1)")
      .check(positive_count());
  add_layout(command, *options);
  command.add_option("-J,--json-file", *file, "write the results there as JSON");
  command.footer(
      "Examples:\n  trireme bench step --model gpt2-124m --precision bf16 --micro-batch 1 "
      "--sequence 1024 -J step.json\n  mpirun -n 2 trireme bench step --pp 2 --micro-batches 16 "
      "--schedule zero_bubble -J step.json");
  command.callback([options, file, &context] {
    run_watched(context, [&] {
      report_once(nlohmann::ordered_json::array({bench_step(*options, context)}), *file, context);
    });
  });
}

void add_pipeline(CommandLine& bench, AppContext& context) {
  CommandLine& command = bench.add_command(
      "pipeline", "A pipeline whose stages sleep, against its simulation; a stage a rank");
  const auto options = std::make_shared<BenchPipelineOptions>();
  const auto bytes = std::make_shared<std::string>("1536K");
  const auto file = std::make_shared<std::string>();
  const Check milliseconds = within(0.01, 60000.0);
  command.add_option("--schedule", options->schedule, "(1f1b)")
      .check(one_of(pipeline_schedule_names()));
  command.add_option("--chunks", options->chunks, "virtual stages a rank (1)")
      .check(integer_within(1, 1024));
  command.add_option("--micro-batches", options->micro_batches, "a step (8)")
      .check(integer_within(1, 100'000));
  command.add_option("--forward-ms", options->forward_ms, "a micro-batch on a rank (20)")
      .check(milliseconds);
  command.add_option("--input-ms", options->input_ms, "the gradient of its input (20)")
      .check(milliseconds);
  command.add_option("--weight-ms", options->weight_ms, "those of the weights (20)")
      .check(milliseconds);
  command.add_option("--bytes", *bytes, "of an activation (1536K)");
  command.add_option("--rounds", options->rounds, "timed, after one that warms up (7)")
      .check(positive_count());
  command.add_option("--backend", options->backend, "transport between ranks (auto)")
      .check(one_of(backend_names()));
  command.add_option("-J,--json-file", *file, "write the results there as JSON");
  command.footer(
      "Example:\n  mpirun -n 4 --oversubscribe trireme bench pipeline --schedule "
      "zero_bubble --micro-batches 8 -J pipeline.json");
  command.callback([options, bytes, file, &context] {
    options->bytes = parse_bytes(*bytes);
    run_watched(context, [&] {
      report_once(nlohmann::ordered_json::array({bench_pipeline(*options, context.session())}),
                  *file, context);
    });
  });
}

void add_loader(CommandLine& bench, AppContext& context) {
  CommandLine& command =
      bench.add_command("loader", "The data loader against bare reads of the same bytes");
  const auto options = std::make_shared<BenchLoaderOptions>();
  const auto file = std::make_shared<std::string>();
  command.add_option("--data", options->data, "a dataset; default: random bytes, packed for it");
  command.add_option("--sequence", options->sequence, "tokens a sample (1024)")
      .check(positive_count());
  command.add_option("--micro-batch", options->micro_batch, "samples at a time (8)")
      .check(positive_count());
  command.add_option("--shuffle", options->shuffle, "block, global or none");
  command.add_option("--threads", options->threads, "of the loader (1)").check(thread_count());
  command.add_option("--rounds", options->rounds, "of each kind, alternating (9)")
      .check(positive_count());
  command.add_option("-J,--json-file", *file, "write the results there as JSON");
  command.footer("Example:\n  trireme bench loader -J loader.json");
  command.callback([options, file, &context] {
    run_watched(context, [&] {
      const BenchLoaderResult result = bench_loader(*options);
      report_once(nlohmann::ordered_json::array({bench_loader_json(*options, result)}), *file,
                  context);
    });
  });
}

void add_ckpt(CommandLine& bench, AppContext& context) {
  CommandLine& command =
      bench.add_command("ckpt", "Checkpoints against memcpy and dd on the same disk");
  const auto options = std::make_shared<BenchCkptOptions>();
  const auto bytes = std::make_shared<std::string>("2G");
  const auto file = std::make_shared<std::string>();
  options->folder = ".";
  command.add_option("--dir", options->folder, "a folder on the disk to measure (.)");
  command.add_option("--bytes", *bytes, "of the state (2G)");
  command.add_option("--rounds", options->rounds, "(5)").check(positive_count());
  command.add_option("--threads", options->threads, "of the copies; default: all cores")
      .check(thread_count());
  command.add_option("--memory", options->memory,
                     "also in memory: a folder on a tmpfs with room for three times the state");
  command.add_option("-J,--json-file", *file, "write the results there as JSON");
  command.footer(
      "Example:\n  trireme bench ckpt --dir /scratch --memory /dev/shm --bytes 2G -J ckpt.json");
  command.callback([options, bytes, file, &context] {
    options->bytes = parse_bytes(*bytes);
    run_watched(context, [&] { report_once(bench_ckpt(*options), *file, context); });
  });
}

}  // namespace

void add_bench_command(CommandLine& app, AppContext& context) {
  CommandLine& bench =
      app.add_command("bench", "Measure this machine, against its own ceilings in the same run");
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
