#include "grammar/regex.h"

#include <algorithm>

#include "base/check.h"

namespace unisono::grammar {

namespace {

constexpr int kMaxDepth = 2000;             // of an expression, for the walks that recurse
constexpr size_t kMaxAliveStates = 20'000;  // looked at to find one text of a language

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2);
  h *= 0xFF51AFD7ED558CCDull;
  return h ^ (h >> 32);
}

}  // namespace

uint32_t next_char(std::string_view& text) {
  const auto lead = uint8_t(text[0]);
  size_t n = lead < 0x80                   ? 1
             : lead >= 0xC2 && lead < 0xE0 ? 2
             : lead >= 0xE0 && lead < 0xF0 ? 3
             : lead >= 0xF0 && lead < 0xF5 ? 4
                                           : 0;
  if (n == 0 || text.size() < n) {
    text.remove_prefix(1);
    return kMaxChar + 1;
  }
  uint32_t c = n == 1 ? lead : lead & (0xFFu >> (n + 1));
  for (size_t i = 1; i < n; ++i) {
    const auto b = uint8_t(text[i]);
    if ((b & 0xC0) != 0x80) {
      text.remove_prefix(1);
      return kMaxChar + 1;
    }
    c = (c << 6) | (b & 0x3F);
  }
  text.remove_prefix(n);
  const bool overlong = (n == 3 && c < 0x800) || (n == 4 && c < 0x10000);
  return overlong || c > kMaxChar || (c >= 0xD800 && c < 0xE000) ? kMaxChar + 1 : c;
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += char(0xC0 | (c >> 6));
    out += char(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += char(0xE0 | (c >> 12));
    out += char(0x80 | ((c >> 6) & 0x3F));
    out += char(0x80 | (c & 0x3F));
  } else {
    out += char(0xF0 | (c >> 18));
    out += char(0x80 | ((c >> 12) & 0x3F));
    out += char(0x80 | ((c >> 6) & 0x3F));
    out += char(0x80 | (c & 0x3F));
  }
}

RegexPool::RegexPool() {
  intern(Kind::nothing, 0, 0, 0, false, false);
  intern(Kind::empty, 0, 0, 0, true, false);
  check(chars(CharSet::any()) == kAnyChar, "the pool's first ids are fixed");
  check(intern(Kind::repeat, kAnyChar, 0, kUnbounded, true, false) == kAll, "the pool's first ids are fixed");
}

RegexId RegexPool::intern(Kind kind, uint32_t a, uint32_t b, uint32_t c, bool nullable, bool boolean) {
  const uint64_t h = mix(mix(mix(uint64_t(kind), a), b), c);
  auto [from, to] = index_.equal_range(h);
  for (auto it = from; it != to; ++it) {
    const Node& n = nodes_[it->second];
    if (n.kind == kind && n.a == a && n.b == b && n.c == c) return it->second;
  }
  if (nodes_.size() >= budget_) {
    exhausted_ = true;
    return kNothing;
  }
  const auto id = RegexId(nodes_.size());
  nodes_.push_back({kind, nullable, boolean, a, b, c});
  index_.emplace(h, id);
  life_.push_back(!boolean ? (kind == Kind::nothing ? Life::dead : Life::alive) : nullable ? Life::alive : Life::unknown);
  raw_arcs_.emplace_back();
  arcs_.emplace_back();
  stamps_.push_back(0);
  derived_.push_back(0);
  return id;
}

