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
#include "src/app/model/model_options.h"
#include "src/app/model/quantize_report.h"
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
  std::string data;
  std::int64_t sequence = 0;
  std::int64_t micro_batch = 4;
  std::int64_t samples = std::numeric_limits<std::int64_t>::max();
  bool any_tokenizer = false;
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

void print_result(const EvalOptions& options, std::int64_t step, const EvaluationPlan& plan,
                  const Evaluation& result, Device device,
                  const std::optional<QuantizeReport>& quantized) {
  // The sign of a NaN has no meaning but would be printed.
  const double loss = std::isnan(result.loss) ? std::abs(result.loss) : result.loss;
  const double bits = loss / std::numbers::ln2;
  if (options.json) {
    nlohmann::ordered_json json = {{"schema", 2},
                                   {"step", step},
                                   {"loss", loss},
                                   {"bits_per_token", bits},
                                   {"perplexity", std::exp(loss)},
                                   {"samples", result.samples},
                                   {"tokens", result.tokens},
                                   {"device", device_text(device)}};
    if (quantized) {
      json["quantize"] = quantize_json(*quantized);
    }
    print_json(json);
    return;
  }
  fmt::print(
      "step {}: loss {:.6f} nats per token ({:.4f} bits), perplexity {:.4f}, over {} of {}\n", step,
      loss, bits, std::exp(loss), counted(result.samples, "sample"),
      counted(plan.sequence, "token"));
  if (quantized) {
    print_quantize_report(*quantized);
  }
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

void evaluate_on(DeviceContext& device, const EvalOptions& options, AppContext& context) {
  Communicator& world = context.session().world();
  StepKeys keys(world, with_access(options.keys.options(), context.access()));
  const Evaluator evaluator{options, device, world, keys};
  const LoadedModel loaded = evaluator.load(options.packed_bits());
  for (const std::string& why : loaded.skipped) {  // empty on the other ranks
    fmt::print(stderr, "trireme: skipped {}\n", printable(why));
  }
  if (world.rank() == 0) {
    say_device(device.device());
  }
  const Dataset dataset =
      open_dataset(options.data, loaded.config.vocab, world,
                   {&keys.shared(), keys.options().accept_plain_data, &context.access()});
  check_tokenizer(options, loaded, dataset);
  context.status.phase = "evaluate";
  const EvaluationPlan plan{options.sequence > 0 ? options.sequence : loaded.sequence,
                            options.micro_batch, options.samples, 1, &evaluator.device.staging()};
  if (plan.sequence > loaded.config.context) {
    throw ConfigError(fmt::format("--sequence {}: the model's context is {} tokens", plan.sequence,
                                  loaded.config.context));
  }
  const Evaluation result = evaluator.losses(loaded, dataset, plan);
  const auto quantized = evaluator.comparison(loaded, result.loss, dataset, plan);
  if (world.rank() == 0) {
    print_result(options, loaded.step, plan, result, device.device(), quantized);
  }
  if (!std::isfinite(result.loss)) {
    throw DivergenceError(fmt::format(
        "the loss of {} is not finite: the run had diverged; evaluate an older step, named by its "
        "own folder",
        options.checkpoint));
  }
}

void evaluate_checkpoint(const EvalOptions& options, AppContext& context) {
  context.status.phase = "load";
  const RankPlace& place = context.session().place();
  check_exists(options.checkpoint);
  DeviceContext device(choose_device(options.device, place.local_rank, place.local_size),
                       compute_threads(place.threads()));
  naming_held_memory(device, [&] { evaluate_on(device, options, context); });
}

}  // namespace

void add_eval_command(CommandLine& app, AppContext& context) {
  CommandLine& command =
      app.add_command("eval", "Compute the loss and perplexity of a checkpoint on a dataset");
  const auto options = std::make_shared<EvalOptions>();
  command.add_option("--data", options->data, "The dataset's folder").required().type_name("DIR");
  options->add_to(command);
  command.add_option("--sequence", options->sequence, "Tokens per sample (default: as in training)")
      .check(positive_count());
  command.add_option("--micro-batch", options->micro_batch, "Samples computed at a time")
      .check(positive_count());
  command.add_option("--samples", options->samples, "Evaluate at most N samples (default: all)")
      .check(positive_count());
  command.add_flag("--any-tokenizer", options->any_tokenizer,
                   "Evaluate even if another tokenizer made the dataset");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Example:\n"
      "  trireme eval --checkpoint runs/demo/run/checkpoints \\\n"
      "    --data runs/demo/data/validation");
  command.callback([options, &context] { evaluate_checkpoint(*options, context); });
}

}  // namespace trireme
