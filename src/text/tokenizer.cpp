#include "text/tokenizer.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>

#include "base/quoted.h"
#include "text/added_tokens.h"
#include "text/byte_bpe.h"
#include "text/pre_tokenizer.h"
#include "text/sentencepiece.h"
#include "text/tokenizer_impl.h"
#include "text/unicode.h"

namespace unisono::text {

namespace {

using Span = MarkedText::Span;

// Converters fill a vocabulary up to the embedding's rows with "[PAD<id>]"; older ones call these user-defined or unknown.
bool is_filler(std::string_view text, size_t id) { return text == "[PAD" + std::to_string(id) + "]"; }

// Chat markers that older converters call user-defined: "<|user|>", "<|tool_call>", and with full-width bars.
bool looks_like_marker(std::string_view text) {
  return (text.starts_with("<|") && text.ends_with(">")) || (text.starts_with("<") && text.ends_with("|>")) ||
         (text.starts_with("<｜") && text.ends_with("｜>"));
}

std::string with_spaces(std::string_view piece) {
  std::string out;
  for (size_t at = 0; at < piece.size();) {
    const size_t mark = std::min(piece.find(kSpaceMark, at), piece.size());
    out.append(piece, at, mark - at);
    if (mark < piece.size()) out += ' ';
    at = mark + kSpaceMark.size();
  }
  return out;
}

std::string with_marks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ')
      out += kSpaceMark;
    else
      out += c;
  }
  return out;
}

Result<void> check_id(std::optional<TokenId> id, const char* what, size_t vocab_size) {
  if (!id || (*id >= 0 && static_cast<size_t>(*id) < vocab_size)) return {};
  return Error{"The " + std::string(what) + " token id " + std::to_string(*id) + " is outside the vocabulary of " +
                   std::to_string(vocab_size) + " tokens.",
               std::string("tokenizer.ggml.") + what + "_token_id"};
}

size_t total_bytes(const std::vector<std::string_view>& texts) {
  size_t bytes = 0;
  for (const std::string_view text : texts) bytes += text.size();
  return bytes;
}

Result<void> check_shape(const TokenizerSpec& spec) {
  const size_t n = spec.tokens.size();
  if (n == 0) return Error{"The vocabulary is empty.", "tokenizer.ggml.tokens"};
  if (n > static_cast<size_t>(std::numeric_limits<TokenId>::max()))
    return Error{"The vocabulary has more tokens than there are ids.", "tokenizer.ggml.tokens"};
  if (total_bytes(spec.tokens) > Texts::kMaxBytes)
    return Error{"The vocabulary's tokens take more than 4 GiB.", "tokenizer.ggml.tokens"};
  const auto differs = [&](size_t m, const char* what) {
    return Error{"There are " + std::to_string(n) + " tokens but " + std::to_string(m) + " " + what + ".",
                 std::string("tokenizer.ggml.") + (what[0] == 't' ? "token_type" : "scores")};
  };
  if (!spec.types.empty() && spec.types.size() != n) return differs(spec.types.size(), "types");
  if (spec.scores.size() != n && (!spec.scores.empty() || spec.kind == TokenizerKind::sentencepiece_bpe))
    return differs(spec.scores.size(), "scores");
  for (size_t i = 0; i < spec.types.size(); i++)
    if (spec.types[i] < TokenType::normal || spec.types[i] > TokenType::byte)
      return Error{"Token " + std::to_string(i) + " has type " + std::to_string(static_cast<int>(spec.types[i])) +
                       "; known are 1 to 6.",
                   "tokenizer.ggml.token_type"};
  for (const auto& [id, what] :
       {std::pair(spec.bos, "bos"), std::pair(spec.eos, "eos"), std::pair(spec.unknown, "unknown")})
    if (Result<void> fits = check_id(id, what, n); !fits) return fits;
  if (spec.add_bos.value_or(false) && !spec.bos)
    return Error{"A begin token is to be added but none is named.", "tokenizer.ggml.bos_token_id"};
  if (spec.add_eos.value_or(false) && !spec.eos)
    return Error{"An end token is to be added but none is named.", "tokenizer.ggml.eos_token_id"};
  return {};
}