RegexId RegexPool::intern_list(Kind kind, std::vector<RegexId> items, bool nullable) {
  uint64_t h = uint64_t(kind) + 100;
  bool boolean = kind == Kind::both;
  for (RegexId i : items) {
    h = mix(h, i);
    boolean |= nodes_[i].boolean;
  }
  auto [from, to] = index_.equal_range(h);
  for (auto it = from; it != to; ++it) {
    const Node& n = nodes_[it->second];
    if (n.kind == kind && n.b == items.size() && std::equal(items.begin(), items.end(), lists_.begin() + n.a))
      return it->second;
  }
  if (nodes_.size() >= budget_ || lists_.size() + items.size() > 16 * budget_) {
    exhausted_ = true;
    return kNothing;
  }
  const auto id = RegexId(nodes_.size());
  nodes_.push_back({kind, nullable, boolean, uint32_t(lists_.size()), uint32_t(items.size()), 0});
  lists_.insert(lists_.end(), items.begin(), items.end());
  index_.emplace(h, id);
  life_.push_back(!boolean || nullable ? Life::alive : Life::unknown);
  raw_arcs_.emplace_back();
  arcs_.emplace_back();
  stamps_.push_back(0);
  derived_.push_back(0);
  return id;
}

RegexId RegexPool::chars(const CharSet& set) {
  if (set.empty()) return kNothing;
  uint64_t h = 7;
  for (const CharRange& r : set.ranges()) h = mix(mix(h, r.first), r.last);
  auto [from, to] = set_index_.equal_range(h);
  for (auto it = from; it != to; ++it)
    if (sets_[it->second] == set) return intern(Kind::chars, it->second, 0, 0, false, false);
  const auto id = uint32_t(sets_.size());
  sets_.push_back(set);
  set_index_.emplace(h, id);
  return intern(Kind::chars, id, 0, 0, false, false);
}

RegexId RegexPool::concat(RegexId a, RegexId b) {
  if (a == kNothing || b == kNothing) return kNothing;
  if (a == kEmpty) return b;
  if (b == kEmpty) return a;
  if (nodes_[a].kind == Kind::concat) {
    // To the right, so that equal texts are equal expressions.
    std::vector<RegexId> parts;
    while (nodes_[a].kind == Kind::concat) {
      parts.push_back(nodes_[a].a);
      a = nodes_[a].b;
    }
    parts.push_back(a);
    for (; !parts.empty(); parts.pop_back()) b = concat(parts.back(), b);
    return b;
  }
  // x{i,j} x{k,l} is x{i+k,j+l}.
  const RegexId head = nodes_[b].kind == Kind::concat ? nodes_[b].a : b;
  const RegexId tail = nodes_[b].kind == Kind::concat ? nodes_[b].b : kEmpty;
  const Node &x = nodes_[a], &y = nodes_[head];
  if (x.kind == Kind::repeat && y.kind == Kind::repeat && x.a == y.a) {
    const bool open = x.c == kUnbounded || y.c == kUnbounded;
    const uint64_t min = uint64_t(x.b) + y.b, max = open ? kUnbounded : uint64_t(x.c) + y.c;
    if (min < kUnbounded && (open || max < kUnbounded)) return concat(repeat(x.a, uint32_t(min), uint32_t(max)), tail);
  }
  return intern(Kind::concat, a, b, 0, nodes_[a].nullable && nodes_[b].nullable, nodes_[a].boolean || nodes_[b].boolean);
}

RegexId RegexPool::either(std::vector<RegexId> options) {
  std::vector<RegexId> items;
  CharSet set;
  bool nullable = false, empty = false;
  for (size_t i = 0; i < options.size(); ++i) {
    const Node& n = nodes_[options[i]];
    if (options[i] == kAll) return kAll;
    if (n.kind == Kind::either) {
      auto sub = list(n);
      options.insert(options.end(), sub.begin(), sub.end());
    } else if (n.kind == Kind::chars) {
      set = set.empty() ? sets_[n.a] : set.united(sets_[n.a]);
    } else if (n.kind == Kind::empty) {
      empty = true;
    } else if (n.kind != Kind::nothing) {
      items.push_back(options[i]);
      nullable |= n.nullable;
    }
  }
  if (!set.empty()) items.push_back(chars(set));
  if (empty && !nullable) items.push_back(kEmpty), nullable = true;
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  for (RegexId i : items)
    if (nodes_[i].kind == Kind::negate && std::binary_search(items.begin(), items.end(), nodes_[i].a)) return kAll;
  if (items.empty()) return kNothing;
  if (items.size() == 1) return items[0];
  return intern_list(Kind::either, std::move(items), nullable);
}

