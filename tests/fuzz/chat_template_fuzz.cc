// Reads any bytes as a chat template and, behind a zero byte, a line with a conversation. Each may
// be refused with a DataError. Answers lie in the text, one behind the other.
#include "io/chat/chat_template.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string_view text = text_of(data, bytes);
  const std::size_t cut = text.find('\0');
  const std::string_view line =
      cut == std::string_view::npos
          ? R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])"
          : text.substr(cut + 1);
  refuses_only_with<DataError>([&] {
    const ChatTemplate chat(std::string(text.substr(0, cut)), {{"eos_token", "</s>"}});
    const RenderedChat found = chat.render_line(line, "messages");
    std::size_t last = 0;
    for (const auto& [begin, end] : found.answers) {
      require(last <= begin && begin <= end && end <= found.text.size());
      last = end;
    }
  });
  return 0;
}
