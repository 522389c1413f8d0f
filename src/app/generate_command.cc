#include "src/app/generate_command.h"

#include <cstdio>

#include "io/data/tokenizer.h"
#include "mpi/topology.h"
#include "src/app/launcher_rank.h"
#include "src/app/number_check.h"
#include "src/app/standard_output.h"
#include "src/base/printable.h"
#include "src/nn/sampling.h"
#include "src/train/load_model.h"

namespace trireme {
namespace {

struct GenerateOptions {
  std::string checkpoint;
  std::string prompt;
  std::int64_t tokens = 256;
  std::string precision;  // empty: as it was trained
  bool ids = false;
  int threads = 0;
  SamplingOptions sampling;
};

// The sequence so far, and the cache that holds its newest part. When the context is full the cache
// is filled again with the last half of it.
class Generator {
 public:
  Generator(const LoadedModel& loaded, Pool& pool, Run& run)
      : loaded_(loaded),
        run_(run),
        cache_(pool, loaded.config, loaded.config.context, loaded.compute) {}

  // Appends ids to the sequence; returns the logits of the token that follows.
  Tensor append(const std::vector<std::int32_t>& ids) {
    sequence_.insert(sequence_.end(), ids.begin(), ids.end());
    auto count = static_cast<std::int64_t>(ids.size());
    if (count > cache_.capacity()) {
      fmt::print(stderr,
                 "trireme: the prompt has {} tokens, more than the model's context of {}: only its "
                 "last {} are used\n",
                 count, cache_.capacity(), kept());
    }
    if (cache_.length() + count > cache_.capacity()) {
      cache_.truncate(0);
      count = std::min(kept(), length());
    }
    const std::int32_t* from = sequence_.data() + length() - count;
    return loaded_.model->decode({from, count, DType::i32}, cache_, run_);
  }
  // How many tokens stay when the context is full.
  std::int64_t kept() const { return std::max(cache_.capacity() / 2, std::int64_t{1}); }
  std::int64_t length() const { return static_cast<std::int64_t>(sequence_.size()); }

 private:
  const LoadedModel& loaded_;
  Run& run_;
  KeyValueCache cache_;
  std::vector<std::int32_t> sequence_;
};

void generate(const GenerateOptions& options, AppContext& context) {
  if (rank_before_start() != 0) {
    return;  // one of several processes under mpirun or srun: the first one prints
  }
  options.sampling.validate();
  context.status.phase = "load";
  Pool pool{Device{}};
  Stream stream({},
                compute_threads(options.threads > 0 ? options.threads : current_binding().cores));
  const LoadedModel loaded =
      load_model(options.checkpoint, pool, asked_precision(options.precision));
  for (const std::string& why : loaded.skipped) {
    fmt::print(stderr, "trireme: skipped {}\n", printable(why));
  }
  const auto tokenizer = tokenizer_for(loaded.tokenizer, loaded.config.vocab, options.ids);
  Run run{.kernels = kernels_for({}),
          .stream = stream,
          .pool = pool,
          .parameters = *loaded.parameters,
          .dropout = {}};
  context.status.phase = "generate";
  std::vector<std::int32_t> ids;
  tokenizer->encode(options.prompt, ids);
  if (ids.empty()) {
    ids.push_back(tokenizer->end_of_document());
  }
  Generator generator(loaded, pool, run);
  // A vocabulary may be padded beyond the tokenizer's ids.
  const std::int64_t known = std::min(loaded.config.vocab, tokenizer->vocab());
  std::fputs(options.prompt.c_str(), stdout);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const Tensor logits = generator.append(ids);
    const std::int32_t token =
        sample_token(logits.view().slice(0, known), options.sampling, generator.length());
    if (token == tokenizer->end_of_document()) {
      break;
    }
    ids.assign(1, token);
    const std::string text = tokenizer->decode(ids);
    std::fwrite(text.data(), 1, text.size(), stdout);
    flush_standard_output();
  }
  std::fputs("\n", stdout);
}

}  // namespace

void add_generate_command(CommandLine& app, AppContext& context) {
  CommandLine& command = app.add_command("generate", "Generate text with a checkpoint");
  const auto options = std::make_shared<GenerateOptions>();
  command
      .add_option("--checkpoint", options->checkpoint,
                  "A checkpoint, or a folder of checkpoints: then its newest valid one")
      .required()
      .type_name("DIR");
  command.add_option("--prompt", options->prompt, "The text to continue (default: none)");
  command.add_option("--tokens", options->tokens, "Generate at most N tokens")
      .check(integer_within(0, kMostCounted))
      .show_default();
  command
      .add_option("--temperature", options->sampling.temperature,
                  "Sampling temperature; 0 = greedy decoding")
      .show_default();
  command
      .add_option("--top-k", options->sampling.top_k,
                  "Sample from the N most likely tokens; 0 = no limit")
      .check(integer_within(0, kMostCounted))
      .show_default();
  command
      .add_option("--top-p", options->sampling.top_p,
                  "Nucleus sampling: keep the smallest set of tokens with a cumulative "
                  "probability of at least NUMBER")
      .show_default();
  command.add_option("--seed", options->sampling.seed, "Random seed")
      .check(any_seed())
      .show_default();
  command
      .add_option("--precision", options->precision,
                  "Precision of the products and activations (default: as in training)")
      .check(one_of({"bf16", "fp32"}));
  command.add_flag(
      "--ids", options->ids,
      "Read the prompt and print the output as token ids, as in '464 3290', for models "
      "whose tokenizer this program does not have");
  command
      .add_option("--threads", options->threads,
                  "Compute threads (default: one for each core of this process)")
      .check(thread_count());
  command.footer(
      "Example:\n"
      "  trireme generate --checkpoint runs/demo/run/checkpoints --prompt 'The ' \\\n"
      "    --temperature 0.8 --top-k 40");
  command.callback([options, &context] { generate(*options, context); });
}

}  // namespace trireme