RegexId RegexPool::both(std::vector<RegexId> conditions) {
  std::vector<RegexId> items;
  bool nullable = true, any_set = false;
  CharSet set;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Node& n = nodes_[conditions[i]];
    if (n.kind == Kind::nothing) return kNothing;
    if (conditions[i] == kAll) continue;
    if (n.kind == Kind::both) {
      auto sub = list(n);
      conditions.insert(conditions.end(), sub.begin(), sub.end());
      continue;
    }
    if (n.kind == Kind::chars) {
      set = any_set ? set.intersected(sets_[n.a]) : sets_[n.a];
      any_set = true;
      nullable = false;
      continue;
    }
    nullable &= n.nullable;
    items.push_back(conditions[i]);
  }
  if (any_set) {
    const RegexId one = chars(set);
    if (one == kNothing) return kNothing;
    items.push_back(one);
  }
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  if (items.empty()) return kAll;
  for (RegexId i : items) {
    if (nodes_[i].kind == Kind::negate && std::binary_search(items.begin(), items.end(), nodes_[i].a)) return kNothing;
    if (i == kEmpty) return nullable ? kEmpty : kNothing;
  }
  if (items.size() == 1) return items[0];
  return intern_list(Kind::both, std::move(items), nullable);
}

RegexId RegexPool::negate(RegexId a) {
  if (a == kNothing) return kAll;
  if (a == kAll) return kNothing;
  if (nodes_[a].kind == Kind::negate) return nodes_[a].a;
  return intern(Kind::negate, a, 0, 0, !nodes_[a].nullable, true);
}

RegexId RegexPool::repeat(RegexId a, uint32_t min, uint32_t max) {
  if (max == 0 || a == kEmpty) return kEmpty;
  if (a == kNothing) return min == 0 ? kEmpty : kNothing;
  if (min == 1 && max == 1) return a;
  const Node& n = nodes_[a];
  if (n.nullable) min = 0;
  if (n.kind == Kind::repeat && n.c == kUnbounded && n.b <= 1 && max == kUnbounded)
    return repeat(n.a, n.b == 0 || min == 0 ? 0 : 1, kUnbounded);
  return intern(Kind::repeat, a, min, max, min == 0, n.boolean);
}

RegexId RegexPool::text(std::string_view utf8) {
  std::vector<uint32_t> all;
  while (!utf8.empty()) all.push_back(next_char(utf8));
  RegexId out = kEmpty;
  for (size_t i = all.size(); i-- > 0;) out = concat(chars(CharSet({{all[i], all[i]}})), out);
  return out;
}

RegexId RegexPool::any_of(std::vector<std::string_view> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  // One frame per open beginning; texts are sorted, so that a beginning's texts stand together.
  struct Build {
    RegexPool& pool;
    const std::vector<std::string_view>& texts;
    RegexId run(size_t lo, size_t hi, size_t depth, int level) {
      if (hi - lo == 1) return pool.text(texts[lo].substr(depth));
      if (level > kMaxDepth) {
        pool.exhausted_ = true;
        return kNothing;
      }
      std::vector<RegexId> options;
      if (texts[lo].size() == depth) options.push_back(kEmpty), ++lo;
      while (lo < hi) {
        std::string_view rest = texts[lo].substr(depth);
        const size_t before = rest.size();
        const uint32_t c = next_char(rest);
        const size_t n = before - rest.size();
        size_t end = lo + 1;
        while (end < hi && texts[end].substr(depth, n) == texts[lo].substr(depth, n)) ++end;
        options.push_back(pool.concat(pool.chars(CharSet({{c, c}})), run(lo, end, depth + n, level + 1)));
        lo = end;
      }
      return pool.either(std::move(options));
    }
  };
  if (texts.empty()) return kNothing;
  return Build{*this, texts}.run(0, texts.size(), 0, 0);
}

bool RegexPool::first_visit(RegexId a) {
  if (stamps_[a] == stamp_) return false;
  stamps_[a] = stamp_;
  return true;
}

