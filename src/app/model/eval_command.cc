#include "src/app/model/eval_command.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/store.h"
#include "mpi/agreement.h"
#include "src/app/access/folder_access.h"
#include "src/app/command/number_check.h"
#include "src/app/command/standard_output.h"
#include "src/app/model/eval_tasks.h"
#include "src/app/model/model_options.h"
#include "src/app/model/quantize_report.h"
#include "src/base/file.h"
#include "src/base/named_file.h"
#include "src/base/printable.h"
#include "src/base/progress_bar.h"
#include "src/base/units.h"
#include "src/compute/device_choice.h"
#include "src/train/engine/evaluate.h"
#include "src/train/load_model.h"
#include "src/train/memory/held_memory.h"
#include "src/train/start/open_dataset.h"

namespace trireme {
namespace {

struct EvalOptions : ModelOptions {
  std::string data;  // empty for tasks alone
  TaskOptions tasks;
  std::int64_t sequence = 0;
  std::int64_t micro_batch = 4;
  std::int64_t samples = std::numeric_limits<std::int64_t>::max();
  std::string documents;  // joined or separate; empty: as in training
  bool any_tokenizer = false;
  std::string out;  // file for the result; empty for none
  bool json = false;
};

// Shows the progress of rank 0, which computes as many samples at a time as each other rank.
LossesOf with_progress(LossesOf losses, const Dataset& dataset, const EvaluationPlan& plan,
                       Communicator& world) {
  if (world.rank() != 0) {
    return losses;
  }
  const std::int64_t samples = std::min(plan.max_samples, dataset.samples(plan.sequence));
  const auto bar = std::make_shared<ProgressBar>("eval", samples, std::chrono::seconds(10));
  bar->update(0, "samples");
  return
      [losses = std::move(losses), bar, samples, ranks = world.size(), done = std::int64_t{0}](
          const TokenSource& tokens, std::int64_t batch, std::int64_t count, double* sums) mutable {
        for (std::int64_t m = 0; m < count; ++m) {
          losses(tokens, batch, 1, sums + m);
          done = std::min(done + ranks * batch, samples);
          bar->update(done, "samples");
        }
      };
}

void check_tokenizer(const EvalOptions& options, const LoadedModel& loaded,
                     const Dataset& dataset) {
  const TokenizerIdentity own = tokenizer_of(dataset.manifest());
  if (!options.any_tokenizer && !same_tokenizer(loaded.tokenizer, own)) {
    throw ConfigError(fmt::format(
        "--data {} was made with the tokenizer {}, but the model was trained on tokens of {}: the "
        "loss would be meaningless; pack the text with the model's tokenizer, or override with "
        "--any-tokenizer",
        options.data, describe(own), describe(loaded.tokenizer)));
  }
}

// Returns whether to keep the documents of a sample apart.
bool separates_documents(const EvalOptions& options, const LoadedModel& loaded) {
  if (options.documents.empty()) {
    return loaded.separates_documents;
  }
  const bool separate = options.documents == "separate";
  if (separate && loaded.config.has_learned_positions()) {
    throw ConfigError(
        fmt::format("--documents separate needs rotary positions or ALiBi, but the model, of "
                    "family {}, has learned positions",
                    family_name(loaded.config.family)));
  }
  return separate;
}

// What the command has found out, on rank 0.
struct EvalResult {
  std::int64_t step = 0;
  std::string manifest_sha256;  // of the checkpoint
  std::string weights;          // which weights of it were judged, as weights_words() says
  TokenizerIdentity tokenizer;
  std::int64_t sequence = 0;       // tokens per sample of the dataset
  std::int64_t task_sequence = 0;  // the most tokens that a prediction of a task can look at
  std::string data_sha256;         // of the dataset's manifest; empty if only tasks were asked for
  bool separates_documents = false;
  Device device = Device::cpu();
  std::optional<Evaluation> losses;  // empty if only tasks were asked for
  std::optional<QuantizeReport> quantized;
  std::vector<TaskFigures> tasks;
  std::vector<GateOutcome> gates;

