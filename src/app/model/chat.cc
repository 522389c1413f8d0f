#include "src/app/model/chat.h"

#include <algorithm>
#include <cstdio>
#include <functional>

#include <nlohmann/json.hpp>

#include "io/tokens/decode_stream.h"
#include "io/tokens/unicode.h"
#include "src/app/command/standard_output.h"
#include "src/app/model/chat_input.h"
#include "src/app/model/stop_strings.h"
#include "src/app/model/whole_characters.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/units.h"
#include "src/evaluation/scorer.h"

namespace trireme {
namespace {

constexpr auto kMostLine = static_cast<std::int64_t>(ChatInput::kMostLineBytes);

struct ChatAnswer {
  std::string text;               // without white space at its ends
  std::int64_t tokens = 0;        // drawn, including the one that ended it
  const char* finish = "length";  // or "stop", "end", "interrupted"
  ChatPrompt prompt;
};

// LeadingBlanks removes white space at the beginning of a text that arrives in pieces.
class LeadingBlanks {
 public:
  std::string without(std::string piece) {
    if (!begun_) {
      piece.erase(0, piece.find_first_not_of(" \t\r\n"));
      begun_ = !piece.empty();
    }
    return piece;
  }

 private:
  bool begun_ = false;
};

class Chat {
 public:
  Chat(const ChatOptions& options, const ChatFormat& format, const AnswerOptions& answers,
       const LoadedModel& loaded, Run& run, const Tokenizer& tokenizer)
      : format_(format),
        answers_(answers),
        tokenizer_(tokenizer),
        scorer_(*loaded.model, run, loaded.compute, loaded.config.context),
        // An answer gets at most half of the context.
        most_tokens_(std::min(answers.tokens, std::max<std::int64_t>(1, scorer_.window() / 2))),
        history_(format.rendering, tokenizer,
                 std::max<std::int64_t>(1, scorer_.window() - most_tokens_),
                 with_replacements(options.system)) {
    if (most_tokens_ < answers.tokens) {
      say(fmt::format("trireme: answers have at most {}: half of the model's context of {}",
                      counted(most_tokens_, "token"), scorer_.window()));
    }
  }

  void talk() {
    while (true) {
      if (input_.on_terminal()) {
        fmt::print("> ");
        flush_standard_output();
      }
      const ChatInput::Read read = input_.read();
      if (read.event == ChatInput::Event::end) {
        break;
      }
      if (read.event == ChatInput::Event::interrupted) {
        fmt::print(stderr, "\ntrireme: Ctrl-C ends an answer; the end of file, Ctrl-D, the chat\n");
      } else if (read.event == ChatInput::Event::too_long) {
        say(fmt::format("trireme: a message of more than {} was left out; send a shorter one",
                        format_bytes(kMostLine)));
      } else if (read.line.find_first_not_of(" \t") != std::string::npos) {
        print_answer(read.line);
      }
    }
    if (input_.on_terminal()) {
      fmt::print("\n");
    }
  }

  // Answers each line of JSON with one. Returns how many lines were no messages.
  std::int64_t talk_in_json() {
    std::int64_t number = 0;
    std::int64_t bad = 0;
    for (ChatInput::Read read = input_.read(); read.event != ChatInput::Event::end;
         read = input_.read()) {
      if (read.event == ChatInput::Event::interrupted) {
        continue;
      }
      ++number;
      if (read.line.empty() && read.event == ChatInput::Event::line) {
        continue;
      }
      try {
        print_json_line(answer_in_json(read));
      } catch (const DataError& error) {
        ++bad;
        print_json_line(
            {{"schema", 1}, {"error", fmt::format("line {}: {}", number, error.what())}});
      }
      flush_standard_output();
    }
    return bad;
  }

 private:
  ChatAnswer answer(const std::string& message, const std::function<void(const std::string&)>& sink,
                    const std::function<void(const ChatPrompt&)>& before) {
    history_.add("user", with_replacements(message));
    ChatAnswer answer;
    answer.prompt = history_.prompt();
    before(answer.prompt);
    std::vector<std::int32_t> ids = answer.prompt.ids;
    std::vector<std::string> stops = answers_.stop;
    stops.insert(stops.end(), format_.stops.begin(), format_.stops.end());
    StopStrings stop(stops);
    DecodeStream texts(tokenizer_, ids);
    WholeCharacters characters;
    LeadingBlanks blanks;
    const auto pass_on = [&](const std::string& whole) {
      const std::string piece = blanks.without(whole);
      answer.text += piece;
      sink(piece);
    };
    (void)input_.take_interrupt();
    while (answer.tokens < most_tokens_ && !stop.stopped()) {
      if (input_.take_interrupt()) {
        answer.finish = "interrupted";
        break;
      }
      const std::vector<float> logits = scorer_.next_logits(ids);
      const auto known = static_cast<std::size_t>(
          std::min(std::ssize(logits), static_cast<std::ptrdiff_t>(tokenizer_.vocab())));
      ids.push_back(
          sample_token(std::span(logits).first(known), answers_.sampling, std::ssize(ids)));
      ++answer.tokens;
      if (ids.back() == tokenizer_.end_of_document() ||
          (format_.ends_at_special && tokenizer_.is_special(ids.back()))) {
        answer.finish = "end";
        break;
      }
      pass_on(characters.add(stop.add(texts.add(ids.back()))));
    }
    if (!stop.stopped()) {
      pass_on(characters.add(stop.add(texts.rest())));
    }
    pass_on(characters.add(stop.rest()));
    pass_on(characters.rest());
    answer.finish = stop.stopped() ? "stop" : answer.finish;
    answer.text.erase(answer.text.find_last_not_of(" \t\r\n") + 1);
    history_.add("assistant", answer.text);
    return answer;
  }

