#include "src/app/data/tokenizer_command.h"

#include <charconv>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/tokens/tokenizer_files.h"
#include "src/app/command/standard_output.h"
#include "src/app/data/tokenizer_chat.h"
#include "src/app/data/tokenizer_train.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/stopwatch.h"

namespace trireme {
namespace {

struct TokenizerOptions {
  std::string tokenizer;
  std::string input;
  std::vector<std::string> text;  // empty if it is not given
  std::string end_token;
  bool lines = false;
  bool null = false;
  bool tokens = false;
  bool special = false;
  bool count = false;
  bool json = false;
};

std::string input_of(const TokenizerOptions& options) {
  if (!options.text.empty()) {
    if (!options.input.empty()) {
      throw ConfigError("a file and a text are both given: choose one of them");
    }
    return options.text.back();
  }
  if (!options.input.empty() && options.input != "-") {
    return read_file(options.input, std::int64_t{4} << 30);
  }
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

// Cuts the input into texts that are encoded by themselves.
std::vector<std::string_view> texts_of(std::string_view input, const TokenizerOptions& options) {
  if (!options.lines && !options.null) {
    return {input};
  }
  std::vector<std::string_view> texts;
  const char separator = options.null ? '\0' : '\n';
  for (std::size_t at = 0; at < input.size();) {
    const std::size_t end = std::min(input.find(separator, at), input.size());
    texts.push_back(input.substr(at, end - at));
    at = end + 1;
  }
  return texts;
}

void encode_one(const BpeTokenizer& tokenizer, std::string_view text, bool special,
                std::vector<std::int32_t>& ids) {
  const auto add = [&](const std::vector<std::int32_t>& more) {
    if (special) {
      ids.insert(ids.end(), more.begin(), more.end());
    }
  };
  add(tokenizer.surroundings().before());
  tokenizer.encode(text, ids);
  add(tokenizer.surroundings().after());
}

void print_count(const BpeTokenizer& tokenizer, const std::vector<std::string_view>& texts,
                 const TokenizerOptions& options) {
  std::int64_t bytes = 0;
  std::int64_t tokens = 0;
  const Stopwatch watch;
  std::vector<std::int32_t> ids;
  for (const std::string_view text : texts) {
    ids.clear();
    encode_one(tokenizer, text, options.special, ids);
    bytes += static_cast<std::int64_t>(text.size());
    tokens += static_cast<std::int64_t>(ids.size());
  }
  const double seconds = watch.seconds();
  if (options.json) {
    print_json({{"schema", 1},
                {"texts", texts.size()},
                {"bytes", bytes},
                {"tokens", tokens},
                {"seconds", seconds}});
    return;
  }
  fmt::print("{} texts, {} bytes, {} tokens, {:.2f} bytes per token, {:.3f} s, {:.1f} MB/s\n",
             texts.size(), bytes, tokens,
             static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(tokens, 1)),
             seconds, static_cast<double>(bytes) * 1e-6 / seconds);
}

void encode(const TokenizerOptions& options) {
  const auto tokenizer = open_tokenizer_files(options.tokenizer, options.end_token);
  const std::string input = input_of(options);
  const std::vector<std::string_view> texts = texts_of(input, options);
  if (options.count) {
    print_count(*tokenizer, texts, options);
    return;
  }
  std::vector<std::int32_t> ids;
  for (const std::string_view text : texts) {
    ids.clear();
    encode_one(*tokenizer, text, options.special, ids);
    if (options.json || options.tokens) {
      std::vector<std::string> tokens;
      for (const std::int32_t id : ids) {
        tokens.push_back(tokenizer->token(id));
      }
      options.json ? print_json_line({{"ids", ids}, {"tokens", tokens}})
                   : fmt::print("{}\n", printable(fmt::format("{}", fmt::join(tokens, " "))));
    } else {
      fmt::print("{}\n", fmt::join(ids, " "));
    }
  }
  flush_standard_output();
}

std::vector<std::int32_t> ids_of(std::string_view line) {
  constexpr std::string_view kBetween = " ,\t\r\n";
  std::vector<std::int32_t> ids;
  for (std::size_t at = line.find_first_not_of(kBetween); at != std::string_view::npos;
       at = line.find_first_not_of(kBetween, at)) {
    const std::string_view word = line.substr(at, line.find_first_of(kBetween, at) - at);
    std::int32_t id = -1;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (code != std::errc() || end != word.data() + word.size()) {
      throw DataError(fmt::format("'{}' is not a token id", printable(word)));
    }
    ids.push_back(id);
    at += word.size();
  }
  return ids;
}

void decode(const TokenizerOptions& options) {
  const auto tokenizer = open_tokenizer_files(options.tokenizer);
  const std::string input = input_of(options);
  TextPrinter printer;
  for (const std::string_view line : texts_of(input, options)) {
    printer.print(tokenizer->decode(ids_of(line), options.special));
    if (options.lines) {
      printer.print("\n");
    } else if (options.null) {
      printer.print(std::string_view("\0", 1));
    }
  }
  flush_standard_output();
}

void show_info(const TokenizerOptions& options) {
  const auto tokenizer = open_tokenizer_files(options.tokenizer, options.end_token);
  nlohmann::ordered_json added = nlohmann::ordered_json::array();
  for (const AddedToken& token : tokenizer->added().all()) {
    added.push_back({{"id", token.id}, {"content", token.content}, {"special", token.special}});
  }
  const std::int32_t end = tokenizer->end_of_document();
  if (options.json) {
    print_json(
        {{"schema", 1},
         {"vocab", tokenizer->vocab()},
         {"merges", tokenizer->model().merge_count()},
         {"end_of_document", end < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(end)},
         {"before", tokenizer->surroundings().before()},
         {"after", tokenizer->surroundings().after()},
         {"added", added},
         {"digest", tokenizer->digest()}});
    return;
  }
  fmt::print("vocabulary       {} ids, {} merges\n", tokenizer->vocab(),
             tokenizer->model().merge_count());
  fmt::print("end of document  {}\n",
             end < 0 ? "none" : fmt::format("{} {}", end, printable(tokenizer->token(end))));
  fmt::print("added tokens     {}\n", tokenizer->added().all().size());
  fmt::print("digest           {}\n", tokenizer->digest());
}

CommandLine& add_one(CommandLine& group, const std::shared_ptr<TokenizerOptions>& options,
                     const std::string& name, const std::string& description) {
  CommandLine& command = group.add_command(name, description);
  command
      .add_option(
          "TOKENIZER", options->tokenizer,
          "A tokenizer.json, a vocab.json beside a merges.txt, a SentencePiece .model, or a "
          "folder with one of them")
      .required();
  return command;
}

void add_input(CommandLine& command, TokenizerOptions& options, const std::string& what) {
  command.add_option("INPUT", options.input, "File of " + what + "; - or none is standard input");
  command.add_flag("--lines", options.lines, "Treat each line by itself");
  command.add_flag("--null", options.null, "Treat each part before a zero byte by itself");
}

}  // namespace

void add_tokenizer_command(CommandLine& app) {
  CommandLine& group =
      app.add_command("tokenizer", "Train tokenizers, and encode and decode text with them");
  group.require_command();
  group.footer("Example:\n  trireme tokenizer encode llama/tokenizer.json --text 'Hello world'");
  const auto options = std::make_shared<TokenizerOptions>();

  CommandLine& encoding = add_one(group, options, "encode", "Print the token ids of a text");
  add_input(encoding, *options, "text");
  encoding.add_option("--text", options->text, "The text, instead of a file")
      .expected(1)
      .one_value_per_use();
  encoding.add_flag("--special", options->special,
                    "Put the tokens around it that the tokenizer's template says");
  encoding.add_flag("--tokens", options->tokens, "Print the tokens instead of their ids");
  encoding.add_flag("--count", options->count,
                    "Print only how many tokens there are, and the rate");
  encoding.add_flag("--json", options->json, "Print JSON");
  encoding.footer("Example:\n  trireme tokenizer encode gpt2/ README.md --count");
  encoding.callback([options] { encode(*options); });

  add_tokenizer_train(group);
  add_tokenizer_chat(group);

  CommandLine& decoding = add_one(group, options, "decode", "Print the text of token ids");
  add_input(decoding, *options, "ids in decimal, separated by blanks");
  decoding.add_option("--ids", options->text, "The ids, instead of a file").expected(1);
  decoding.add_flag("--special", options->special, "Print special tokens, too");
  decoding.footer("Example:\n  trireme tokenizer decode gpt2/ --ids '15496 995'");
  decoding.callback([options] { decode(*options); });

  CommandLine& info = add_one(group, options, "info", "Print what a tokenizer is");
  info.add_option("--end-of-document", options->end_token, "The token that ends a document")
      .type_name("TOKEN");
  info.add_flag("--json", options->json, "Print JSON");
  info.footer("Example:\n  trireme tokenizer info gpt2/");
  info.callback([options] { show_info(*options); });
}

}  // namespace trireme
