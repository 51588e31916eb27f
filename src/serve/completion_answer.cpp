// text_completion, whole and as a stream.
#include <optional>

#include "serve/answer.h"
#include "serve/logprobs.h"
#include "serve/sse.h"

namespace unisono::serve {

namespace {

class CompletionAnswer final : public Answer {
 public:
  CompletionAnswer(const ServeContext& context, const AnswerOptions& options, std::vector<Echo> echoes)
      : tokenizer_(*context.tokenizer), options_(options), head_(AnswerHead::make("cmpl-", context)) {
    const bool echo = !echoes.empty();
    for (int i = 0; i < options.n_choices; i++) {
      choices_.push_back({.echo = echo ? std::move(echoes[static_cast<size_t>(i)]) : Echo{},
                          .echoed = !echo,
                          .logprobs = CompletionLogprobs(tokenizer_, echo, echo)});
    }
  }

  std::string opening() override { return {}; }

  std::string part(int choice, const engine::Delta& delta) override {
    Choice& so_far = choices_[static_cast<size_t>(choice)];
    const std::string text = take_text(so_far, delta);
    if (text.empty() && !delta.finish && so_far.logprobs.empty()) return {};
    JsonObject event = head_.json("text_completion");
    event["choices"] =
        JsonArray{choice_json(choice, so_far, text, delta.finish ? Json(finish_name(*delta.finish)) : Json(nullptr),
                              delta.finish ? stop_reason(delta) : Json(nullptr))};
    if (options_.continuous_usage) {
      event["usage"] = usage_json(delta.usage);
    } else if (options_.include_usage) {
      event["usage"] = nullptr;
    }
    return sse_event(event);
  }

  std::string closing(const engine::Usage& usage) override {
    std::string events;
    if (options_.include_usage) {
      JsonObject last = head_.json("text_completion");
      last["choices"] = JsonArray();
      last["usage"] = usage_json(usage);
      events += sse_event(last);
    }
    return events + sse_done();
  }

  void collect(int choice, const engine::Delta& delta) override {
    Choice& so_far = choices_[static_cast<size_t>(choice)];
    so_far.text += take_text(so_far, delta);
    if (!delta.finish) return;
    so_far.finish = finish_name(*delta.finish);
    so_far.stop = stop_reason(delta);
  }

  std::string whole(const engine::Usage& usage) override {
    JsonArray choices;
    for (size_t i = 0; i < choices_.size(); i++) {
      Choice& one = choices_[i];
      choices.push_back(choice_json(static_cast<int>(i), one, one.text, one.finish, one.stop));
    }
    JsonObject body = head_.json("text_completion");
    body["choices"] = std::move(choices);
    body["usage"] = usage_json(usage);
    return to_text(body);
  }

 private:
  struct Choice {
    Echo echo{};
    bool echoed = false;  // or there is nothing to echo
    CompletionLogprobs logprobs;
    std::string text{};
    Json finish{};
    Json stop{};
  };

  // The text a delta adds, the prompt before the first; its tokens go to the log-probabilities.
  std::string take_text(Choice& choice, const engine::Delta& delta) const {
    std::string text;
    if (!choice.echoed) {
      choice.echoed = true;
      text = choice.echo.text;
      if (options_.logprobs && !choice.echo.tokens.empty()) {
        choice.logprobs.add_first(choice.echo.tokens.front(), choice.echo.first_hidden);
        for (const auto& token : delta.prompt) choice.logprobs.add(token);
      }
    }
    if (options_.logprobs) {
      for (const auto& token : delta.tokens) choice.logprobs.add(token);
    }
    return text + delta.text;
  }

  JsonObject choice_json(int index, Choice& choice, const std::string& text, const Json& finish, const Json& stop) const {
    JsonObject out{{"index", index}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", finish}};
    if (options_.logprobs) out["logprobs"] = choice.logprobs.take();
    if (!finish.is_null()) out["stop_reason"] = stop;
    return out;
  }

  const text::Tokenizer& tokenizer_;
  AnswerOptions options_;
  AnswerHead head_;
  std::vector<Choice> choices_{};
};

}  // namespace

std::unique_ptr<Answer> make_completion_answer(const ServeContext& context, const AnswerOptions& options,
                                               std::vector<Echo> echoes) {
  return std::make_unique<CompletionAnswer>(context, options, std::move(echoes));
}

}  // namespace unisono::serve
