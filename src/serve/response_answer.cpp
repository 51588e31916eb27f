// OpenAI's response, whole and as its sequence of events. Both are made by the same steps, so the events add up to the
// whole.
#include <ctime>
#include <optional>

#include "serve/answer.h"
#include "serve/answer_frame.h"
#include "serve/answer_parser.h"
#include "serve/logprobs.h"
#include "serve/sse.h"

namespace unisono::serve {

namespace {

using Kind = AnswerPiece::Kind;

class ResponseAnswer final : public Answer {
 public:
  ResponseAnswer(const ServeContext& context, const AnswerOptions& options, JsonObject told,
                 std::shared_ptr<const AnswerReading> reading)
      : tokenizer_(*context.tokenizer),
        options_(options),
        told_(std::move(told)),
        reading_(std::move(reading)),
        parser_(make_answer_parser(*reading_)),
        id_(random_id("resp_")),
        model_(context.model.name),
        fingerprint_(context.fingerprint),
        created_(std::time(nullptr)) {}

  std::string opening() override {
    std::string events = event({{"type", "response.created"}, {"response", response({})}});
    events += event({{"type", "response.in_progress"}, {"response", response({})}});
    return events;
  }

  std::string part(int, const engine::Delta& delta) override {
    if (options_.logprobs) {
      for (Json& entry : chat_logprobs(tokenizer_, delta.tokens, *options_.logprobs)) waiting_.push_back(std::move(entry));
    }
    std::vector<AnswerPiece> pieces;
    parser_->push(delta.text, pieces);
    if (delta.finish) parser_->finish(pieces);
    std::string events;
    for (const AnswerPiece& piece : pieces) {
      if (piece.kind == Kind::reasoning) reasoning_tokens_ = delta.usage.completion_tokens;
      if (piece.kind != Kind::reasoning || reading_->tell_reasoning) events += add(piece);
    }
    if (!delta.finish) return events;
    finish_ = delta.finish;
    stop_ = stop_reason(delta);
    // An answer that says nothing is an empty message.
    if (items_.empty()) events += open(Kind::content);
    events += close();
    return events;
  }

  std::string closing(const engine::Usage& usage) override {
    return event({{"type", "response." + status()}, {"response", response(usage)}});
  }

  std::string failure(const ApiError& error) override {
    JsonObject failed = response({});
    failed["status"] = "failed";
    const char* code = error.status == 429 ? "rate_limit_exceeded" : error.status < 500 ? "invalid_prompt" : "server_error";
    failed["error"] = {{"code", code}, {"message", error.message}};
    return event({{"type", "response.failed"}, {"response", std::move(failed)}});
  }

  void collect(int choice, const engine::Delta& delta) override { part(choice, delta); }
  std::string whole(const engine::Usage& usage) override { return to_text(response(usage)); }

 private:
  struct Item {
    Kind kind = Kind::content;  // reasoning, content or call
    std::string id{}, call_id{}, name{};
    std::string text{};  // what is said or thought, or a call's arguments
    JsonArray logprobs{};
    bool open = true;
  };

  std::string event(JsonObject value) {
    value["sequence_number"] = sequence_++;
    return sse_named_event(value);
  }

  // An event about the part of the last item in which its text stands.
  std::string part_event(std::string type, JsonObject more) {
    JsonObject value{{"type", std::move(type)}, {"item_id", items_.back().id}, {"output_index", items_.size() - 1}};
    if (items_.back().kind != Kind::call) value["content_index"] = 0;
    append(value, std::move(more));
    return event(std::move(value));
  }

  std::string add(const AnswerPiece& piece) {
    const Kind kind = piece.kind == Kind::arguments ? Kind::call : piece.kind;
    std::string events;
    if (piece.kind == Kind::call || items_.empty() || !items_.back().open || items_.back().kind != kind) {
      events = close();
      events += open(kind, piece.kind == Kind::call ? piece.text : std::string());
    }
    // Log-probabilities are those of what is said; others aren't told.
    JsonArray logprobs = kind == Kind::content ? std::move(waiting_) : JsonArray();
    waiting_ = {};
    if (piece.kind == Kind::call) return events;
    Item& item = items_.back();
    item.text += piece.text;
    item.logprobs.insert(item.logprobs.end(), logprobs.begin(), logprobs.end());
    switch (kind) {
      case Kind::reasoning: return events + part_event("response.reasoning_text.delta", {{"delta", piece.text}});
      case Kind::content:
        return events +
               part_event("response.output_text.delta", {{"delta", piece.text}, {"logprobs", std::move(logprobs)}});
      default: return events + part_event("response.function_call_arguments.delta", {{"delta", piece.text}});
    }
  }

