#include "grammar/token_trie.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "grammar/lexicon.h"

namespace unisono::grammar {

namespace {

using Node = TokenTrie::Node;

constexpr uint32_t kMaxPlain = 128;  // lengths told apart

void set(std::vector<uint64_t>& bits, TokenId id) { bits[size_t(id) / 64] |= uint64_t(1) << (size_t(id) % 64); }

// ids: sorted by bytes, no two alike.
std::vector<Node> trie_of(const Texts& tokens, const std::vector<TokenId>& ids) {
  std::vector<Node> out;
  std::vector<uint32_t> path;  // open nodes, from the root
  auto close_to = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) out[path.back()].end = uint32_t(out.size());
  };
  std::string_view before;
  for (TokenId id : ids) {
    const std::string_view bytes = tokens[size_t(id)];
    const size_t shared =
        size_t(std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end()).first - before.begin());
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

// A token of whole characters that need no escape; their number.
bool is_plain(std::string_view bytes, uint32_t* characters) {
  *characters = 0;
  for (std::string_view rest = bytes; !rest.empty(); ++*characters) {
    const auto b = uint8_t(rest[0]);
    if (b == '"' || b == '\\' || b < 32 || next_char(rest) > kMaxChar) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const TokenTrie> TokenTrie::build(const Texts& tokens, const std::vector<TokenId>& end_tokens,
                                                  const std::vector<TokenId>& other_control) {
  auto trie = std::make_shared<TokenTrie>();
  static std::atomic<uint64_t> serials{0};
  TokenTrie& t = *trie;
  t.serial_ = ++serials;
  const auto n = TokenId(tokens.size());
  std::vector<bool> without_bytes(tokens.size());
  for (const auto* ids : {&end_tokens, &other_control})
    for (TokenId id : *ids)
      if (id >= 0 && id < n) without_bytes[size_t(id)] = true;
  for (size_t i = 0; i < tokens.size(); ++i) t.tokens_.add(without_bytes[i] ? std::string_view() : tokens[i]);
  for (TokenId id : end_tokens)
    if (id >= 0 && id < n) t.end_tokens_.push_back(id);
  t.next_alias_.assign(tokens.size(), -1);

  std::vector<TokenId> ids;
  for (TokenId id = 0; id < n; ++id)
    if (!t.tokens_[size_t(id)].empty()) ids.push_back(id);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](TokenId a, TokenId b) { return t.tokens_[size_t(a)] < t.tokens_[size_t(b)]; });
  std::vector<TokenId> distinct;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0 && t.tokens_[size_t(ids[i])] == t.tokens_[size_t(ids[i - 1])])
      t.next_alias_[size_t(ids[i - 1])] = ids[i];
    else
      distinct.push_back(ids[i]);
  }
  t.all_ = trie_of(t.tokens_, distinct);

  t.root_children_.assign(256, uint32_t(t.all_.size()));
  for (uint32_t at = 0; at < t.all_.size(); at = t.all_[at].end) t.root_children_[t.all_[at].byte] = at;
  t.slice(distinct);
  return trie;
}

// Sorts tokens by what they do inside a JSON string.
void TokenTrie::slice(const std::vector<TokenId>& distinct) {
  inside_.assign(mask_words(), 0);
  closed_ = inside_;
  RegexPool pool;
  Lexicon lexicon(pool);
  const LexId inside = lexicon.step(lexicon.json_string(RegexPool::kAll), '"');
  std::vector<TokenId> closing, uneven, plain;
  std::vector<uint32_t> lengths;
  std::map<std::string, std::vector<TokenId>> by_rest;
  for (TokenId id : distinct) {
    const std::string_view bytes = tokens_[size_t(id)];
    std::vector<TokenId> aliases;
    for (TokenId alias = id; alias >= 0; alias = next_alias_[size_t(alias)]) aliases.push_back(alias);
    longest_ = std::max(longest_, uint32_t(bytes.size()));
    LexId state = inside;
    size_t read = 0;
    while (read < bytes.size() && state != Lexicon::kDead && !lexicon.accepting(state))
      state = lexicon.step(state, uint8_t(bytes[read++]));
    if (state != Lexicon::kDead) {
      const bool closes = lexicon.accepting(state);
      if (closes && read < bytes.size()) {
        auto& rest = by_rest[std::string(bytes.substr(read))];
        rest.insert(rest.end(), aliases.begin(), aliases.end());
      } else {
        for (TokenId alias : aliases) set(closes ? closed_ : inside_, alias);
      }
    }
    uint32_t characters = 0;
    if (!is_plain(bytes, &characters)) {
      // A quote anywhere puts it with the closing ones: whether it closes depends on what stands before.
      (bytes.find('"') != bytes.npos ? closing : uneven).push_back(id);
      continue;
    }
    plain.push_back(id);
    lengths.push_back(characters);
  }
  plain_.assign(std::min(longest_, kMaxPlain) + 1, std::vector<uint64_t>(mask_words(), 0));
  for (size_t i = 0; i < plain.size(); ++i)
    for (TokenId alias = plain[i]; alias >= 0; alias = next_alias_[size_t(alias)])
      if (lengths[i] < plain_.size()) set(plain_[lengths[i]], alias);
  for (size_t k = 1; k < plain_.size(); ++k)
    for (size_t w = 0; w < plain_[k].size(); ++w) plain_[k][w] |= plain_[k - 1][w];
  plain_nodes_ = trie_of(tokens_, plain);
  for (const Node& node : plain_nodes_) {
    plain_first_.push_back(uint32_t(plain_tokens_.size()));
    for (TokenId alias = node.token; alias >= 0; alias = next_alias_[size_t(alias)]) plain_tokens_.push_back(alias);
  }
  plain_first_.push_back(uint32_t(plain_tokens_.size()));
  closing_ = trie_of(tokens_, closing);
  uneven_ = trie_of(tokens_, uneven);
  quotes_behind_.assign(closing_.size(), 0);
  for (uint32_t at = uint32_t(closing_.size()); at-- > 0;)
    for (uint32_t child = at + 1; child < closing_[at].end; child = closing_[child].end) {
      const int quotes = quotes_behind_[child] + (closing_[child].byte == '"');
      quotes_behind_[at] = std::max(quotes_behind_[at], uint8_t(std::min(quotes, 255)));
    }
  Texts rests;
  std::vector<TokenId> numbers;
  for (auto& [rest, ids] : by_rest) {
    numbers.push_back(TokenId(groups_.size()));
    rests.add(rest);
    groups_.push_back(std::move(ids));
  }
  after_quote_ = trie_of(rests, numbers);
}

bool TokenTrie::is_end(TokenId id) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), id) != end_tokens_.end();
}

}  // namespace unisono::grammar
