// What a tokenizer holds: shared by tokenizer.cpp and the detokenizer, nobody else.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/texts.h"
#include "text/added_tokens.h"
#include "text/byte_bpe.h"
#include "text/hash_index.h"
#include "text/pre_tokenizer.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"
#include "text/workspace.h"

namespace unisono::text {

struct Tokenizer::Impl {
  // Tokens as the file has them, by id and the other way. SentencePiece merges what is written so; byte-level BPE knows
  // bytes alone once it is made, and has none.
  struct Written {
    Texts texts{};
    TextIndex index{};
  };
  std::optional<Written> written{};
  Texts vocabulary{};                        // by id, the bytes they stand for
  std::vector<TokenType> types{};            // the file's, with fillers as unused
  std::optional<TokenId> bos{}, eos{};
  AddedTokens markers{};                     // control tokens and their like: only a template writes them
  AddedTokens plain{};                       // the other user-defined tokens: matched in anybody's text
  std::optional<SentencePieceBpe> pieces{};  // this,
  std::optional<PreTokenizer> words{};       // or these two
  std::optional<ByteBpe> bpe{};
  bool add_bos = false, add_eos = false, space_prefix = false;

  mutable std::mutex mutex{};
  mutable std::vector<std::unique_ptr<Workspace>> idle{};

  void own_tokens(const TokenizerSpec& spec);
  Result<void> index_tokens();
  Result<void> add_added_tokens();
  Result<void> build_model(const TokenizerSpec& spec);

  std::unique_ptr<Workspace> take_workspace() const;
  void give_back(std::unique_ptr<Workspace> work) const;
  std::string_view prepare(std::string_view text, std::vector<MarkedText::Span>& from_user, std::string& buffer) const;
  void encode_fragment(std::string_view text, Workspace& work, std::vector<TokenId>& out) const;
  void encode_plain(std::string_view text, Workspace& work, std::vector<TokenId>& out) const;
  void encode_text(std::string_view raw, std::vector<MarkedText::Span> from_user, std::vector<TokenId>& out) const;
};

}  // namespace unisono::text