std::vector<TokenType> types_of(const TokenizerSpec& spec) {
  std::vector<TokenType> types = spec.types;
  if (types.empty()) {
    types.assign(spec.tokens.size(), TokenType::normal);
    for (const auto& id : {spec.bos, spec.eos})
      if (id) types[static_cast<size_t>(*id)] = TokenType::control;
    if (spec.unknown) types[static_cast<size_t>(*spec.unknown)] = TokenType::unknown;
  }
  for (size_t i = 0; i < types.size(); i++)
    if ((types[i] == TokenType::user_defined || types[i] == TokenType::unknown) && is_filler(spec.tokens[i], i))
      types[i] = TokenType::unused;
  return types;
}

std::string bytes_of(TokenizerKind kind, std::string_view token, TokenType type) {
  if (type == TokenType::unused) return {};
  if (type == TokenType::control || type == TokenType::unknown) return std::string(token);
  if (kind == TokenizerKind::sentencepiece_bpe) {
    const auto byte = type == TokenType::byte ? byte_of_piece(token) : std::nullopt;
    return byte ? std::string(1, static_cast<char>(*byte)) : with_spaces(token);
  }
  if (type == TokenType::user_defined) return std::string(token);
  return bytes_of_written(token).value_or(std::string(token));
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

// The file may be written over while the tokenizer is in use.
void Tokenizer::Impl::own_tokens(const TokenizerSpec& spec) {
  Texts& tokens = written.emplace().texts;
  tokens.reserve(spec.tokens.size(), total_bytes(spec.tokens));
  for (const std::string_view token : spec.tokens) tokens.add(token);
  types = types_of(spec);
  vocabulary.reserve(types.size(), total_bytes(spec.tokens));
  for (size_t i = 0; i < types.size(); i++) vocabulary.add(bytes_of(spec.kind, spec.tokens[i], types[i]));
}

Result<void> Tokenizer::Impl::index_tokens() {
  const Texts& tokens = written->texts;
  TextIndex& index = written->index = TextIndex(tokens);
  for (size_t i = 0; i < tokens.size(); i++) {
    // Empty texts, which some vocabularies have, match nothing.
    if (tokens[i].empty() || index.insert(static_cast<TokenId>(i))) continue;
    return Error{"Tokens " + std::to_string(index.find(tokens[i])) + " and " + std::to_string(i) + " are both " +
                     quoted(tokens[i]) + ".",
                 "tokenizer.ggml.tokens"};
  }
  return {};
}

// In a user's text, control tokens are never matched. User-defined tokens are text that a model has a name for (runs of
// spaces, tags), and match everywhere, as they do in Hugging Face's tokenizers; but those that look like chat markers, and
// those that begin or end texts, count as control tokens here.
Result<void> Tokenizer::Impl::add_added_tokens() {
  const Texts& tokens = written->texts;
  std::deque<std::string> marked;  // those that hold spaces, as SentencePiece writes them
  for (size_t i = 0; i < tokens.size(); i++) {
    const std::string_view token = tokens[i];
    const auto id = static_cast<TokenId>(i);
    const bool user_defined = types[i] == TokenType::user_defined;
    if (!user_defined && types[i] != TokenType::control && types[i] != TokenType::unknown) continue;
    if (token.empty() || valid_prefix(token) != token.size()) continue;
    if (token.size() > AddedTokens::kMaxBytes / kSpaceMark.size())
      return Error{"Token " + std::to_string(i) + " (" + quoted(token) + ") is special and longer than " +
                       std::to_string(AddedTokens::kMaxBytes / kSpaceMark.size()) + " bytes.",
                   "tokenizer.ggml.tokens"};
    const bool marker = !user_defined || looks_like_marker(token) || id == bos || id == eos;
    AddedTokens& added = marker ? markers : plain;
    if (added.bytes() + token.size() * kSpaceMark.size() > AddedTokens::kMaxBytesOfAll)
      return Error{"The special tokens take more than " + std::to_string(AddedTokens::kMaxBytesOfAll >> 20) + " MiB.",
                   "tokenizer.ggml.tokens"};
    if (pieces && token.find(' ') != std::string_view::npos)
      added.add(marked.emplace_back(with_marks(token)), id);
    else
      added.add(token, id);
  }
  markers.build();
  plain.build();
  return {};
}

Result<void> Tokenizer::Impl::build_model(const TokenizerSpec& spec) {
  bos = spec.bos;
  eos = spec.eos;
  if (spec.kind == TokenizerKind::sentencepiece_bpe) {
    Result<SentencePieceBpe> made = SentencePieceBpe::create({written->texts, types, spec.scores, written->index, spec.unknown});
    if (!made) return made.error();
    pieces.emplace(std::move(made).value());
    add_bos = spec.add_bos.value_or(spec.bos.has_value());
    space_prefix = spec.add_space_prefix.value_or(true);
  } else {
    Result<PreTokenizer> cutter = PreTokenizer::create(spec.pre);
    if (!cutter) return cutter.error();
    words.emplace(std::move(cutter).value());
    Result<ByteBpe> made =
        ByteBpe::create({written->texts, vocabulary, types, written->index}, spec.merges, words->traits().ignore_merges);
    if (!made) return made.error();
    bpe.emplace(std::move(made).value());
    add_bos = spec.add_bos.value_or(spec.bos.has_value() && words->traits().add_bos);
  }
  add_eos = spec.add_eos.value_or(false);
  return {};
}

Result<Tokenizer> Tokenizer::create(const TokenizerSpec& spec) {
  if (Result<void> sound = check_shape(spec); !sound) return sound.error();
  if (spec.kind == TokenizerKind::byte_bpe && spec.add_space_prefix.value_or(false))
    return Error{"A space before the text is to be added, which byte-level BPE doesn't know.",
                 "tokenizer.ggml.add_space_prefix"};
  auto impl = std::make_unique<Impl>();
  impl->own_tokens(spec);
  if (Result<void> done = impl->index_tokens(); !done) return done.error();
  if (Result<void> done = impl->build_model(spec); !done) return done.error();
  if (Result<void> done = impl->add_added_tokens(); !done) return done.error();
  if (impl->bpe) impl->written.reset();
  return Tokenizer(std::move(impl));
}

std::unique_ptr<Workspace> Tokenizer::Impl::take_workspace() const {
  const std::lock_guard lock(mutex);
  if (idle.empty()) return std::make_unique<Workspace>();
  std::unique_ptr<Workspace> work = std::move(idle.back());
  idle.pop_back();
  return work;
}

void Tokenizer::Impl::give_back(std::unique_ptr<Workspace> work) const {
  work->trim();
  const std::lock_guard lock(mutex);
  idle.push_back(std::move(work));
}

// Brings a text to what the vocabulary is made of: valid UTF-8, with marks for spaces where the pieces have them. The
// users' spans move along; a character or broken part that is the user's in part becomes the user's.
std::string_view Tokenizer::Impl::prepare(std::string_view text, std::vector<Span>& from_user, std::string& buffer) const {
  const bool marks = pieces.has_value();
  size_t valid_end = valid_prefix(text);
  if (valid_end == text.size() && !marks) return text;
  buffer.clear();
  buffer.reserve(text.size() + text.size() / 2);
  size_t border = 0;  // the next end of a span: 2 * span, + 1 for its end
  const auto copy = [&](size_t at, size_t bytes, std::string_view replacement, bool same) {
    const size_t start = buffer.size();
    buffer += replacement;
    for (; border < 2 * from_user.size(); border++) {
      Span& span = from_user[border / 2];
      size_t& place = border % 2 == 0 ? span.begin : span.end;
      if (place >= at + bytes) break;
      if (same)
        place = start + (place - at);
      else
        place = border % 2 == 0 || place == at ? start : buffer.size();
    }
  };
  for (size_t at = 0; at < text.size();) {
    if (at == valid_end) {
      const size_t bytes = next_step(text.substr(at)).bytes;
      copy(at, bytes, kReplacement, false);
      at += bytes;
      valid_end = at + valid_prefix(text.substr(at));
      continue;
    }
    const size_t run = marks ? std::min(text.find(' ', at), valid_end) : valid_end;
    if (run > at) copy(at, run - at, text.substr(at, run - at), true);
    if (run < valid_end) copy(run, 1, kSpaceMark, false);
    at = run < valid_end ? run + 1 : run;
  }
  for (; border < 2 * from_user.size(); border++)
    (border % 2 == 0 ? from_user[border / 2].begin : from_user[border / 2].end) = buffer.size();
  return buffer;
}

// Text between control tokens. As in SentencePiece the space comes before the whole of it, and user-defined tokens are
// found after that.
void Tokenizer::Impl::encode_fragment(std::string_view text, Workspace& work, std::vector<TokenId>& out) const {
  if (text.empty()) return;
  if (space_prefix) {
    work.fragment = kSpaceMark;
    text = work.fragment += text;
  }
  size_t at = 0;
  if (!plain.empty()) {
    while (true) {
      const AddedTokens::Match match = plain.find(text, at, text.size());
      if (match.id < 0) break;
      encode_plain(text.substr(at, match.begin - at), work, out);
      out.push_back(match.id);
      at = match.end;
    }
  }
  encode_plain(text.substr(at), work, out);
}

void Tokenizer::Impl::encode_plain(std::string_view text, Workspace& work, std::vector<TokenId>& out) const {
  if (pieces) {
    pieces->encode(text, work, out);
    return;
  }
  if (words->traits().nfc && !plainly_nfc(text)) text = work.fragment = nfc(text);
  words->split(text, work.matching, [&](std::string_view word) { bpe->encode(word, work, out); });
}

// A text is cut at its control tokens and nowhere else: what a user wrote and what the template wrote merge across the
// border, as in the one string that the model was trained on.
void Tokenizer::Impl::encode_text(std::string_view raw, std::vector<Span> from_user, std::vector<TokenId>& out) const {
  std::unique_ptr<Workspace> work = take_workspace();
  const std::string_view text = prepare(raw, from_user, work->text);
  from_user.push_back({text.size(), text.size()});
  size_t fragment = 0, at = 0;
  for (const Span& user : from_user) {
    while (at < user.begin) {
      const AddedTokens::Match match = markers.find(text, at, user.begin);
      if (match.id < 0) break;
      encode_fragment(text.substr(fragment, match.begin - fragment), *work, out);
      out.push_back(match.id);
      at = fragment = match.end;
    }
    at = user.end;
  }
  encode_fragment(text.substr(fragment), *work, out);
  give_back(std::move(work));
}

int Tokenizer::vocab_size() const { return static_cast<int>(impl_->vocabulary.size()); }

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool add_special, bool parse_special) const {
  std::vector<TokenId> out;
  if (add_special && impl_->add_bos) out.push_back(*impl_->bos);
  std::vector<Span> from_user;
  if (!parse_special) from_user.push_back({0, text.size()});
  impl_->encode_text(text, std::move(from_user), out);
  if (add_special && impl_->add_eos) out.push_back(*impl_->eos);
  return out;
}