  // The sign of a NaN has no meaning but would be printed.
  double loss() const { return std::isnan(losses->loss) ? std::abs(losses->loss) : losses->loss; }
};

nlohmann::ordered_json result_json(const EvalResult& result) {
  nlohmann::ordered_json json = {
      {"schema", 2},
      {"step", result.step},
      {"manifest_sha256", result.manifest_sha256},
      {"weights", result.weights},
      {"tokenizer", {{"name", result.tokenizer.name}, {"sha256", result.tokenizer.digest}}}};
  if (!result.data_sha256.empty()) {
    json["data"] = {{"sha256", result.data_sha256},
                    {"sequence", result.sequence},
                    {"documents", result.separates_documents ? "separate" : "joined"}};
  }
  if (!result.tasks.empty()) {
    json["task_sequence"] = result.task_sequence;
  }
  if (result.losses) {
    json["loss"] = result.loss();
    json["bits_per_token"] = result.loss() / std::numbers::ln2;
    json["perplexity"] = std::exp(result.loss());
    json["samples"] = result.losses->samples;
    json["tokens"] = result.losses->tokens;
  }
  json["device"] = device_text(result.device);
  if (result.quantized) {
    json["quantize"] = quantize_json(*result.quantized);
  }
  for (const TaskFigures& task : result.tasks) {
    json["tasks"][task.name] = figures_json(task);
  }
  return json;
}

void print_result(const EvalResult& result) {
  if (result.losses) {
    fmt::print(
        "step {}: loss {:.6f} nats per token ({:.4f} bits), perplexity {:.4f}, over {} of {}\n",
        result.step, result.loss(), result.loss() / std::numbers::ln2, std::exp(result.loss()),
        counted(result.losses->samples, "sample"), counted(result.sequence, "token"));
  } else {
    fmt::print("step {}\n", result.step);
  }
  if (result.quantized) {
    print_quantize_report(*result.quantized);
  }
  if (!result.tasks.empty()) {
    fmt::print("{}", figures_table(result.tasks));
  }
  if (!result.gates.empty()) {
    fmt::print("{}", gates_table(result.gates));
  }
}

// Throws what judge_gates() will throw for figures that the result will not have, or the baseline
// does not. The result has the names and counts of the right one, and other numbers.
void check_figures(const EvalOptions& options, const std::vector<EvalTask>& tasks,
                   const ReadGates& gates) {
  EvalResult outline;
  if (!options.data.empty()) {
    outline.losses = Evaluation{};
    outline.data_sha256 = "unknown";
    outline.quantized = options.packed_bits() == 0 ? std::nullopt : std::optional(QuantizeReport());
  }
  for (const EvalTask& task : tasks) {
    outline.tasks.push_back(figures_in_outline(task));
  }
  const auto json = nlohmann::json::parse(result_json(outline).dump());
  (void)judge_gates(gates.file, result_figures(json), gates.baseline.figures);
}

// Judges the gates and writes the result where it was asked for.
nlohmann::ordered_json judged(const EvalOptions& options, EvalResult& result,
                              const ReadGates& gates) {
  // As text and back, so that a result is judged as one that is read from a file.
  nlohmann::ordered_json json = result_json(result);
  const auto read_back = nlohmann::json::parse(json.dump());
  if (!gates.file.baseline.empty()) {
    check_comparable(gates.file.baseline, gates.baseline.conditions, result_conditions(read_back));
  }
  result.gates = judge_gates(gates.file, result_figures(read_back), gates.baseline.figures);
  if (!result.gates.empty()) {
    json["gates"] = gates_json(result.gates);
    json["gates_met"] = all_met(result.gates);
  }
  if (!options.out.empty()) {
    write_named_file(options.out, json_text(json) + "\n");
  }
  return json;
}

// Evaluator is what all models of the command are loaded and evaluated with.
struct Evaluator {
  const EvalOptions& options;
  DeviceContext& device;
  Communicator& world;
  StepKeys& keys;

