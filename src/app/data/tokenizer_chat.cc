#include "src/app/data/tokenizer_chat.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/chat/chat_template.h"
#include "io/data/chat_marks.h"
#include "io/tokens/tokenizer_files.h"
#include "src/app/command/standard_output.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;

struct ChatArguments {
  std::string tokenizer;
  std::string input;
  std::string chat_template;
  std::string field = "messages";
  bool asks = false;
  bool answers = false;
  bool json = false;
};

ChatTemplate template_of(const ChatArguments& arguments) {
  const bool has_files = arguments.tokenizer != "bytes";
  auto found = ChatTemplate::open(has_files ? arguments.tokenizer : "", arguments.chat_template);
  if (!found) {
    throw DataError(fmt::format("{} has no chat template: give a file with one by --chat-template",
                                printable(arguments.tokenizer)));
  }
  return std::move(*found);
}

std::string input_of(const ChatArguments& arguments) {
  if (!arguments.input.empty() && arguments.input != "-") {
    return read_file(arguments.input, std::int64_t{1} << 30);
  }
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

// Returns what --json prints of a conversation whose answers are to be learned.
ordered_json shown(const Tokenizer& tokenizer, const RenderedChat& chat) {
  const EncodedChat encoded = encode_chat(tokenizer, chat);
  ordered_json answers = ordered_json::array();
  for (const auto& [begin, end] : chat.answers) {
    answers.push_back(chat.text.substr(begin, end - begin));
  }
  return {{"text", chat.text},
          {"answers", answers},
          {"ids", encoded.ids},
          {"loss_mask", encoded.marks}};
}

// A line of the input that is not blank.
struct InputLine {
  std::int64_t number = 0;  // from 1
  std::string_view text;
};

std::vector<InputLine> lines_of(std::string_view input) {
  std::vector<InputLine> lines;
  std::int64_t number = 0;
  for (std::size_t at = 0; at < input.size();) {
    const std::size_t end = std::min(input.find('\n', at), input.size());
    const std::string_view line = input.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      lines.push_back({number, line});
    }
  }
  return lines;
}

// Renders a conversation. heading: what is printed in front of its text, or empty. Returns whether
// the last line that was printed has ended.
bool show(const ChatArguments& arguments, const ChatTemplate& chat_template,
          const Tokenizer* tokenizer, std::string_view line, const std::string& heading,
          TextPrinter& printer) {
  ordered_json tools;
  const ordered_json messages = messages_of(line, arguments.field, tools);
  if (!arguments.json && !arguments.answers) {
    const std::string text = chat_template.render(messages, tools, arguments.asks);
    printer.print(heading);
    printer.print(text);
    return text.ends_with('\n');
  }
  const RenderedChat chat = arguments.asks
                                ? RenderedChat{chat_template.render(messages, tools, true), {}}
                                : chat_template.render_answers(messages, tools);
  if (arguments.json) {
    print_json_line(shown(*tokenizer, chat));
    return true;
  }
  printer.print(heading);
  for (const auto& [begin, end] : chat.answers) {
    printer.print(std::string_view(chat.text).substr(begin, end - begin));
    printer.print("\n");
  }
  return true;
}

void run_chat(const ChatArguments& arguments) {
  const ChatTemplate chat_template = template_of(arguments);
  const std::unique_ptr<Tokenizer> tokenizer =
      arguments.json ? open_tokenizer(arguments.tokenizer) : nullptr;
  const std::string input = input_of(arguments);
  const std::vector<InputLine> lines = lines_of(input);
  TextPrinter printer;
  bool ended = true;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [number, line] = lines[i];
    const std::string heading = lines.size() > 1
                                    ? fmt::format("{}--- conversation {} of {} ---\n",
                                                  ended ? "" : "\n", i + 1, lines.size())
                                    : "";
    try {
      ended = show(arguments, chat_template, tokenizer.get(), line, heading, printer);
    } catch (const DataError& error) {
      throw DataError(fmt::format("line {} of the input: {}", number, error.what()));
    }
  }
  flush_standard_output();
}

}  // namespace

void add_tokenizer_chat(CommandLine& group) {
  CommandLine& command =
      group.add_command("chat", "Print conversations as the tokenizer's chat template writes them");
  const auto arguments = std::make_shared<ChatArguments>();
  command.add_option("TOKENIZER", arguments->tokenizer, "The tokenizer's folder or file, or bytes")
      .required();
  command.add_option("INPUT", arguments->input,
                     "JSON Lines: in each line a list of messages, or an object that has one; - or "
                     "none is standard input");
  command
      .add_option("--chat-template", arguments->chat_template,
                  "A file with the template, instead of the tokenizer's")
      .type_name("FILE");
  command.add_option("--field", arguments->field, "The field with the messages of an object")
      .type_name("NAME");
  command.add_flag("--generation-prompt", arguments->asks,
                   "End with the text that asks the assistant to go on");
  command.add_flag("--answers", arguments->answers,
                   "Print only what training learns: the answers, with what ends them");
  command.add_flag("--json", arguments->json,
                   "Print an object per conversation: text, answers, ids and the loss mask");
  command.footer("Example:\n  trireme tokenizer chat llama/ chats.jsonl --answers");
  command.callback([arguments] { run_chat(*arguments); });
}

}  // namespace trireme
