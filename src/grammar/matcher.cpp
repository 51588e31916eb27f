#include "grammar/matcher.h"

#include <algorithm>

#include "base/check.h"
#include "grammar/core.h"
#include "grammar/mask.h"

namespace unisono::grammar {

namespace {

constexpr size_t kMaxLearnt = 64 << 20;  // bytes of one grammar's states before it starts afresh
constexpr size_t kMaxRows = 64 << 20;

}  // namespace

Matcher::Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie)
    : grammar_(std::move(grammar)), trie_(std::move(trie)) {
  Core& core = grammar_->core();
  std::lock_guard lock(core.mutex);
  recognizer_ = core.recognizer;
  state_ = recognizer_->start(core.root);
}

// Only under the lock. A grammar that has learnt too much forgets, but for where its matchers are.
void Matcher::trim() {
  Core& core = grammar_->core();
  if (core.lexicon.row_bytes() > kMaxRows) core.lexicon.drop_rows();
  if (core.recognizer->bytes() > kMaxLearnt) core.recognizer = std::make_shared<Recognizer>(core.lexicon, core.rules);
  if (recognizer_ == core.recognizer) return;
  state_ = core.recognizer->adopt(*recognizer_, state_);
  recognizer_ = core.recognizer;
}

bool Matcher::accept_bytes(std::string_view bytes) {
  if (ended_) return false;
  std::lock_guard lock(grammar_->core().mutex);
  trim();
  const StateId next = recognizer_->run(state_, bytes);
  if (next == Recognizer::kDead) return false;
  state_ = next;
  return true;
}

bool Matcher::accept(TokenId token) {
  if (token < 0 || token >= trie_->vocab_size() || ended_) return false;
  if (trie_->is_end(token)) {
    if (!may_end()) return false;
    ended_ = true;
    return true;
  }
  const std::string_view bytes = trie_->bytes(token);
  return !bytes.empty() && accept_bytes(bytes);
}

bool Matcher::may_end() const {
  if (ended_) return true;
  std::lock_guard lock(grammar_->core().mutex);
  return recognizer_->accepting(state_);
}

bool Matcher::must_end() {
  std::lock_guard lock(grammar_->core().mutex);
  return ended_ || recognizer_->items(state_).empty();
}

void Matcher::mask(std::span<uint64_t> bits) {
  check(bits.size() == trie_->mask_words(), "a mask has one bit for each token");
  if (ended_) {
    std::fill(bits.begin(), bits.end(), 0);
    return;
  }
  Core& core = grammar_->core();
  std::lock_guard lock(core.mutex);
  trim();
  const std::vector<uint64_t>* known = core.caching ? recognizer_->mask(state_, trie_->serial()) : nullptr;
  if (known) {
    std::copy(known->begin(), known->end(), bits.begin());
    return;
  }
  std::fill(bits.begin(), bits.end(), 0);
  MaskWalk(core.lexicon, *recognizer_, *trie_, bits).run(state_);
  if (recognizer_->accepting(state_))
    for (TokenId id : trie_->end_tokens()) bits[size_t(id) / 64] |= uint64_t(1) << (size_t(id) % 64);
  if (core.caching) recognizer_->keep_mask(state_, trie_->serial(), bits);
}

}  // namespace unisono::grammar
