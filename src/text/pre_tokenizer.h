// Cuts text into the words that byte-level BPE works on, by the regular expressions that models were trained with. It
// knows no tokens.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace unisono::text {

class PreTokenizer {
 public:
  // What comes with a name besides the expressions.
  struct Traits {
    bool nfc = false;            // text is brought to normal form C first
    bool ignore_merges = false;  // a word that is a token is that token, whatever the merges say
    bool add_bos = false;        // the default, when the model file doesn't say
    bool digits_apart = false;   // digits are told by newer tables than those of the expressions
  };

  // Refused: a name that isn't in the table, with those that are.
  static Result<PreTokenizer> create(std::string_view name);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  const Traits& traits() const { return traits_; }

  // What matching writes to; one per thread at a time.
  class Scratch {
   public:
    Scratch();
    ~Scratch();
    Scratch(Scratch&&) noexcept;
    Scratch& operator=(Scratch&&) noexcept;

   private:
    friend class PreTokenizer;
    struct Parts;
    std::unique_ptr<Parts> parts_;
  };

  // Calls sink(word) for each word, in order; the words together are the text. text must be valid UTF-8.
  template <class Sink>
  void split(std::string_view text, Scratch& scratch, Sink&& sink) const {
    const std::string_view subject = with_stand_ins(text, scratch);
    const auto give = [&](std::string_view piece) {
      sink(text.substr(static_cast<size_t>(piece.data() - subject.data()), piece.size()));
    };
    split_from(0, subject, scratch, give);
  }

 private:
  struct Match {
    size_t begin = 0, end = 0;
  };
  struct Expression;

  explicit PreTokenizer(const Traits& traits);
  // The text, or a copy in which characters that PCRE2's tables lack are replaced by others of the same category and
  // length.
  std::string_view with_stand_ins(std::string_view text, Scratch& scratch) const;
  // The first match of an expression that begins at `from` or later; begin == end == text.size(): none.
  Match find(size_t expression, std::string_view text, size_t from, Scratch& scratch) const;

  // Each expression cuts what those before it left whole: its matches are words, and so is what lies between them.
  template <class Sink>
  void split_from(size_t expression, std::string_view text, Scratch& scratch, Sink& sink) const {
    const bool last = expression + 1 == passes_;
    const auto pass_on = [&](std::string_view piece) {
      if (piece.empty()) return;
      if (last)
        sink(piece);
      else
        split_from(expression + 1, piece, scratch, sink);
    };
    for (size_t at = 0; at < text.size();) {
      const Match match = find(expression, text, at, scratch);
      pass_on(text.substr(at, match.begin - at));
      pass_on(text.substr(match.begin, match.end - match.begin));
      at = match.end;
    }
  }

  Traits traits_{};
  size_t passes_ = 0;
  std::vector<Expression> expressions_;
};

}  // namespace unisono::text
