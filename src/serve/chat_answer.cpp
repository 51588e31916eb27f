// chat.completion and chat.completion.chunk.
#include "serve/answer.h"
#include "serve/logprobs.h"
#include "serve/sse.h"

namespace unisono::serve {

namespace {

class ChatAnswer final : public Answer {
 public:
  ChatAnswer(const ServeContext& context, const AnswerOptions& options)
      : tokenizer_(*context.tokenizer),
        options_(options),
        head_(AnswerHead::make("chatcmpl-", context)),
        choices_(static_cast<size_t>(options.n_choices)) {}

  std::string opening() override {
    std::string events;
    for (int choice = 0; choice < options_.n_choices; choice++) {
      events += chunk({{"index", choice},
                       {"delta", {{"role", "assistant"}, {"content", ""}}},
                       {"logprobs", nullptr},
                       {"finish_reason", nullptr}},
                      {});
    }
    return events;
  }

  std::string part(int choice, const engine::Delta& delta) override {
    std::string events;
    if (!delta.text.empty() || (options_.logprobs && !delta.tokens.empty())) {
      events += chunk({{"index", choice},
                       {"delta", {{"content", delta.text}}},
                       {"logprobs", logprobs(delta.tokens)},
                       {"finish_reason", nullptr}},
                      delta.usage);
    }
    if (delta.finish) {
      events += chunk({{"index", choice},
                       {"delta", JsonObject()},
                       {"logprobs", nullptr},
                       {"finish_reason", finish_name(*delta.finish)},
                       {"stop_reason", stop_reason(delta)}},
                      delta.usage);
    }
    return events;
  }

  std::string closing(const engine::Usage& usage) override {
    std::string events;
    if (options_.include_usage) {
      JsonObject last = head_.json("chat.completion.chunk");
      last["choices"] = JsonArray();
      last["usage"] = usage_json(usage);
      events += sse_event(last);
    }
    return events + sse_done();
  }

  void collect(int choice, const engine::Delta& delta) override {
    Choice& so_far = choices_[static_cast<size_t>(choice)];
    so_far.text += delta.text;
    if (options_.logprobs) {
      for (Json& entry : chat_logprobs(tokenizer_, delta.tokens)) so_far.logprobs.push_back(std::move(entry));
    }
    if (!delta.finish) return;
    so_far.finish = finish_name(*delta.finish);
    so_far.stop = stop_reason(delta);
  }

  std::string whole(const engine::Usage& usage) override {
    JsonArray choices;
    for (size_t i = 0; i < choices_.size(); i++) {
      Choice& one = choices_[i];
      const Json logprobs =
          options_.logprobs ? Json{{"content", std::move(one.logprobs)}, {"refusal", nullptr}} : Json(nullptr);
      choices.push_back({{"index", i},
                         {"message", {{"role", "assistant"}, {"content", one.text}, {"refusal", nullptr}}},
                         {"logprobs", logprobs},
                         {"finish_reason", one.finish},
                         {"stop_reason", one.stop}});
    }
    JsonObject body = head_.json("chat.completion");
    body["choices"] = std::move(choices);
    body["usage"] = usage_json(usage);
    return to_text(body);
  }

 private:
  struct Choice {
    std::string text{};
    JsonArray logprobs{};
    std::string finish{};
    Json stop{};
  };

  Json logprobs(const std::vector<engine::TokenResult>& tokens) const {
    if (!options_.logprobs) return nullptr;
    return {{"content", chat_logprobs(tokenizer_, tokens)}, {"refusal", nullptr}};
  }

  std::string chunk(JsonObject choice, const engine::Usage& so_far) const {
    JsonObject event = head_.json("chat.completion.chunk");
    event["choices"] = JsonArray{std::move(choice)};
    if (options_.continuous_usage) {
      event["usage"] = usage_json(so_far);
    } else if (options_.include_usage) {
      event["usage"] = nullptr;
    }
    return sse_event(event);
  }

  const text::Tokenizer& tokenizer_;
  AnswerOptions options_;
  AnswerHead head_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<Answer> make_chat_answer(const ServeContext& context, const AnswerOptions& options) {
  return std::make_unique<ChatAnswer>(context, options);
}

}  // namespace unisono::serve
