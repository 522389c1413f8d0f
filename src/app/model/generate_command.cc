#include "src/app/model/generate_command.h"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "io/data/prompt_file.h"
#include "io/data/tokenizer.h"
#include "io/tokens/decode_stream.h"
#include "mpi/topology.h"
#include "src/app/access/folder_access.h"
#include "src/app/command/launcher_rank.h"
#include "src/app/command/number_check.h"
#include "src/app/command/standard_output.h"
#include "src/app/model/chat.h"
#include "src/app/model/model_options.h"
#include "src/app/model/stop_strings.h"
#include "src/app/model/tokenizer_choice.h"
#include "src/base/philox.h"
#include "src/base/printable.h"
#include "src/compute/device_choice.h"
#include "src/nn/sampling.h"
#include "src/train/load_model.h"
#include "src/train/memory/held_memory.h"
#include "src/train/run/run_config.h"

namespace trireme {
namespace {

struct GenerateOptions : ModelOptions {
  std::string prompt;
  std::string prompts;  // a file of prompts
  TokenizerChoice tokenizer;
  ChatOptions chat;
  std::int64_t samples = 1;
  std::vector<std::string> stop;
  std::int64_t tokens = 256;
  bool ids = false;
  bool special = false;  // whether the tokenizer's template begins a prompt
  int threads = 0;
  bool json = false;
  SamplingOptions sampling;
};

// Generator holds the sequence so far, and the cache with its newest part, which has room for the
// longest sequence or for the model's context, whichever is shorter. When the context is full, the
// cache is filled again with the last half of it.
class Generator {
 public:
  // longest: tokens of the longest sequence that will be asked for, with its prompt.
  Generator(const LoadedModel& loaded, Run& run, std::int64_t longest)
      : loaded_(loaded),
        run_(run),
        cache_(run.context, loaded.config, std::min(longest, loaded.config.context),
               loaded.compute) {}

  // Discards the sequence.
  void restart() {
    sequence_.clear();
    cache_.truncate(0);
  }
  // Warns once if a sequence of this length is longer than those of training.
  void warn_beyond_training(std::int64_t length) {
    const std::int64_t context = loaded_.config.context;
    if (std::min(length, context) > loaded_.sequence && !warned_) {
      warned_ = true;
      fmt::print(stderr,
                 "trireme: the model was trained on sequences of {} tokens (data.sequence), and "
                 "its context is {}: text beyond {} tokens may be poor\n",
                 loaded_.sequence, context, loaded_.sequence);
    }
  }
  // Appends ids to the sequence and returns the logits of the next token.
  std::vector<float> append(const std::vector<std::int32_t>& ids) {
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
    const Tensor logits = loaded_.model->decode({from, count, DType::i32}, cache_, run_);
    return run_.context.read<float>(logits.view());
  }
  // Returns how many tokens are kept when the context is full.
  std::int64_t kept() const { return std::max(cache_.capacity() / 2, std::int64_t{1}); }
  std::int64_t length() const { return static_cast<std::int64_t>(sequence_.size()); }

 private:
  const LoadedModel& loaded_;
  Run& run_;
  KeyValueCache cache_;
  std::vector<std::int32_t> sequence_;
  bool warned_ = false;
};

// Describes one continuation of a prompt.
struct Sample {
  std::int64_t tokens = 0;        // drawn tokens, including the one that ended it
  const char* finish = "length";  // or "stop" for a stop string, "end" for the end of a document
};

// Receives text as it is drawn.
using TextSink = std::function<void(const std::string&)>;

class Sampling {
 public:
  Sampling(const GenerateOptions& options, const Tokenizer& tokenizer, Generator& generator,
           const LoadedModel& loaded, std::int32_t end_of_document)
      : options_(options),
        tokenizer_(tokenizer),
        generator_(generator),
        // The model's vocabulary may be padded beyond the tokenizer's ids.
        known_(std::min(loaded.config.vocab, tokenizer.vocab())),
        ends_(all_ends(loaded.text, end_of_document)) {}

  Sample draw(const std::string& prompt, std::uint64_t seed, const TextSink& sink) {
    SamplingOptions sampling = options_.sampling;
    sampling.seed = seed;
    std::vector<std::int32_t> ids;
    if (options_.special) {
      ids = tokenizer_.before_text();
    }
    tokenizer_.encode(prompt, ids);
    if (ids.empty()) {
      ids.push_back(tokenizer_.end_of_document());
    }
    generator_.warn_beyond_training(static_cast<std::int64_t>(ids.size()) + options_.tokens - 1);
    generator_.restart();
    StopStrings stop(options_.stop);
    DecodeStream texts(tokenizer_, ids);
    Sample sample;
    while (sample.tokens < options_.tokens && !stop.stopped()) {
      const std::vector<float> logits = generator_.append(ids);
      const std::int32_t token = sample_token(
          std::span(logits).first(static_cast<std::size_t>(known_)), sampling, generator_.length());
      ++sample.tokens;
      if (std::ranges::find(ends_, token) != ends_.end()) {
        sample.finish = "end";
        break;
      }
      ids.assign(1, token);
      sink(stop.add(texts.add(token)));
    }
    if (!stop.stopped()) {
      sink(stop.add(texts.rest()));
    }
    sink(stop.rest());
    sample.finish = stop.stopped() ? "stop" : sample.finish;
    return sample;
  }

