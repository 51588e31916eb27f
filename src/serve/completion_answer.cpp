// text_completion, whole and as a stream.
#include <algorithm>
#include <numeric>

#include "engine/output.h"
#include "serve/answer_frame.h"
#include "serve/logprobs.h"

namespace unisono::serve {

namespace {

class CompletionAnswer final : public Answer {
 public:
  CompletionAnswer(const ServeContext& context, const AnswerOptions& options, std::vector<PromptFacts> prompts)
      : tokenizer_(*context.tokenizer),
        options_(options),
        frame_(context, options, {.id_prefix = "cmpl-", .whole = "text_completion", .chunk = "text_completion"}),
        prompts_(std::move(prompts)),
        prompt_scores_(prompts_.size()) {
    for (const PromptFacts& prompt : prompts_) {
      const bool at_start = engine::begins_text(prompt.tokens, tokenizer_);
      const CompletionLogprobs logprobs(tokenizer_, options.logprobs.value_or(0), options.show_special, at_start);
      candidates_.insert(candidates_.end(), static_cast<size_t>(options.candidates), {.logprobs = logprobs});
    }
  }

  std::string opening() override { return {}; }

  std::string part(int index, const engine::Delta& delta) override {
    Candidate& candidate = candidates_[static_cast<size_t>(index)];
    const bool first = !candidate.begun;
    const std::string text = take(index, delta);
    if (text.empty() && !delta.finish && candidate.logprobs.empty() && candidate.ids.empty()) return {};
    JsonObject choice = choice_json(index, candidate, text);
    if (options_.token_ids && first) choice["prompt_token_ids"] = ids_json(prompt_of(index).tokens);
    append(choice, delta.finish ? std::move(candidate.end) : JsonObject{{"finish_reason", nullptr}});
    return frame_.chunk(std::move(choice), delta.usage);
  }

  std::string closing(const engine::Usage& usage) override { return frame_.closing(usage); }

  void collect(int index, const engine::Delta& delta) override {
    Candidate& candidate = candidates_[static_cast<size_t>(index)];
    candidate.text += take(index, delta);
  }

  std::string whole(const engine::Usage& usage) override {
    JsonArray choices;
    for (int prompt = 0; prompt < options_.n_prompts; prompt++) {
      for (const int candidate : best_of(prompt))
        choices.push_back(whole_choice(static_cast<int>(choices.size()), candidate));
    }
    return frame_.whole(std::move(choices), usage);
  }

 private:
  struct Candidate {
    CompletionLogprobs logprobs;
    bool begun = false;
    std::string text{};
    JsonArray ids{};
    JsonObject end{};
    double logprob_sum = 0;
    int n_tokens = 0;
  };

  const PromptFacts& prompt_of(int index) const { return prompts_[static_cast<size_t>(index / options_.candidates)]; }

  // The text a delta adds, an echo before the first; what else it brings goes to the candidate.
  std::string take(int index, const engine::Delta& delta) {
    Candidate& candidate = candidates_[static_cast<size_t>(index)];
    const PromptFacts& prompt = prompt_of(index);
    std::string text;
    if (!candidate.begun) {
      candidate.begun = true;
      if (options_.prompt_logprobs && index % options_.candidates == 0)
        prompt_scores_[static_cast<size_t>(index / options_.candidates)] =
            prompt_logprobs(tokenizer_, delta.prompt, *options_.prompt_logprobs);
      if (options_.echo) {
        text = prompt.text;
        if (options_.logprobs) candidate.logprobs.add_prompt(prompt.tokens.front(), prompt.first_hidden, delta.prompt);
      }
    }
    for (const auto& token : delta.tokens) {
      if (options_.logprobs) candidate.logprobs.add(token);
      if (options_.token_ids) candidate.ids.emplace_back(token.id);
      candidate.logprob_sum += token.logprob;
      candidate.n_tokens++;
    }
    if (delta.finish) candidate.end = ending(delta, options_);
    return text + delta.text;
  }

  // The choices among a prompt's candidates: the likeliest first, where there are more than n.
  std::vector<int> best_of(int prompt) const {
    std::vector<int> order(static_cast<size_t>(options_.candidates));
    std::iota(order.begin(), order.end(), prompt * options_.candidates);
    if (options_.candidates == options_.n) return order;
    const auto mean = [this](int index) {
      const Candidate& candidate = candidates_[static_cast<size_t>(index)];
      return candidate.logprob_sum / std::max(candidate.n_tokens, 1);
    };
    std::ranges::stable_sort(order, std::greater{}, mean);
    order.resize(static_cast<size_t>(options_.n));
    return order;
  }

  JsonObject choice_json(int index, Candidate& candidate, const std::string& text) const {
    JsonObject out{{"index", index}, {"text", text}, {"logprobs", nullptr}};
    if (options_.logprobs) out["logprobs"] = candidate.logprobs.take();
    if (options_.token_ids) {
      out["token_ids"] = std::move(candidate.ids);
      candidate.ids = {};
    }
    return out;
  }

  JsonObject whole_choice(int index, int candidate_index) {
    Candidate& candidate = candidates_[static_cast<size_t>(candidate_index)];
    JsonObject choice = choice_json(index, candidate, candidate.text);
    append(choice, std::move(candidate.end));
    if (options_.token_ids) choice["prompt_token_ids"] = ids_json(prompt_of(candidate_index).tokens);
    if (options_.prompt_logprobs)
      choice["prompt_logprobs"] = prompt_scores_[static_cast<size_t>(candidate_index / options_.candidates)];
    return choice;
  }

  const text::Tokenizer& tokenizer_;
  AnswerOptions options_;
  AnswerFrame frame_;
  std::vector<PromptFacts> prompts_;
  std::vector<JsonArray> prompt_scores_;  // of each prompt, when asked for
  std::vector<Candidate> candidates_{};
};

}  // namespace

std::unique_ptr<Answer> make_completion_answer(const ServeContext& context, const AnswerOptions& options,
                                               std::vector<PromptFacts> prompts) {
  return std::make_unique<CompletionAnswer>(context, options, std::move(prompts));
}

}  // namespace unisono::serve
