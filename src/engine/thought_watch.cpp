#include "engine/thought_watch.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/unicode.h"

namespace unisono::engine {

namespace {

constexpr std::string_view kSpace = " \t\r\n";

constexpr size_t kMaxCharacter = 4;  // bytes

void keep_last(std::string& text, size_t size) {
  size = std::max(size, kMaxCharacter - 1);
  text.erase(0, text.size() - std::min(text.size(), size));
}

bool ends_within_character(std::string_view text) {
  while (!text.empty()) {
    const text::Utf8Step step = text::next_step(text);
    if (step.kind == text::Utf8Step::Kind::incomplete) return true;
    text.remove_prefix(step.bytes);
  }
  return false;
}

}  // namespace

ThoughtWatch::ThoughtWatch(ThoughtBudget budget, const text::Tokenizer& tokenizer)
    : budget_(std::move(budget)),
      tokenizer_(tokenizer),
      end_(tokenizer.encode(budget_.end, false, true)),
      state_(budget_.open ? State::inside : State::before) {
  check(!budget_.end.empty() && !end_.empty(), "a thought can be ended");
  check(budget_.open || !budget_.begin.empty(), "a thought can begin");
  text_.reserve(256);
}

std::optional<TokenId> ThoughtWatch::due() const {
  if (state_ != State::inside || n_tokens_ < budget_.max_tokens) return {};
  const bool waits = n_tokens_ < budget_.max_tokens + static_cast<int>(kMaxCharacter) - 1 && ends_within_character(text_);
  return waits ? std::nullopt : std::optional(end_[n_ending_]);
}

void ThoughtWatch::push(TokenId token) {
  if (state_ == State::over) return;
  if (const auto wanted = due()) {
    // Another token came where a constraint left no room for the end.
    n_ending_ = token == *wanted ? (n_ending_ + 1) % end_.size() : 0;
  } else if (state_ == State::inside) {
    n_tokens_++;
  }
  const Texts& vocabulary = tokenizer_.vocabulary();
  // A model may have rows for more tokens than there are.
  if (static_cast<size_t>(token) < vocabulary.size()) text_ += vocabulary[static_cast<size_t>(token)];
  if (state_ == State::before) return look_for_begin();
  look_for_end();
}

void ThoughtWatch::look_for_begin() {
  const std::string& begin = budget_.begin;
  const size_t found = budget_.again ? text_.find(begin) : std::min(text_.find_first_not_of(kSpace), text_.size());
  const std::string_view rest = std::string_view(text_).substr(std::min(found, text_.size()));
  if (rest.starts_with(begin)) {
    state_ = State::inside;
    text_.erase(0, found + begin.size());
  } else if (budget_.again) {
    keep_last(text_, begin.size() - 1);
  } else if (begin.starts_with(rest)) {
    text_.erase(0, found);
  } else {
    state_ = State::over;  // the answer begins with something else
  }
}

void ThoughtWatch::look_for_end() {
  const size_t found = text_.find(budget_.end);
  if (found == std::string::npos) return keep_last(text_, budget_.end.size() - 1);
  state_ = budget_.again ? State::before : State::over;
  text_.erase(0, found + budget_.end.size());
  n_ending_ = 0;
}

}  // namespace unisono::engine
