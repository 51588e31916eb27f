#include "text/added_tokens.h"

#include "base/check.h"

namespace unisono::text {

void AddedTokens::add(std::string_view text, TokenId id, bool marker) {
  check(!text.empty() && text.size() <= kMaxBytes, "added tokens have a length within bounds");
  added_.push_back({text, id, marker});
}

void AddedTokens::build() {
  size_t bytes = 0;
  for (const Added& token : added_) bytes += token.text.size();
  edges_ = PairIndex(bytes);
  nodes_.assign(1, Node{});
  for (const Added& token : added_) {
    int32_t node = 0;
    for (const char c : token.text) {
      const auto byte = static_cast<unsigned char>(c);
      int32_t next = edges_.find(node, byte).first;
      if (next < 0) {
        next = static_cast<int32_t>(nodes_.size());
        nodes_.emplace_back();
        edges_.insert(node, byte, {next, 0});
      }
      node = next;
    }
    Node& end = nodes_[static_cast<size_t>(node)];
    (token.marker ? end.marker : end.plain) = token.id;
    starts_[static_cast<unsigned char>(token.text[0])] = true;
  }
  added_ = {};
}

AddedTokens::Match AddedTokens::find(std::string_view text, size_t from, size_t stop, size_t markers_end) const {
  for (size_t begin = from; begin < stop; begin++) {
    if (!starts_[static_cast<unsigned char>(text[begin])]) continue;
    Match best;
    int32_t node = 0;
    for (size_t at = begin; at < text.size();) {
      node = edges_.find(node, static_cast<unsigned char>(text[at])).first;
      if (node < 0) break;
      at++;
      const Node& here = nodes_[static_cast<size_t>(node)];
      if (here.plain >= 0) best = {begin, at, here.plain};
      if (here.marker >= 0 && at <= markers_end) best = {begin, at, here.marker};
    }
    if (best.id >= 0) return best;
  }
  return {};
}

}  // namespace unisono::text
