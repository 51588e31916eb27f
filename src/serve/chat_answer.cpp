// chat.completion and chat.completion.chunk.
#include "serve/answer_frame.h"
#include "serve/logprobs.h"

namespace unisono::serve {

namespace {

// Some families' templates take ids of nine letters and digits only.
std::string call_id(const ToolSyntax& syntax) { return syntax.short_ids ? random_id("").substr(0, 9) : random_id("call_"); }

class ChatAnswer final : public Answer {
 public:
  ChatAnswer(const ServeContext& context, const AnswerOptions& options, PromptFacts prompt,
             std::shared_ptr<const AnswerReading> reading)
      : tokenizer_(*context.tokenizer),
        options_(options),
        frame_(context, options, {.id_prefix = "chatcmpl-", .whole = "chat.completion", .chunk = "chat.completion.chunk"}),
        prompt_(std::move(prompt)),
        reading_(std::move(reading)),
        choices_(static_cast<size_t>(options.n)) {
    for (Choice& choice : choices_) choice.parser = make_answer_parser(*reading_);
  }

  std::string opening() override {
    std::string events;
    for (int choice = 0; choice < options_.n; choice++) {
      JsonObject further;
      if (options_.token_ids && choice == 0) further["prompt_token_ids"] = ids_json(prompt_.tokens);
      events += frame_.chunk({{"index", choice},
                              {"delta", {{"role", "assistant"}, {"content", ""}}},
                              {"logprobs", nullptr},
                              {"finish_reason", nullptr}},
                             {.prompt_tokens = static_cast<int>(prompt_.tokens.size())}, std::move(further));
    }
    return events;
  }

  std::string part(int index, const engine::Delta& delta) override {
    Choice& so_far = choices_[static_cast<size_t>(index)];
    std::vector<JsonObject> deltas;
    for (const AnswerPiece& piece : take(so_far, delta)) deltas.push_back(delta_json(so_far, piece));
    // Tokens whose text is held back are told of when they come.
    if (deltas.empty() && (options_.logprobs || options_.token_ids) && !delta.tokens.empty())
      deltas.push_back({{"content", ""}});
    std::string events;
    for (size_t i = 0; i < deltas.size(); i++) {
      JsonObject choice{{"index", index}, {"delta", std::move(deltas[i])}, {"logprobs", nullptr}};
      if (options_.logprobs) choice["logprobs"] = logprobs_json(i == 0 ? logprobs(delta) : JsonArray());
      choice["finish_reason"] = nullptr;
      if (options_.token_ids) choice["token_ids"] = i == 0 ? ids(delta) : JsonArray();
      events += frame_.chunk(std::move(choice), delta.usage);
    }
    if (delta.finish) {
      JsonObject choice{{"index", index}, {"delta", JsonObject()}, {"logprobs", nullptr}};
      append(choice, end_of(so_far, delta));
      events += frame_.chunk(std::move(choice), delta.usage);
    }
    return events;
  }

  std::string closing(const engine::Usage& usage) override { return frame_.closing(usage); }

  void collect(int index, const engine::Delta& delta) override {
    Choice& so_far = choices_[static_cast<size_t>(index)];
    for (const AnswerPiece& piece : take(so_far, delta)) collect(so_far, piece);
    if (options_.logprobs) {
      for (Json& entry : logprobs(delta)) so_far.logprobs.push_back(std::move(entry));
    }
    if (options_.token_ids) {
      for (Json& id : ids(delta)) so_far.ids.push_back(std::move(id));
    }
    if (options_.prompt_logprobs && !delta.prompt.empty()) prompt_scores_ = delta.prompt;
    if (delta.finish) so_far.end = end_of(so_far, delta);
  }

  std::string whole(const engine::Usage& usage) override {
    JsonArray choices;
    for (size_t i = 0; i < choices_.size(); i++) {
      Choice& one = choices_[i];
      JsonObject choice{{"index", i}, {"message", message(one)}, {"logprobs", nullptr}};
      if (options_.logprobs) choice["logprobs"] = logprobs_json(std::move(one.logprobs));
      append(choice, std::move(one.end));
      if (options_.token_ids) choice["token_ids"] = std::move(one.ids);
      choices.push_back(std::move(choice));
    }
    JsonObject further;
    if (options_.token_ids) further["prompt_token_ids"] = ids_json(prompt_.tokens);
    if (options_.prompt_logprobs)
      further["prompt_logprobs"] = prompt_logprobs(tokenizer_, prompt_scores_, *options_.prompt_logprobs);
    return frame_.whole(std::move(choices), usage, std::move(further));
  }