  // These are collective.
  LoadedModel load(int packed_bits) const {
    return load_model(options.checkpoint, world, device, asked_precision(options.precision),
                      options.ema ? Weights::average : Weights::latest, keys, packed_bits);
  }
  Evaluation losses(const LoadedModel& loaded, const Dataset& dataset,
                    const EvaluationPlan& plan) const {
    Run run{.context = device, .parameters = *loaded.parameters, .dropout = {}};
    run.packed = loaded.packed.get();
    const Evaluation result = evaluate(
        dataset, plan, world, with_progress(losses_of(*loaded.model, run), dataset, plan, world));
    check_samples_read(result, world);
    return result;
  }
  // Evaluates the weights as they are, too, if those of the model are packed. loss: of the model.
  std::optional<QuantizeReport> comparison(const LoadedModel& loaded, double loss,
                                           const Dataset& dataset,
                                           const EvaluationPlan& plan) const {
    if (loaded.packed == nullptr) {
      return std::nullopt;
    }
    const LoadedModel plain = load(0);
    const double plain_loss = losses(plain, dataset, plan).loss;
    QuantizeReport report = compare_decoding(loaded, plain, device);
    report.packed.type = options.quantize;
    report.packed.loss = loss;
    report.plain.loss = plain_loss;
    return report;
  }
};

// Computes the loss on a dataset; collective.
void evaluate_dataset(const Evaluator& evaluator, const LoadedModel& loaded, AppContext& context,
                      EvalResult& result) {
  const EvalOptions& options = evaluator.options;
  const Dataset dataset = open_dataset(
      options.data, loaded.config.vocab, evaluator.world,
      {&evaluator.keys.shared(), evaluator.keys.options().accept_plain_data, &context.access()});
  check_tokenizer(options, loaded, dataset);
  context.status.phase = "evaluate";
  result.data_sha256 = dataset.manifest_sha256();
  result.separates_documents = separates_documents(options, loaded);
  const EvaluationPlan plan{result.sequence,
                            options.micro_batch,
                            options.samples,
                            1,
                            &evaluator.device.staging(),
                            result.separates_documents};
  result.losses = evaluator.losses(loaded, dataset, plan);
  result.quantized = evaluator.comparison(loaded, result.losses->loss, dataset, plan);
}

void evaluate_on(DeviceContext& device, const EvalOptions& options, AppContext& context) {
  Communicator& world = context.session().world();
  const ReadGates gates = read_gates(options.tasks, world);
  const std::vector<EvalTask> tasks = read_tasks(options.tasks, world);
  run_on_root(world, [&]() -> std::string {
    check_figures(options, tasks, gates);
    return "";
  });
  StepKeys keys(world, with_access(options.keys.options(), context.access()));
  const Evaluator evaluator{options, device, world, keys};
  const LoadedModel loaded = evaluator.load(options.packed_bits());
  for (const std::string& why : loaded.skipped) {  // empty on the other ranks
    fmt::print(stderr, "trireme: skipped {}\n", printable(why));
  }
  if (world.rank() == 0) {
    say_device(device.device());
  }
  EvalResult result;
  result.step = loaded.step;
  result.manifest_sha256 = loaded.manifest_sha256;
  result.weights = options.weights_words(loaded.as_trained);
  result.tokenizer = loaded.tokenizer;
  result.device = device.device();
  result.sequence = options.sequence > 0 ? options.sequence : loaded.sequence;
  if (result.sequence > loaded.config.context) {
    throw ConfigError(fmt::format("--sequence {}: the model's context is {} tokens",
                                  result.sequence, loaded.config.context));
  }
  if (!options.data.empty()) {
    evaluate_dataset(evaluator, loaded, context, result);
  }
  context.status.phase = "evaluate";
  result.task_sequence = options.sequence > 0 ? options.sequence : loaded.config.context;
  result.tasks = run_tasks(tasks, options.tasks, loaded, device, result.task_sequence, world);
  nlohmann::ordered_json json;
  run_on_root(world, [&]() -> std::string {
    json = judged(options, result, gates);
    return "";
  });
  if (world.rank() == 0) {
    options.json ? print_json(json) : print_result(result);
  }
  if (result.losses && !std::isfinite(result.losses->loss)) {
    throw DivergenceError(fmt::format(
        "the loss of {} is not finite: the run had diverged; evaluate an older step, named by its "
        "own folder",
        options.checkpoint));
  }
  const std::int64_t missed = all_met(result.gates) ? 0 : 1;
  if (all_reduce_value(world, missed, ReduceOp::max) > 0) {
    context.exit_code = static_cast<int>(ExitCode::below_threshold);
  }
}

// Collective. Refuses files that could not be written at the end.
void check_outputs(const EvalOptions& options, Communicator& world) {
  run_on_root(world, [&]() -> std::string {
    for (const std::string& file : {options.out, options.tasks.details}) {
      if (!file.empty()) {
        check_named_file(file);
      }
    }
    return "";
  });
}

void evaluate_checkpoint(const EvalOptions& options, AppContext& context) {
  context.status.phase = "load";
  const RankPlace& place = context.session().place();
  check_outputs(options, context.session().world());
  check_exists(options.checkpoint);
  if (options.data.empty() && options.tasks.tasks.empty()) {
    throw ConfigError("nothing to evaluate: add --data DIR, --task KIND:FILE, or both");
  }
  DeviceContext device(choose_device(options.device, place.local_rank, place.local_size),
                       compute_threads(place.threads()));
  naming_held_memory(device, [&] { evaluate_on(device, options, context); });
}

}  // namespace

void add_eval_command(CommandLine& app, AppContext& context) {
  CommandLine& command =
      app.add_command("eval", "Evaluate a checkpoint on a dataset, and on tasks with answers");
  const auto options = std::make_shared<EvalOptions>();
  command.add_option("--data", options->data, "A dataset's folder, for the loss and perplexity")
      .type_name("DIR");
  options->add_to(command);
  command.add_option("--sequence", options->sequence, "Tokens per sample (default: as in training)")
      .check(positive_count());
  command.add_option("--micro-batch", options->micro_batch, "Samples computed at a time")
      .check(positive_count());
  command.add_option("--samples", options->samples, "Evaluate at most N samples (default: all)")
      .check(positive_count());
  command
      .add_option("--documents", options->documents,
                  "Whether a sample's documents see each other (default: as in training)")
      .check(one_of({"joined", "separate"}));
  command.add_flag("--any-tokenizer", options->any_tokenizer,
                   "Evaluate even if another tokenizer made the dataset");
  options->tasks.add_to(command);
  command.add_flag("--json", options->json, "Print JSON");
  command.add_option("-J", options->out, "Write the result to FILE as JSON")
      .type_name("FILE")
      .written();
  command.footer(
      "Examples:\n"
      "  trireme eval --checkpoint runs/demo/run/checkpoints \\\n"
      "    --data runs/demo/data/validation\n"
      "  trireme eval --checkpoint runs/demo/run/checkpoints \\\n"
      "    --task hellaswag:hellaswag.jsonl --gate gates.yaml");
  command.callback([options, &context] { evaluate_checkpoint(*options, context); });
}

}  // namespace trireme