void RegexPool::first_sets(RegexId a, std::vector<uint32_t>& sets, int depth) {
  if (depth > kMaxDepth) {
    exhausted_ = true;
    return;
  }
  if (!first_visit(a)) return;
  const Node n = nodes_[a];
  switch (n.kind) {
    case Kind::nothing:
    case Kind::empty: return;
    case Kind::chars: sets.push_back(n.a); return;
    case Kind::concat:
      first_sets(n.a, sets, depth + 1);
      if (nodes_[n.a].nullable) first_sets(n.b, sets, depth + 1);
      return;
    case Kind::either:
    case Kind::both:
      for (uint32_t i = 0; i < n.b; ++i) first_sets(lists_[n.a + i], sets, depth + 1);
      return;
    case Kind::negate:
    case Kind::repeat: first_sets(n.a, sets, depth + 1); return;
  }
}

RegexId RegexPool::derive(RegexId a, uint32_t c, int depth) {
  if (depth > kMaxDepth || fuel_ == 0) {
    exhausted_ = true;
    return kNothing;
  }
  --fuel_;
  if (a == kAll) return kAll;
  const Node n = nodes_[a];
  if (n.kind == Kind::nothing || n.kind == Kind::empty) return kNothing;
  if (n.kind == Kind::chars) return sets_[n.a].contains(c) ? kEmpty : kNothing;
  if (stamps_[a] == stamp_) return derived_[a];
  RegexId out = kNothing;
  switch (n.kind) {
    case Kind::concat: {
      out = concat(derive(n.a, c, depth + 1), n.b);
      if (nodes_[n.a].nullable) out = either({out, derive(n.b, c, depth + 1)});
      break;
    }
    case Kind::either:
    case Kind::both: {
      std::vector<RegexId> parts;
      parts.reserve(n.b);
      for (uint32_t i = 0; i < n.b; ++i) {
        parts.push_back(derive(lists_[n.a + i], c, depth + 1));
        if (n.kind == Kind::both && parts.back() == kNothing) break;
      }
      out = n.kind == Kind::either ? either(std::move(parts)) : both(std::move(parts));
      break;
    }
    case Kind::negate: out = negate(derive(n.a, c, depth + 1)); break;
    default:
      out =
          concat(derive(n.a, c, depth + 1), repeat(n.a, n.b == 0 ? 0 : n.b - 1, n.c == kUnbounded ? kUnbounded : n.c - 1));
  }
  stamps_[a] = stamp_;
  derived_[a] = out;
  return out;
}

const std::vector<RegexPool::Arc>& RegexPool::raw_arcs(RegexId a) {
  if (!raw_arcs_[a].empty()) return raw_arcs_[a];
  std::vector<uint32_t> sets;
  ++stamp_;
  first_sets(a, sets, 0);
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  // Characters in the same sets have the same derivative.
  struct Border {
    uint32_t at, set;
  };
  std::vector<Border> borders;
  for (size_t i = 0; i < sets.size(); ++i)
    for (const CharRange& r : sets_[sets[i]].ranges()) {
      borders.push_back({r.first, uint32_t(i)});
      borders.push_back({r.last + 1, uint32_t(i)});
    }
  std::sort(borders.begin(), borders.end(), [](const Border& x, const Border& y) { return x.at < y.at; });
  std::vector<Arc> out;
  std::vector<uint64_t> in((sets.size() + 63) / 64, 0);
  std::unordered_map<uint64_t, std::vector<std::pair<std::vector<uint64_t>, RegexId>>> known;
  size_t b = 0;
  for (uint32_t at = 0;;) {
    for (; b < borders.size() && borders[b].at == at; ++b) in[borders[b].set / 64] ^= uint64_t(1) << (borders[b].set % 64);
    uint64_t h = 3;
    for (uint64_t word : in) h = mix(h, word);
    auto& bucket = known[h];
    auto same = std::find_if(bucket.begin(), bucket.end(), [&](const auto& e) { return e.first == in; });
    RegexId next = kNothing;
    if (same != bucket.end()) {
      next = same->second;
    } else {
      ++stamp_;
      next = derive(a, at, 0);
      bucket.emplace_back(in, next);
    }
    if (out.empty() || out.back().next != next) out.push_back({at, next});
    if (b == borders.size() || borders[b].at > kMaxChar) break;
    at = borders[b].at;
  }
  raw_arcs_[a] = std::move(out);
  return raw_arcs_[a];
}