std::vector<TokenId> Tokenizer::encode(const MarkedText& prompt) const {
  size_t end = 0;
  for (const Span& span : prompt.from_user) {
    check(span.begin >= end && span.end >= span.begin, "a user's spans are in order");
    end = span.end;
  }
  check(end <= prompt.text.size(), "a user's spans lie within the text");
  std::vector<TokenId> out;
  impl_->encode_text(prompt.text, prompt.from_user, out);
  return out;
}

std::string Tokenizer::bytes(TokenId id, bool special) const {
  if (id < 0 || id >= vocab_size() || (!special && is_control(id))) return {};
  return std::string(impl_->vocabulary[static_cast<size_t>(id)]);
}

const Texts& Tokenizer::vocabulary() const { return impl_->vocabulary; }

bool Tokenizer::is_control(TokenId id) const {
  if (id < 0 || id >= vocab_size()) return false;
  const TokenType type = impl_->types[static_cast<size_t>(id)];
  return type == TokenType::control || type == TokenType::unknown;
}

std::optional<TokenId> Tokenizer::bos() const { return impl_->bos; }
std::optional<TokenId> Tokenizer::eos() const { return impl_->eos; }
bool Tokenizer::adds_bos() const { return impl_->add_bos; }

}  // namespace unisono::text
