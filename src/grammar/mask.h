// Which tokens may follow a state: the walk of a vocabulary's trie through a grammar. It allows exactly the tokens whose
// bytes the recogniser takes, and shortens the walk inside JSON strings with the trie's slices.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "grammar/lexicon.h"
#include "grammar/recognizer.h"
#include "grammar/token_trie.h"

namespace unisono::grammar {

class MaskWalk {
 public:
  MaskWalk(Lexicon& lexicon, Recognizer& recognizer, const TokenTrie& trie, std::span<uint64_t> bits)
      : lexicon_(lexicon), recognizer_(recognizer), trie_(trie), bits_(bits) {}

  // Sets the bits of all tokens that may follow; end tokens are left alone.
  void run(StateId state);

 private:
  using Item = Recognizer::Item;
  // A trie whose nodes hold tokens, or groups of tokens.
  struct Nodes {
    const std::vector<TokenTrie::Node>& nodes;
    bool groups = false;
  };
  struct Known {  // a completed terminal and the state after it
    NodeId target = 0;
    uint32_t frame = 0;
    LexId lex = 0;
    StateId after = Recognizer::kDead;
  };

  void inner(LexId lex);
  void walk_plain(uint32_t at, uint32_t end, LexId lex, bool clearing, std::vector<uint64_t>& out);
  void in_string(const Item& item);
  void from_root(const Item& item);
  void by_terminal(const Nodes& in, uint32_t at, uint32_t end, const Item& item, LexId lex);
  void one_step(const Nodes& in, uint32_t at, const Item& item, LexId lex);
  void by_literal(const Nodes& in, uint32_t at, uint32_t end, const Item& item, LexId lex);
  void by_state(const Nodes& in, uint32_t at, uint32_t end, StateId state);
  StateId after(const Nodes& in, uint32_t at, const Item& item, LexId lex);
  void allow(const Nodes& in, TokenId token);
  void allow_all(std::span<const uint64_t> mask);

  Lexicon& lexicon_;
  Recognizer& recognizer_;
  const TokenTrie& trie_;
  std::span<uint64_t> bits_;
  std::string path_{};  // bytes of the terminal under way since its item, where its text matters
  std::array<Known, 8> known_{};
  // After a captured string in which any text but a few may stand: what follows is the same whatever it was, until a
  // second string ends.
  bool alike_ = false;
  StateId any_alike_ = Recognizer::kDead;
};

}  // namespace unisono::grammar