 private:
  struct Call {
    std::string id{}, name{}, arguments{};
  };
  struct Choice {
    std::unique_ptr<AnswerParser> parser{};
    std::string reasoning{}, text{};
    std::vector<Call> calls{};
    size_t told = 0;  // calls
    JsonArray logprobs{}, ids{};
    JsonObject end{};
  };

  // What the delta adds to the choice, as far as it is told.
  std::vector<AnswerPiece> take(Choice& choice, const engine::Delta& delta) const {
    std::vector<AnswerPiece> pieces;
    choice.parser->push(delta.text, pieces);
    if (delta.finish) choice.parser->finish(pieces);
    if (!reading_->tell_reasoning)
      std::erase_if(pieces, [](const AnswerPiece& piece) { return piece.kind == AnswerPiece::Kind::reasoning; });
    for (const AnswerPiece& piece : pieces)
      if (piece.kind == AnswerPiece::Kind::call)
        choice.calls.push_back({.id = call_id(*reading_->syntax.tools), .name = piece.text});
    return pieces;
  }

  // The piece as a stream tells it. A call's piece is the last of those in choice.calls by the time it is asked for.
  static JsonObject delta_json(Choice& choice, const AnswerPiece& piece) {
    switch (piece.kind) {
      case AnswerPiece::Kind::reasoning: return {{"reasoning_content", piece.text}};
      case AnswerPiece::Kind::content: return {{"content", piece.text}};
      case AnswerPiece::Kind::call: {
        const size_t call = choice.told++;
        return {{"tool_calls", JsonArray{{{"index", call},
                                          {"id", choice.calls[call].id},
                                          {"type", "function"},
                                          {"function", {{"name", piece.text}, {"arguments", ""}}}}}}};
      }
      case AnswerPiece::Kind::arguments:
        return {{"tool_calls", JsonArray{{{"index", choice.told - 1}, {"function", {{"arguments", piece.text}}}}}}};
    }
    return {};
  }

  static void collect(Choice& choice, const AnswerPiece& piece) {
    switch (piece.kind) {
      case AnswerPiece::Kind::reasoning: choice.reasoning += piece.text; break;
      case AnswerPiece::Kind::content: choice.text += piece.text; break;
      case AnswerPiece::Kind::call: choice.told++; break;
      case AnswerPiece::Kind::arguments: choice.calls[choice.told - 1].arguments += piece.text; break;
    }
  }

  JsonObject end_of(const Choice& choice, const engine::Delta& delta) const {
    JsonObject end = ending(delta, options_);
    const bool whole = *delta.finish == engine::FinishReason::stop_token || *delta.finish == engine::FinishReason::complete;
    if (whole && !choice.calls.empty()) end["finish_reason"] = "tool_calls";
    return end;
  }

  static JsonObject message(const Choice& choice) {
    const bool nothing_said = choice.text.empty() && !choice.calls.empty();
    JsonObject out{
        {"role", "assistant"}, {"content", nothing_said ? Json(nullptr) : Json(choice.text)}, {"refusal", nullptr}};
    if (!choice.reasoning.empty()) out["reasoning_content"] = choice.reasoning;
    if (choice.calls.empty()) return out;
    JsonArray calls;
    for (const Call& call : choice.calls)
      calls.push_back(
          {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    out["tool_calls"] = std::move(calls);
    return out;
  }

  JsonArray logprobs(const engine::Delta& delta) const {
    return chat_logprobs(tokenizer_, delta.tokens, *options_.logprobs);
  }
  static Json logprobs_json(JsonArray content) { return {{"content", std::move(content)}, {"refusal", nullptr}}; }
  static JsonArray ids(const engine::Delta& delta) {
    JsonArray out;
    for (const auto& token : delta.tokens) out.emplace_back(token.id);
    return out;
  }

  const text::Tokenizer& tokenizer_;
  AnswerOptions options_;
  AnswerFrame frame_;
  PromptFacts prompt_;
  std::shared_ptr<const AnswerReading> reading_;
  std::vector<Choice> choices_;
  std::vector<engine::TokenResult> prompt_scores_{};
};

}  // namespace

std::unique_ptr<Answer> make_chat_answer(const ServeContext& context, const AnswerOptions& options, PromptFacts prompt,
                                         std::shared_ptr<const AnswerReading> reading) {
  return std::make_unique<ChatAnswer>(context, options, std::move(prompt), std::move(reading));
}

}  // namespace unisono::serve