bool RegexPool::alive(RegexId a) {
  if (life_[a] != Life::unknown) return life_[a] == Life::alive;
  std::vector<std::pair<RegexId, int>> queue{{a, -1}};  // with where it came from
  std::unordered_map<RegexId, bool> met{{a, true}};
  for (size_t i = 0; i < queue.size(); ++i) {
    if (queue.size() > kMaxAliveStates) {
      exhausted_ = true;
      return false;
    }
    const auto arcs = raw_arcs(queue[i].first);
    for (const Arc& arc : arcs) {
      if (life_[arc.next] == Life::alive) {
        for (int k = int(i); k >= 0; k = queue[size_t(k)].second) life_[queue[size_t(k)].first] = Life::alive;
        return true;
      }
      if (life_[arc.next] == Life::unknown && met.emplace(arc.next, true).second) queue.push_back({arc.next, int(i)});
    }
  }
  if (!exhausted_)
    for (const auto& entry : queue) life_[entry.first] = Life::dead;
  return false;
}

std::span<const RegexPool::Arc> RegexPool::arcs(RegexId a) {
  if (arcs_[a].empty()) {
    const std::vector<Arc> raw = raw_arcs(a);
    std::vector<Arc> out;
    for (Arc arc : raw) {
      if (arc.next != kNothing && !alive(arc.next)) arc.next = kNothing;
      if (out.empty() || out.back().next != arc.next) out.push_back(arc);
    }
    arcs_[a] = std::move(out);
  }
  return arcs_[a];
}

RegexId RegexPool::next(RegexId a, uint32_t c) {
  if (a == kAll) return kAll;
  const auto all = arcs(a);
  auto it = std::upper_bound(all.begin(), all.end(), c, [](uint32_t v, const Arc& arc) { return v < arc.first; });
  return std::prev(it)->next;
}

bool RegexPool::any_next(RegexId a, uint32_t first, uint32_t last) {
  if (a == kAll) return first <= last;
  const auto all = arcs(a);
  auto it = std::upper_bound(all.begin(), all.end(), first, [](uint32_t v, const Arc& arc) { return v < arc.first; });
  for (--it; it != all.end() && it->first <= last; ++it)
    if (it->next != kNothing) return first <= last;
  return false;
}

bool RegexPool::matches(RegexId a, std::string_view utf8) {
  while (!utf8.empty() && a != kNothing) {
    const uint32_t c = next_char(utf8);
    if (c > kMaxChar) return false;
    a = next(a, c);
  }
  return nodes_[a].nullable;
}

bool RegexPool::finite(RegexId a) {
  const Node& n = nodes_[a];
  switch (n.kind) {
    case Kind::nothing:
    case Kind::empty:
    case Kind::chars: return true;
    case Kind::concat: {
      // Texts are long chains to the right.
      RegexId at = a;
      for (; nodes_[at].kind == Kind::concat; at = nodes_[at].b)
        if (nodes_[nodes_[at].a].kind != Kind::chars && !finite(nodes_[at].a)) return false;
      return finite(at);
    }
    case Kind::either: {
      auto items = list(n);
      return std::all_of(items.begin(), items.end(), [&](RegexId i) { return finite(i); });
    }
    case Kind::both: {
      auto items = list(n);
      return std::any_of(items.begin(), items.end(), [&](RegexId i) { return finite(i); });
    }
    case Kind::negate: return false;
    case Kind::repeat: return n.c != kUnbounded && finite(n.a);
  }
  return false;
}

namespace {

uint32_t add_capped(uint32_t a, uint32_t b) { return a > UINT32_MAX - 1 - b ? UINT32_MAX - 1 : a + b; }

}  // namespace

