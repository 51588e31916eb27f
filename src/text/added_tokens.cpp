#include "text/added_tokens.h"

#include "base/check.h"

namespace unisono::text {

void AddedTokens::add(std::string_view text, TokenId id) {
  bytes_ += text.size();
  check(!text.empty() && text.size() <= kMaxBytes && bytes_ <= kMaxBytesOfAll, "added tokens have a length within bounds");
  added_.push_back({text, id});
}

void AddedTokens::build() {
  const auto last_node = static_cast<int32_t>(bytes_);
  edges_ = PairIndex(bytes_, {last_node, 0xFF, last_node});
  nodes_.assign(1, -1);
  for (const Added& token : added_) {
    int32_t node = 0;
    for (const char c : token.text) {
      const auto byte = static_cast<unsigned char>(c);
      int32_t next = edges_.find(node, byte);
      if (next < 0) {
        next = static_cast<int32_t>(nodes_.size());
        nodes_.push_back(-1);
        edges_.insert(node, byte, next);
      }
      node = next;
    }
    nodes_[static_cast<size_t>(node)] = token.id;
    starts_[static_cast<unsigned char>(token.text[0])] = true;
  }
  added_ = std::vector<Added>();
}

AddedTokens::Match AddedTokens::find(std::string_view text, size_t from, size_t limit) const {
  for (size_t begin = from; begin < limit; begin++) {
    if (!starts_[static_cast<unsigned char>(text[begin])]) continue;
    Match best;
    int32_t node = 0;
    for (size_t at = begin; at < limit;) {
      node = edges_.find(node, static_cast<unsigned char>(text[at]));
      if (node < 0) break;
      at++;
      const TokenId id = nodes_[static_cast<size_t>(node)];
      if (id >= 0) best = {begin, at, id};
    }
    if (best.id >= 0) return best;
  }
  return {};
}

}  // namespace unisono::text