  void print_answer(const std::string& message) {
    TextPrinter printer;
    answer(
        message,
        [&](const std::string& piece) {
          printer.print(piece);
          flush_standard_output();
        },
        [this](const ChatPrompt& prompt) { say_what_is_lost(prompt); });
    printer.end();
    flush_standard_output();
  }

  void say_what_is_lost(const ChatPrompt& prompt) const {
    if (prompt.dropped > 0) {
      say(fmt::format(
          "trireme: the context of {} is full: the oldest {} dropped",
          counted(scorer_.window(), "token"),
          prompt.dropped == 1 ? "message was" : fmt::format("{} messages were", prompt.dropped)));
    }
    if (prompt.cut_tokens > 0) {
      say(fmt::format(
          "trireme: the message is too long for the context of {}: its first {} cut off",
          counted(scorer_.window(), "token"),
          prompt.cut_tokens == 1 ? "token was" : fmt::format("{} tokens were", prompt.cut_tokens)));
    }
  }

  nlohmann::ordered_json answer_in_json(const ChatInput::Read& read) {
    if (read.event == ChatInput::Event::too_long) {
      throw DataError(fmt::format("it is longer than {}", format_bytes(kMostLine)));
    }
    const nlohmann::json message = parse_json(read.line);
    if (!message.is_object()) {
      throw DataError("it is not a JSON object");
    }
    for (const auto& [key, value] : message.items()) {
      if (key != "content" && key != "reset") {
        throw DataError(fmt::format(
            "unknown field '{}': a message has the text \"content\", and may have \"reset\": true",
            printable(key)));
      }
    }
    const std::string& content = text_field(message, "content");
    if (message.contains("reset") && flag_field(message, "reset")) {
      history_.clear();
    }
    const ChatAnswer given = answer(
        content, [](const std::string&) {}, [](const ChatPrompt&) {});
    return {{"schema", 1},
            {"content", given.text},
            {"tokens", given.tokens},
            {"finish", given.finish},
            {"prompt_tokens", given.prompt.ids.size()},
            {"dropped_messages", given.prompt.dropped},
            {"cut_tokens", given.prompt.cut_tokens}};
  }

  const ChatFormat& format_;
  const AnswerOptions& answers_;
  const Tokenizer& tokenizer_;
  Scorer scorer_;
  std::int64_t most_tokens_;
  ChatHistory history_;
  ChatInput input_;
};

}  // namespace

void ChatOptions::add_to(CommandLine& command) {
  command.add_flag("--chat", on,
                   "Answer messages from standard input, one per line, until its end; Ctrl-C ends "
                   "an answer");
  command.add_flag("--json-lines", json_lines,
                   "With --chat, read and print one JSON object per line");
  command.add_option("--system", system, "With --chat, the text before the first message");
  command.add_option("--user-mark", marks.user, "With --chat, the text before each message");
  command.add_option("--assistant-mark", marks.assistant,
                     "With --chat, the text before each answer");
  command.add_option("--end-mark", marks.end,
                     "With --chat, the text after each message and answer (default: the end of "
                     "the line)");
  command
      .add_option("--chat-template", chat_template,
                  "With --chat, a Jinja template that writes the conversation (default: the one "
                  "that --tokenizer's files name, unless a mark is given)")
      .type_name("FILE");
}

bool ChatOptions::has_marks() const {
  const ChatMarks plain;
  return marks.user != plain.user || marks.assistant != plain.assistant || marks.end != plain.end;
}

ChatFormat ChatOptions::format(const std::string& tokenizer) const {
  if (has_marks()) {
    return format_of(marks);
  }
  const auto found = ChatTemplate::open(tokenizer, chat_template);
  return found ? format_of(*found) : format_of(marks);
}

void run_chat(const ChatOptions& options, const ChatFormat& format, const AnswerOptions& answers,
              const LoadedModel& loaded, Run& run, const Tokenizer& tokenizer) {
  Chat chat(options, format, answers, loaded, run, tokenizer);
  if (!options.json_lines) {
    chat.talk();
    return;
  }
  if (const std::int64_t bad = chat.talk_in_json(); bad > 0) {
    throw DataError(fmt::format("{} of standard input {} no messages: the answers say why",
                                counted(bad, "line"), bad == 1 ? "was" : "were"));
  }
}

}  // namespace trireme