// Every text longer than longest_excluded() belongs to the language.
bool RegexPool::cofinite(RegexId a, int depth) const {
  const Node& n = nodes_[a];
  if (a == kAll || depth > 8) return a == kAll;
  if (n.kind == Kind::repeat) return n.a == kAnyChar && n.c == kUnbounded;
  if (n.kind == Kind::negate) return const_cast<RegexPool*>(this)->finite(n.a);
  if (n.kind != Kind::both) return false;
  auto items = list(n);
  return std::all_of(items.begin(), items.end(), [&](RegexId i) { return cofinite(i, depth + 1); });
}

uint32_t RegexPool::longest_excluded(RegexId a, int depth) const {
  const Node& n = nodes_[a];
  if (depth > kMaxDepth) return UINT32_MAX - 1;
  switch (n.kind) {
    case Kind::chars: return 1;
    case Kind::concat: return add_capped(longest_excluded(n.a, depth + 1), longest_excluded(n.b, depth + 1));
    case Kind::either:
    case Kind::both: {
      uint32_t most = 0;
      for (RegexId i : list(n)) most = std::max(most, longest_excluded(i, depth + 1));
      return most;
    }
    case Kind::negate: return longest_excluded(n.a, depth + 1);
    case Kind::repeat: {
      if (n.c == kUnbounded) return n.b;
      const uint64_t most = uint64_t(n.c) * longest_excluded(n.a, depth + 1);
      return uint32_t(std::min<uint64_t>(most, UINT32_MAX - 1));
    }
    default: return 0;
  }
}

// Every text is the beginning of one in the language.
bool RegexPool::prefix_total(RegexId a, int depth) const {
  const Node& n = nodes_[a];
  if (cofinite(a, 0)) return true;
  if (depth > 8) return false;
  if (n.kind == Kind::concat) return cofinite(n.a, 0) && !nodes_[n.b].boolean;
  if (n.kind != Kind::either) return false;
  auto items = list(n);
  return std::any_of(items.begin(), items.end(), [&](RegexId i) { return prefix_total(i, depth + 1); });
}

uint32_t RegexPool::free_span(RegexId a) {
  const Node& n = nodes_[a];
  if (n.kind == Kind::repeat && n.a == kAnyChar) return n.c;
  if (prefix_total(a, 0)) return kUnbounded;
  if (n.kind != Kind::both) return 0;
  uint32_t max = kUnbounded, excluded = 0;
  for (RegexId i : list(n)) {
    const Node& item = nodes_[i];
    if (item.kind == Kind::repeat && item.a == kAnyChar && item.c != kUnbounded) {
      max = std::min(max, item.c);
      excluded = std::max(excluded, item.b);
    } else if (cofinite(i, 0)) {
      excluded = std::max(excluded, add_capped(longest_excluded(i, 0), 1));
    } else {
      return 0;
    }
  }
  return max >= excluded ? max : 0;
}

uint64_t RegexPool::count(RegexId a, uint64_t cap) {
  if (!alive(a)) return 0;
  struct Counter {
    RegexPool& pool;
    uint64_t cap;
    std::unordered_map<RegexId, uint64_t> known{};
    uint64_t run(RegexId a, int depth) {
      // A state under way is a loop: endless texts.
      auto [it, fresh] = known.emplace(a, cap);
      if (!fresh || depth > kMaxDepth || known.size() > kMaxAliveStates) return it->second;
      uint64_t total = pool.nullable(a) ? 1 : 0;
      const std::vector<Arc> all(pool.arcs(a).begin(), pool.arcs(a).end());
      for (size_t i = 0; i < all.size() && total < cap; ++i) {
        if (all[i].next == kNothing) continue;
        const uint64_t width = (i + 1 < all.size() ? all[i + 1].first : kMaxChar + 1) - all[i].first;
        const uint64_t rest = run(all[i].next, depth + 1);
        total = rest >= cap / width + 1 ? cap : std::min(cap, total + rest * width);
      }
      return known[a] = total;
    }
  };
  return Counter{*this, cap}.run(a, 0);
}

}  // namespace unisono::grammar