 private:
  const GenerateOptions& options_;
  const Tokenizer& tokenizer_;
  Generator& generator_;
  std::int64_t known_;
  std::vector<std::int32_t> ends_;  // tokens that end a sample
};

// Returns the token that ends a document, also where prompts are ids; -1 if nothing says which.
std::int32_t end_of_document(const GenerateOptions& options, const Tokenizer& tokenizer,
                             const LoadedModel& loaded) {
  if (!options.ids) {
    return tokenizer.end_of_document();
  }
  try {
    return options.tokenizer.open(loaded, false)->end_of_document();
  } catch (const Error&) {  // ids need no tokenizer
    return -1;
  }
}

// Returns the seed of a sample. The first sample uses the seed itself, so that its text does not
// depend on the number of samples.
std::uint64_t seed_of(std::uint64_t seed, std::int64_t sample) {
  return sample == 0 ? seed : mix64(seed ^ mix64(static_cast<std::uint64_t>(sample)));
}

void print_sample(const std::string& prompt, Sampling& sampling, std::uint64_t seed) {
  TextPrinter printer;
  printer.print(prompt);
  sampling.draw(prompt, seed, [&printer](const std::string& text) {
    printer.print(text);
    flush_standard_output();
  });
  printer.end();
}

void print_json_sample(std::int64_t prompt_number, std::int64_t number, const std::string& prompt,
                       Sampling& sampling, std::uint64_t seed, const std::string& device) {
  std::string text;
  const Sample sample =
      sampling.draw(prompt, seed, [&](const std::string& piece) { text += piece; });
  const nlohmann::ordered_json json = {{"schema", 1},
                                       {"prompt_number", prompt_number},
                                       {"sample", number},
                                       {"seed", seed},
                                       {"prompt", prompt},
                                       {"text", text},
                                       {"tokens", sample.tokens},
                                       {"finish", sample.finish},
                                       {"device", device}};
  print_json_line(json);
  flush_standard_output();
}

std::vector<std::string> prompts_of(const GenerateOptions& options) {
  if (options.prompts.empty()) {
    return {options.prompt};
  }
  if (!options.prompt.empty()) {
    throw ConfigError("--prompt and --prompts are both given: choose one of them");
  }
  return read_prompts(options.prompts);
}

// Returns the number of tokens, with those that can be put before a text.
std::int64_t longest_prompt(const std::vector<std::string>& prompts, const Tokenizer& tokenizer) {
  std::int64_t longest = 1;
  std::vector<std::int32_t> ids;
  for (const std::string& prompt : prompts) {
    ids = tokenizer.before_text();
    tokenizer.encode(prompt, ids);
    longest = std::max(longest, std::ssize(ids));
  }
  return longest;
}

void generate_on(DeviceContext& device, const std::vector<std::string>& prompts,
                 const GenerateOptions& options, AppContext& context) {
  const LoadedModel loaded =
      load_model(options.checkpoint, device, asked_precision(options.precision),
                 options.ema ? Weights::average : Weights::latest,
                 with_access(options.keys.options(), context.access()), options.packed_bits());
  for (const std::string& why : loaded.skipped) {
    fmt::print(stderr, "trireme: skipped {}\n", printable(why));
  }
  const auto tokenizer = options.tokenizer.open(loaded, options.ids);
  if (options.special && tokenizer->before_text().empty()) {
    throw ConfigError("the model's tokenizer puts no tokens before a text: omit --special");
  }
  // A bad prompt is refused before any text is printed.
  const std::int64_t longest = longest_prompt(prompts, *tokenizer) + options.tokens;
  Run run{.context = device, .parameters = *loaded.parameters, .dropout = {}};
  run.packed = loaded.packed.get();
  context.status.phase = "generate";
  if (options.chat.on) {
    say_device(device.device());
    run_chat(options.chat, options.chat.format(options.tokenizer.files_for(loaded)),
             {options.sampling, options.tokens, options.stop}, loaded, run, *tokenizer);
    return;
  }
  Generator generator(loaded, run, longest);
  Sampling sampling(options, *tokenizer, generator, loaded,
                    end_of_document(options, *tokenizer, loaded));
  const auto count = static_cast<std::int64_t>(prompts.size());
  say_device(device.device());
  const std::string computes_on = device_text(device.device());
  const bool several = count * options.samples > 1;
  for (std::int64_t p = 0; p < count; ++p) {
    const std::string& prompt = prompts[static_cast<std::size_t>(p)];
    for (std::int64_t s = 0; s < options.samples; ++s) {
      const std::uint64_t seed = seed_of(options.sampling.seed, s);
      if (options.json) {
        print_json_sample(p + 1, s + 1, prompt, sampling, seed, computes_on);
        continue;
      }
      if (several) {
        fmt::print("--- prompt {} of {}, sample {} of {} ---\n", p + 1, count, s + 1,
                   options.samples);
      }
      print_sample(prompt, sampling, seed);
    }
  }
}

// Throws ConfigError for options that a chat lacks, or that only a chat has.
void check_chat(const GenerateOptions& options) {
  const ChatOptions& chat = options.chat;
  if (chat.on && (!options.prompt.empty() || !options.prompts.empty() || options.samples > 1 ||
                  options.ids || options.special || options.json)) {
    throw ConfigError(
        "--chat reads messages from standard input, so that --prompt, --prompts, --samples, --ids, "
        "--special and --json have no meaning: omit them; --json-lines makes it read and print "
        "JSON");
  }
  if (!chat.on && (chat.json_lines || !chat.system.empty() || chat.has_marks() ||
                   !chat.chat_template.empty())) {
    throw ConfigError(
        "--json-lines, --system, --user-mark, --assistant-mark, --end-mark and --chat-template are "
        "for a chat: add --chat");
  }
  if (chat.has_marks() && !chat.chat_template.empty()) {
    throw ConfigError("marks and --chat-template are both given: choose one of them");
  }
  if (chat.on && chat.marks.stop().empty()) {
    throw ConfigError(
        "--user-mark and --end-mark are both empty, so that no answer would end where the next "
        "message begins: set one of them");
  }
}

void generate(const GenerateOptions& options, AppContext& context) {
  if (rank_before_start() != 0) {
    return;  // of several processes under mpirun or srun, only the first one works
  }
  options.sampling.validate();
  check_chat(options);
  const std::vector<std::string> prompts = prompts_of(options);
  (void)StopStrings(options.stop);
  context.status.phase = "load";
  check_exists(options.checkpoint);
  DeviceContext device(
      choose_device(options.device),
      compute_threads(options.threads > 0 ? options.threads : current_binding().cores));
  naming_held_memory(device, [&] { generate_on(device, prompts, options, context); });
}

void add_sampling_options(CommandLine& command, GenerateOptions& options) {
  command.add_option("--tokens", options.tokens, "Generate at most N tokens per text")
      .check(integer_within(1, kMostCounted));
  command.add_option("--temperature", options.sampling.temperature,
                     "Sampling temperature; 0 = greedy decoding");
  command
      .add_option("--top-k", options.sampling.top_k,
                  "Sample from the N most likely tokens; 0 = no limit")
      .check(integer_within(0, kMostCounted));
  command.add_option("--top-p", options.sampling.top_p,
                     "Nucleus sampling: keep the smallest set of tokens with a cumulative "
                     "probability of at least NUMBER");
  command.add_option("--seed", options.sampling.seed, "Random seed").check(any_seed());
}

}  // namespace

void add_generate_command(CommandLine& app, AppContext& context) {
  CommandLine& command = app.add_command("generate", "Generate text with a checkpoint");
  const auto options = std::make_shared<GenerateOptions>();
  options->add_to(command);
  command.add_option("--prompt", options->prompt, "The text to continue (default: none)");
  command
      .add_option("--prompts", options->prompts,
                  "A file of prompts, one per line; in a .jsonl file, one object with the field "
                  "\"prompt\" per line")
      .type_name("FILE");
  command.add_option("--samples", options->samples, "Draw N texts for each prompt")
      .check(integer_within(1, kMostCounted));
  command.add_option("--stop", options->stop, "End a text before this string; can be repeated")
      .one_value_per_use();
  add_sampling_options(command, *options);
  command.add_flag("--special", options->special,
                   "Put the tokens before each prompt that the tokenizer's template says, such as "
                   "<s>, as transformers does");
  command.add_flag("--json", options->json, "Print each text as one line of JSON");
  command.add_flag(
      "--ids", options->ids,
      "Read the prompt and print the output as token ids, as in '464 3290', for models "
      "whose tokenizer this program does not have");
  options->tokenizer.has_ids = true;
  options->tokenizer.add_to(command);
  options->chat.add_to(command);
  command
      .add_option("--threads", options->threads,
                  "Compute threads (default: one for each core of this process)")
      .check(thread_count());
  command.footer(
      "Examples:\n"
      "  trireme generate --checkpoint runs/demo/run/checkpoints --prompt 'The ' \\\n"
      "    --temperature 0.8 --top-k 40\n"
      "  trireme generate --checkpoint runs/tuned/checkpoints --chat");
  command.callback([options, &context] { generate(*options, context); });
}

}  // namespace trireme
