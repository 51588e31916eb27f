// chat.completion and chat.completion.chunk.
#include "serve/answer_frame.h"
#include "serve/logprobs.h"

namespace unisono::serve {

namespace {

class ChatAnswer final : public Answer {
 public:
  ChatAnswer(const ServeContext& context, const AnswerOptions& options, PromptFacts prompt)
      : tokenizer_(*context.tokenizer),
        options_(options),
        frame_(context, options, {.id_prefix = "chatcmpl-", .whole = "chat.completion", .chunk = "chat.completion.chunk"}),
        prompt_(std::move(prompt)),
        choices_(static_cast<size_t>(options.n)) {}

  std::string opening() override {
    std::string events;
    for (int choice = 0; choice < options_.n; choice++) {
      JsonObject further;
      if (options_.token_ids && choice == 0) further["prompt_token_ids"] = ids_json(prompt_.tokens);
      events += frame_.chunk({{"index", choice},
                              {"delta", {{"role", "assistant"}, {"content", ""}}},
                              {"logprobs", nullptr},
                              {"finish_reason", nullptr}},
                             {}, std::move(further));
    }
    return events;
  }

  std::string part(int index, const engine::Delta& delta) override {
    std::string events;
    if (!delta.text.empty() || ((options_.logprobs || options_.token_ids) && !delta.tokens.empty())) {
      JsonObject choice{{"index", index}, {"delta", {{"content", delta.text}}}, {"logprobs", nullptr}};
      if (options_.logprobs) choice["logprobs"] = logprobs_json(logprobs(delta));
      choice["finish_reason"] = nullptr;
      if (options_.token_ids) choice["token_ids"] = ids(delta);
      events += frame_.chunk(std::move(choice), delta.usage);
    }
    if (delta.finish) {
      JsonObject choice{{"index", index}, {"delta", JsonObject()}, {"logprobs", nullptr}};
      append(choice, ending(delta, options_));
      events += frame_.chunk(std::move(choice), delta.usage);
    }
    return events;
  }

  std::string closing(const engine::Usage& usage) override { return frame_.closing(usage); }

  void collect(int index, const engine::Delta& delta) override {
    Choice& so_far = choices_[static_cast<size_t>(index)];
    so_far.text += delta.text;
    if (options_.logprobs) {
      for (Json& entry : logprobs(delta)) so_far.logprobs.push_back(std::move(entry));
    }
    if (options_.token_ids) {
      for (Json& id : ids(delta)) so_far.ids.push_back(std::move(id));
    }
    if (options_.prompt_logprobs && !delta.prompt.empty()) prompt_scores_ = delta.prompt;
    if (delta.finish) so_far.end = ending(delta, options_);
  }

  std::string whole(const engine::Usage& usage) override {
    JsonArray choices;
    for (size_t i = 0; i < choices_.size(); i++) {
      Choice& one = choices_[i];
      JsonObject choice{{"index", i},
                        {"message", {{"role", "assistant"}, {"content", one.text}, {"refusal", nullptr}}},
                        {"logprobs", nullptr}};
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
  struct Choice {
    std::string text{};
    JsonArray logprobs{}, ids{};
    JsonObject end{};
  };

  JsonArray logprobs(const engine::Delta& delta) const { return chat_logprobs(tokenizer_, delta.tokens, *options_.logprobs); }
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
  std::vector<Choice> choices_;
  std::vector<engine::TokenResult> prompt_scores_{};
};

}  // namespace

std::unique_ptr<Answer> make_chat_answer(const ServeContext& context, const AnswerOptions& options, PromptFacts prompt) {
  return std::make_unique<ChatAnswer>(context, options, std::move(prompt));
}

}  // namespace unisono::serve
