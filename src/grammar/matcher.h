// One answer on its way through a grammar: which tokens may come next. Cheap to copy, and the copies go their own ways; not
// for two threads at once, though many matchers of one grammar may run on many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "grammar/grammar.h"
#include "grammar/token_trie.h"

namespace unisono::grammar {

class Recognizer;

class Matcher {
 public:
  Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie);

  // Takes a token. False, with nothing changed: the grammar doesn't allow it here.
  bool accept(TokenId token);
  // Takes bytes, all or none of them.
  bool accept_bytes(std::string_view bytes);
  size_t mask_words() const { return trie_->mask_words(); }
  // Writes one bit per token id, mask_words() words: exactly the tokens accept() would take.
  void mask(std::span<uint64_t> bits);
  // The answer is complete as it stands.
  bool may_end() const;
  // An end token was taken: nothing may follow.
  bool ended() const { return ended_; }
  // Nothing but an end token may follow.
  bool must_end();

 private:
  void trim();
  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const TokenTrie> trie_;
  std::shared_ptr<Recognizer> recognizer_;
  uint32_t state_ = 0;
  bool ended_ = false;
};

}  // namespace unisono::grammar
