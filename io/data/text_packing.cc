#include "io/data/text_packing.h"

#include "io/data/chat_marks.h"

namespace trireme {
namespace {

// ShardSink encodes texts and appends them to a shard.
class ShardSink final : public TextSink {
 public:
  ShardSink(const Tokenizer& tokenizer, ShardWriter& writer)
      : tokenizer_(tokenizer), writer_(writer) {}

  void take(std::string_view text) override {
    ids_.clear();
    tokenizer_.encode(text, ids_);
    writer_.append(ids_);
  }

  // The template has said what ends a conversation.
  void take_chat(const RenderedChat& chat) override {
    const EncodedChat encoded = encode_chat(tokenizer_, chat);
    writer_.append(encoded.ids, encoded.marks);
  }

  void end_document(bool is_whole) override {
    if (is_whole && !writer_.format().has_mask) {
      const std::int32_t end = tokenizer_.end_of_document();
      writer_.append({&end, 1});
    }
    writer_.end_document();
  }

 private:
  const Tokenizer& tokenizer_;
  ShardWriter& writer_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

PackCounts pack_text(const TextInputs& inputs, const Tokenizer& tokenizer, const TextShard& plan,
                     ShardWriter& writer, const std::function<void(std::int64_t)>& read) {
  ShardSink sink(tokenizer, writer);
  return read_texts(inputs, plan, sink, read);
}

}  // namespace trireme
