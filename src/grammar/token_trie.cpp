#include "grammar/token_trie.h"

#include <algorithm>
#include <atomic>

#include "grammar/regex.h"

namespace unisono::grammar {

namespace {

using Node = TokenTrie::Node;

void set(std::vector<uint64_t>& bits, TokenId id) { bits[size_t(id) / 64] |= uint64_t(1) << (size_t(id) % 64); }

// ids: sorted by bytes, no two alike.
std::vector<Node> trie_of(const std::vector<std::string>& tokens, const std::vector<TokenId>& ids) {
  std::vector<Node> out;
  std::vector<uint32_t> path;  // open nodes, from the root
  auto close_to = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) out[path.back()].end = uint32_t(out.size());
  };
  std::string_view before;
  for (TokenId id : ids) {
    const std::string_view bytes = tokens[size_t(id)];
    const size_t shared = size_t(std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end()).first - before.begin());
    close_to(shared);
    for (size_t i = shared; i < bytes.size(); ++i) {
      path.push_back(uint32_t(out.size()));
      out.push_back({0, -1, uint8_t(bytes[i])});
    }
    out[path.back()].token = id;
    before = bytes;
  }
  close_to(0);
  return out;
}

// How a token reads inside a JSON string that may hold anything, from between two characters on.
struct Reading {
  bool fits = true;      // some string goes on with it
  bool closes = false;   // it holds the closing quote
  bool plain = true;     // whole characters without escapes
  uint32_t characters = 0;
};

Reading read(std::string_view bytes) {
  Reading out;
  for (std::string_view rest = bytes; !rest.empty();) {
    const auto b = uint8_t(rest[0]);
    if (b == '"') out.closes = true;
    if (b == '"' || b == '\\' || b < 32) {
      out.plain = false;
      return out;
    }
    if (next_char(rest) > kMaxChar) out.plain = false;
    ++out.characters;
    if (!out.plain) return out;
  }
  return out;
}

}  // namespace

std::shared_ptr<const TokenTrie> TokenTrie::build(const std::vector<std::string>& tokens, const std::vector<TokenId>& end_tokens,
                                                  const std::vector<TokenId>& other_control) {
  auto trie = std::make_shared<TokenTrie>();
  static std::atomic<uint64_t> serials{0};
  TokenTrie& t = *trie;
  t.serial_ = ++serials;
  t.tokens_ = tokens;
  const auto n = TokenId(tokens.size());
  for (const auto* ids : {&end_tokens, &other_control})
    for (TokenId id : *ids)
      if (id >= 0 && id < n) t.tokens_[size_t(id)].clear();
  for (TokenId id : end_tokens)
    if (id >= 0 && id < n) t.end_tokens_.push_back(id);
  t.next_alias_.assign(tokens.size(), -1);

  std::vector<TokenId> ids;
  for (TokenId id = 0; id < n; ++id)
    if (!t.tokens_[size_t(id)].empty()) ids.push_back(id);
  std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) { return t.tokens_[size_t(a)] < t.tokens_[size_t(b)]; });
  std::vector<TokenId> distinct;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0 && t.tokens_[size_t(ids[i])] == t.tokens_[size_t(ids[i - 1])]) t.next_alias_[size_t(ids[i - 1])] = ids[i];
    else distinct.push_back(ids[i]);
  }
  t.all_ = trie_of(t.tokens_, distinct);

  const size_t words = t.mask_words();
  t.inside_.assign(words, 0);
  t.plain_.assign(kMaxPlain + 1, std::vector<uint64_t>(words, 0));
  std::vector<TokenId> closing, uneven;
  for (TokenId id : distinct) {
    const std::string& bytes = t.tokens_[size_t(id)];
    const Reading reading = read(bytes);
    t.longest_ = std::max(t.longest_, uint32_t(bytes.size()));
    if (!reading.plain) {
      // A quote anywhere puts it with the closing ones: whether it closes depends on what stands before.
      (bytes.find('"') != std::string::npos ? closing : uneven).push_back(id);
      continue;
    }
    for (TokenId alias = id; alias >= 0; alias = t.next_alias_[size_t(alias)]) {
      set(t.inside_, alias);
      for (uint32_t k = reading.characters; k <= kMaxPlain; ++k) set(t.plain_[k], alias);
    }
  }
  t.closing_ = trie_of(t.tokens_, closing);
  t.uneven_ = trie_of(t.tokens_, uneven);
  return trie;
}

bool TokenTrie::is_end(TokenId id) const { return std::find(end_tokens_.begin(), end_tokens_.end(), id) != end_tokens_.end(); }

}  // namespace unisono::grammar