  std::string open(Kind kind, std::string name = {}) {
    Item& item = items_.emplace_back();
    item.kind = kind;
    item.name = std::move(name);
    item.id = random_id(kind == Kind::content ? "msg_" : kind == Kind::reasoning ? "rs_" : "fc_");
    if (kind == Kind::call) item.call_id = random_id("call_");
    JsonObject shown = item_json(item);
    if (kind != Kind::call) shown["content"] = JsonArray();
    std::string events =
        event({{"type", "response.output_item.added"}, {"output_index", items_.size() - 1}, {"item", std::move(shown)}});
    if (kind == Kind::call) return events;
    return events + part_event("response.content_part.added", {{"part", part_json(item)}});
  }

  // The item that is open, if there is one, is complete, or cut where the answer ends.
  std::string close() {
    if (items_.empty() || !items_.back().open) return {};
    Item& item = items_.back();
    item.open = false;
    if (item.kind == Kind::content) item.logprobs.insert(item.logprobs.end(), waiting_.begin(), waiting_.end());
    waiting_ = {};
    std::string events;
    if (item.kind == Kind::call) {
      events = part_event("response.function_call_arguments.done", {{"name", item.name}, {"arguments", item.text}});
    } else if (item.kind == Kind::reasoning) {
      events = part_event("response.reasoning_text.done", {{"text", item.text}});
    } else {
      events = part_event("response.output_text.done", {{"text", item.text}, {"logprobs", item.logprobs}});
    }
    if (item.kind != Kind::call) events += part_event("response.content_part.done", {{"part", part_json(item)}});
    return events +
           event({{"type", "response.output_item.done"}, {"output_index", items_.size() - 1}, {"item", item_json(item)}});
  }

  static JsonObject part_json(const Item& item) {
    if (item.kind == Kind::reasoning) return {{"type", "reasoning_text"}, {"text", item.text}};
    return {{"type", "output_text"}, {"text", item.text}, {"annotations", JsonArray()}, {"logprobs", item.logprobs}};
  }

  JsonObject item_json(const Item& item) const {
    const bool last = &item == &items_.back();
    const char* state = item.open ? "in_progress" : last && is_cut() ? "incomplete" : "completed";
    switch (item.kind) {
      case Kind::reasoning:
        return {{"id", item.id},
                {"type", "reasoning"},
                {"summary", JsonArray()},
                {"content", JsonArray{part_json(item)}},
                {"status", state}};
      case Kind::content:
        return {{"id", item.id},
                {"type", "message"},
                {"status", state},
                {"role", "assistant"},
                {"content", JsonArray{part_json(item)}}};
      default:
        return {{"id", item.id},           {"type", "function_call"}, {"status", state},
                {"call_id", item.call_id}, {"name", item.name},       {"arguments", item.text}};
    }
  }

  bool is_cut() const { return finish_ && finish_name(*finish_) == "length"; }
  std::string status() const { return !finish_ ? "in_progress" : is_cut() ? "incomplete" : "completed"; }

  // usage: at the end.
  JsonObject response(const std::optional<engine::Usage>& usage) const {
    JsonObject out{{"id", id_},
                   {"object", "response"},
                   {"created_at", created_},
                   {"status", status()},
                   {"error", nullptr},
                   {"incomplete_details", nullptr},
                   {"model", model_},
                   {"output", JsonArray()},
                   {"service_tier", "default"},
                   {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
                   {"system_fingerprint", fingerprint_}};
    append(out, told_);
    for (const Item& item : items_) out["output"].get_array().push_back(item_json(item));
    if (finish_) out["stop_reason"] = stop_;
    if (is_cut()) out["incomplete_details"] = {{"reason", "max_output_tokens"}};
    if (usage)
      out["usage"] = {{"input_tokens", usage->prompt_tokens},
                      {"input_tokens_details", {{"cached_tokens", usage->cached_tokens}, {"cache_write_tokens", 0}}},
                      {"output_tokens", usage->completion_tokens},
                      {"output_tokens_details", {{"reasoning_tokens", reasoning_tokens_}}},
                      {"total_tokens", usage->prompt_tokens + usage->completion_tokens}};
    return out;
  }

  const text::Tokenizer& tokenizer_;
  AnswerOptions options_;
  JsonObject told_;
  std::shared_ptr<const AnswerReading> reading_;
  std::unique_ptr<AnswerParser> parser_;
  std::string id_, model_, fingerprint_;
  int64_t created_;
  std::vector<Item> items_{};
  JsonArray waiting_{};  // log-probabilities of tokens whose text hasn't come yet
  std::optional<engine::FinishReason> finish_{};
  Json stop_{};
  int reasoning_tokens_ = 0;  // up to the reasoning's end
  int sequence_ = 0;
};

}  // namespace

std::unique_ptr<Answer> make_response_answer(const ServeContext& context, const AnswerOptions& options, JsonObject told,
                                             std::shared_ptr<const AnswerReading> reading) {
  return std::make_unique<ResponseAnswer>(context, options, std::move(told), std::move(reading));
}

}  // namespace unisono::serve
