#include "engine/prefix_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace unisono::engine {

namespace {

// One step of multiplying and folding; the constants are the fractions of the golden ratio and of the square root of 3.
uint64_t mixed(uint64_t state, uint64_t value) {
  state = (state ^ value) * 0x9E3779B97F4A7C15u;
  return (state ^ state >> 29) * 0xBB67AE8584CAA73Bu;
}

uint64_t finished(uint64_t state) { return state ^ state >> 32; }

uint64_t salt_hash(std::string_view salt) {
  uint64_t state = mixed(0, salt.size());
  for (const char c : salt) state = mixed(state, static_cast<unsigned char>(c));
  return finished(state);
}

BlockTokens block_of(std::span<const TokenId> tokens, size_t block) {
  return tokens.subspan(block * model::kBlockTokens).first<model::kBlockTokens>();
}

}  // namespace

uint64_t chained_hash(uint64_t parent, BlockTokens tokens) {
  uint64_t state = parent;
  for (const TokenId token : tokens) state = mixed(state, static_cast<uint32_t>(token));
  return finished(state);
}

PrefixIndex::PrefixIndex(int n_blocks, BlockHash hash) : n_blocks_(n_blocks), hash_(hash) {
  entries_.reserve(static_cast<size_t>(n_blocks));
  buckets_.assign(std::bit_ceil(2 * static_cast<size_t>(n_blocks)), kNone);
}

size_t PrefixIndex::position(BlockId block) const {
  check(block >= 0 && block < n_blocks_, "a block of this index");
  return static_cast<size_t>(block);
}

PrefixIndex::Entry& PrefixIndex::entry(BlockId block) {
  check(position(block) < entries_.size(), "a block that was entered");
  return entries_[static_cast<size_t>(block)];
}

const PrefixIndex::Entry& PrefixIndex::entry(BlockId block) const { return const_cast<PrefixIndex*>(this)->entry(block); }

uint64_t PrefixIndex::hash_of(std::string_view salt, BlockId parent, BlockTokens tokens) const {
  return hash_(parent == kNone ? salt_hash(salt) : entry(parent).hash, tokens);
}

bool PrefixIndex::holds(BlockId block, std::string_view salt, BlockId parent, BlockTokens tokens) const {
  if (!contains(block)) return false;
  const Entry& e = entry(block);
  return e.parent == parent && std::ranges::equal(e.tokens, tokens) && (parent != kNone || e.salt == salt);
}

BlockId PrefixIndex::lookup(uint64_t hash, std::string_view salt, BlockId parent, BlockTokens tokens) const {
  for (BlockId block = buckets_[bucket(hash)]; block != kNone; block = entry(block).next)
    if (entry(block).hash == hash && holds(block, salt, parent, tokens)) return block;
  return kNone;
}

void PrefixIndex::find(std::string_view salt, std::span<const TokenId> tokens, int max_blocks,
                       std::vector<BlockId>& found) const {
  found.clear();
  const size_t n = std::min(tokens.size() / model::kBlockTokens, static_cast<size_t>(std::max(max_blocks, 0)));
  for (BlockId parent = kNone; found.size() < n; found.push_back(parent)) {
    const BlockTokens wanted = block_of(tokens, found.size());
    parent = lookup(hash_of(salt, parent, wanted), salt, parent, wanted);
    if (parent == kNone) return;
  }
}

BlockId PrefixIndex::enter(std::string_view salt, BlockId parent, BlockTokens tokens, BlockId block) {
  const uint64_t hash = hash_of(salt, parent, tokens);
  if (const BlockId known = lookup(hash, salt, parent, tokens); known != kNone) return known;
  if (position(block) >= entries_.size()) entries_.resize(position(block) + 1);
  Entry& e = entry(block);
  check(!e.known, "a block is entered once, and forgotten before it is overwritten");
  check(parent == kNone || contains(parent), "a block is entered after the one before it");
  std::ranges::copy(tokens, e.tokens.begin());
  e.hash = hash;
  e.salt.assign(parent == kNone ? salt : std::string_view());
  e.parent = parent;
  e.next = buckets_[bucket(hash)];
  e.known = true;
  buckets_[bucket(hash)] = block;
  if (parent != kNone) entry(parent).n_children++;
  size_++;
  return block;
}

void PrefixIndex::forget(BlockId block) {
  if (!contains(block)) return;
  Entry& e = entry(block);
  check(e.n_children == 0, "a block is forgotten after those that follow it");
  BlockId* link = &buckets_[bucket(e.hash)];
  while (*link != block) link = &entry(*link).next;
  *link = e.next;
  if (e.parent != kNone) entry(e.parent).n_children--;
  e.known = false;
  size_--;
}

void PrefixIndex::audit() const {
  std::vector<int32_t> children(entries_.size(), 0);
  int known = 0;
  for (const Entry& e : entries_) {
    known += e.known;
    if (e.known && e.parent != kNone) children[static_cast<size_t>(e.parent)]++;
  }
  int chained = 0;
  for (size_t b = 0; b < buckets_.size(); b++) {
    for (BlockId block = buckets_[b]; block != kNone; block = entry(block).next) {
      const Entry& e = entry(block);
      check(e.known && bucket(e.hash) == b, "a chain has the known blocks of its bucket");
      check(++chained <= known, "the chains end");
      check(e.parent == kNone || (contains(e.parent) && e.salt.empty()), "a block's parent is known");
      check(e.hash == hash_of(e.salt, e.parent, e.tokens), "a block's hash is that of its tokens");
      check(lookup(e.hash, e.salt, e.parent, e.tokens) == block, "a content has one block");
    }
  }
  check(chained == known && known == size_, "every known block is in a chain");
  for (size_t b = 0; b < entries_.size(); b++)
    check(children[b] == (entries_[b].known ? entries_[b].n_children : 0), "a block's children are counted");
}

}  // namespace unisono::engine
