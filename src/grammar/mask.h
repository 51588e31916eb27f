// Which tokens may follow a state: the walk of a vocabulary's trie through a grammar. It allows exactly the tokens whose
// bytes the recogniser takes, and shortens the walk inside JSON strings with the trie's slices.
#pragma once

#include <span>

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
  using Nodes = std::vector<TokenTrie::Node>;

  void in_string(const Recognizer::Item& item, uint32_t span);
  void by_terminal(const Nodes& nodes, uint32_t at, uint32_t end, const Recognizer::Item& item, LexId lex);
  void by_state(const Nodes& nodes, uint32_t at, uint32_t end, StateId state);
  void allow(TokenId token);
  void allow_all(std::span<const uint64_t> mask);

  Lexicon& lexicon_;
  Recognizer& recognizer_;
  const TokenTrie& trie_;
  std::span<uint64_t> bits_;
  std::string path_{};  // bytes read since by_terminal began, where a terminal's text matters
};

}  // namespace unisono::grammar
