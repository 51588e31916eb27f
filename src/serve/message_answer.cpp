// Anthropic's message, whole and as its sequence of events. Both are made by the same steps, so the events add up to the
// whole.

#include "serve/answer.h"
#include "serve/answer_parser.h"
#include "serve/anthropic_messages.h"
#include "serve/sse.h"

namespace unisono::serve {

namespace {

using Kind = AnswerPiece::Kind;

// Anthropic counts what came from a cache apart from the other input.
JsonObject usage_json(const engine::Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens}};
}

class MessageAnswer final : public Answer {
 public:
  MessageAnswer(const ServeContext& context, std::shared_ptr<const AnswerReading> reading)
      : reading_(std::move(reading)),
        parser_(make_answer_parser(*reading_)),
        id_(random_id("msg_")),
        model_(context.model.name) {}

  // The first event tells the input's tokens, of which those in the cache are known with the first delta only.
  std::string opening() override { return {}; }

  std::string part(int, const engine::Delta& delta) override {
    std::string events;
    if (!begun_) {
      begun_ = true;
      events = sse_named_event({{"type", "message_start"}, {"message", message(delta.usage)}}) +
               sse_named_event({{"type", "ping"}});
    }
    std::vector<AnswerPiece> pieces;
    parser_->push(delta.text, pieces);
    if (delta.finish) parser_->finish(pieces);
    for (const AnswerPiece& piece : pieces) {
      if (piece.kind != Kind::reasoning || reading_->tell_reasoning) events += add(piece);
    }
    if (!delta.finish) return events;
    end(delta);
    events += close();
    return events;
  }

  std::string closing(const engine::Usage& usage) override {
    return sse_named_event({{"type", "message_delta"},
                            {"delta", {{"stop_reason", stop_reason_}, {"stop_sequence", stop_sequence_}}},
                            {"usage", usage_json(usage)}}) +
           sse_named_event({{"type", "message_stop"}});
  }

  std::string failure(const ApiError& error) override {
    return "event: error\n" + sse_event_text(anthropic_error_body(error));
  }
  HttpResponse refusal(const ApiError& error) override { return anthropic_error_response(error); }

  void collect(int choice, const engine::Delta& delta) override { part(choice, delta); }
  std::string whole(const engine::Usage& usage) override { return to_text(message(usage)); }

 private:
  struct Block {
    Kind kind = Kind::content;  // reasoning, content or call
    std::string id{}, name{};
    std::string text{};  // what is said or thought, or a call's arguments
    bool open = true;
  };

  std::string add(const AnswerPiece& piece) {
    const Kind kind = piece.kind == Kind::arguments ? Kind::call : piece.kind;
    std::string events;
    if (piece.kind == Kind::call || blocks_.empty() || !blocks_.back().open || blocks_.back().kind != kind) {
      events = close();
      events += open(kind, piece.kind == Kind::call ? piece.text : std::string());
    }
    if (piece.kind == Kind::call) return events;
    blocks_.back().text += piece.text;
    JsonObject delta;
    switch (kind) {
      case Kind::reasoning: delta = {{"type", "thinking_delta"}, {"thinking", piece.text}}; break;
      case Kind::content: delta = {{"type", "text_delta"}, {"text", piece.text}}; break;
      default: delta = {{"type", "input_json_delta"}, {"partial_json", piece.text}}; break;
    }
    return events + sse_named_event({{"type", "content_block_delta"}, {"index", blocks_.size() - 1}, {"delta", delta}});
  }

  std::string open(Kind kind, std::string name) {
    blocks_.push_back({.kind = kind, .id = kind == Kind::call ? random_id("toolu_") : "", .name = std::move(name)});
    return sse_named_event(
        {{"type", "content_block_start"}, {"index", blocks_.size() - 1}, {"content_block", block_json(blocks_.back())}});
  }

  std::string close() {
    if (blocks_.empty() || !blocks_.back().open) return {};
    Block& block = blocks_.back();
    block.open = false;
    const size_t index = blocks_.size() - 1;
    std::string events;
    // Anthropic signs thoughts; here nothing is to be proved by that.
    if (block.kind == Kind::reasoning)
      events = sse_named_event(
          {{"type", "content_block_delta"}, {"index", index}, {"delta", {{"type", "signature_delta"}, {"signature", ""}}}});
    return events + sse_named_event({{"type", "content_block_stop"}, {"index", index}});
  }

  // Anthropic's words where it has them; "deadline" and "cancelled" are ours.
  void end(const engine::Delta& delta) {
    switch (*delta.finish) {
      case engine::FinishReason::stop_string:
        stop_reason_ = "stop_sequence";
        stop_sequence_ = delta.stop_detail;
        break;
      case engine::FinishReason::length: stop_reason_ = "max_tokens"; break;
      case engine::FinishReason::context: stop_reason_ = "model_context_window_exceeded"; break;
      case engine::FinishReason::deadline: stop_reason_ = "deadline"; break;
      case engine::FinishReason::cancelled: stop_reason_ = "cancelled"; break;
      default:
        const bool calls = !blocks_.empty() && blocks_.back().kind == Kind::call;
        stop_reason_ = calls ? "tool_use" : "end_turn";
    }
  }

  // A call's input is an object; of a call that was cut, its text so far is the object's "partial_json".
  static JsonObject input_of(const Block& block) {
    if (block.text.empty()) return {};
    auto input = parse_json(block.text);
    if (input.ok() && input->is_object()) return std::move(input->get_object());
    return {{"partial_json", block.text}};
  }

  static JsonObject block_json(const Block& block) {
    switch (block.kind) {
      case Kind::reasoning: return {{"type", "thinking"}, {"thinking", block.text}, {"signature", ""}};
      case Kind::content: return {{"type", "text"}, {"text", block.text}};
      default: return {{"type", "tool_use"}, {"id", block.id}, {"name", block.name}, {"input", input_of(block)}};
    }
  }

  JsonObject message(const engine::Usage& usage) const {
    JsonArray content;
    for (const Block& block : blocks_) content.push_back(block_json(block));
    return {{"id", id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", model_},
            {"content", std::move(content)},
            {"stop_reason", stop_reason_},
            {"stop_sequence", stop_sequence_},
            {"usage", usage_json(usage)}};
  }

  std::shared_ptr<const AnswerReading> reading_;
  std::unique_ptr<AnswerParser> parser_;
  std::string id_, model_;
  std::vector<Block> blocks_{};
  Json stop_reason_{}, stop_sequence_{};
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<Answer> make_message_answer(const ServeContext& context, std::shared_ptr<const AnswerReading> reading) {
  return std::make_unique<MessageAnswer>(context, std::move(reading));
}

}  // namespace unisono::serve
