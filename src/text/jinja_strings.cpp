#include "text/jinja_strings.h"

#include <string.h>

#include <algorithm>

#include "text/jinja_unicode.h"

namespace unisono::text::jinja {

namespace {

class Pieces {
 public:
  Pieces(Budget& budget, const Text& text) : budget_(budget), text_(text) {}
  void add(size_t begin, size_t end) {
    budget_.charge(Budget::kElement);
    pieces_.push_back(text_.slice(begin, end));
  }
  size_t size() const { return pieces_.size(); }
  std::vector<Value> take(bool reversed = false) {
    if (reversed) std::reverse(pieces_.begin(), pieces_.end());
    return std::move(pieces_);
  }

 private:
  Budget& budget_;
  const Text& text_;
  std::vector<Value> pieces_{};
};

bool may_cut(const Pieces& pieces, Int limit) { return limit < 0 || static_cast<Int>(pieces.size()) < limit; }

std::vector<Value> split_at_space(Budget& budget, const Text& text, Int limit) {
  Pieces pieces(budget, text);
  std::string_view view = text.view();
  size_t at = view.size() - strip_left(view).size();
  while (at < view.size()) {
    size_t end = at;
    if (may_cut(pieces, limit)) {
      while (end < view.size()) {
        CodePoint c = code_point_at(view, end);
        if (is_space(c.value)) break;
        end += c.length;
      }
    } else {
      end = view.size();
    }
    pieces.add(at, end);
    at = view.size() - strip_left(view.substr(end)).size();
  }
  return pieces.take();
}

std::vector<Value> split_at_space_from_right(Budget& budget, const Text& text, Int limit) {
  Pieces pieces(budget, text);
  std::string_view view = text.view();
  size_t end = strip_right(view).size();
  while (end > 0) {
    size_t begin = may_cut(pieces, limit) ? end : 0;
    while (begin > 0) {
      size_t before = code_point_before(view, begin);
      if (is_space(code_point_at(view, before).value)) break;
      begin = before;
    }
    pieces.add(begin, end);
    end = strip_right(view.substr(0, begin)).size();
  }
  return pieces.take(true);
}

}  // namespace

size_t find_first(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size() || needle.size() > text.size() - from) return kNotFound;
  if (needle.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  return found == nullptr ? kNotFound : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t find_last(std::string_view text, std::string_view needle) {
  if (needle.size() > text.size()) return kNotFound;
  std::string backwards(text.rbegin(), text.rend()), wanted(needle.rbegin(), needle.rend());
  size_t found = find_first(backwards, wanted);
  return found == kNotFound ? kNotFound : text.size() - found - needle.size();
}

Text strip(Budget& budget, const Text& text, std::optional<std::string_view> set, Side side) {
  budget.charge(text.size() / 8 + (set ? set->size() * 8 : 0));
  std::u32string stripped;
  for (size_t i = 0; set && i < set->size();) {
    CodePoint c = code_point_at(*set, i);
    stripped.push_back(c.value);
    i += c.length;
  }
  std::sort(stripped.begin(), stripped.end());
  auto goes = [&](char32_t c) { return set ? std::binary_search(stripped.begin(), stripped.end(), c) : is_space(c); };
  std::string_view view = text.view();
  size_t begin = 0, end = view.size();
  while (side != Side::right && begin < end) {
    CodePoint c = code_point_at(view, begin);
    if (!goes(c.value)) break;
    begin += c.length;
  }
  while (side != Side::left && end > begin) {
    size_t last = code_point_before(view, end);
    if (last < begin || !goes(code_point_at(view, last).value)) break;
    end = last;
  }
  return text.slice(begin, end);
}

std::vector<Value> split(Budget& budget, const Text& text, std::optional<std::string_view> separator, Int limit) {
  budget.charge(text.size() / 8);
  if (!separator) return split_at_space(budget, text, limit);
  if (separator->empty()) fail("empty separator");
  Pieces pieces(budget, text);
  size_t at = 0;
  while (may_cut(pieces, limit)) {
    size_t found = find_first(text.view(), *separator, at);
    if (found == kNotFound) break;
    pieces.add(at, found);
    at = found + separator->size();
  }
  pieces.add(at, text.size());
  return pieces.take();
}

std::vector<Value> split_from_right(Budget& budget, const Text& text, std::optional<std::string_view> separator,
                                    Int limit) {
  budget.charge(text.size() / 8);
  if (!separator) return split_at_space_from_right(budget, text, limit);
  if (separator->empty()) fail("empty separator");
  // Found in the reversed text, so that the search stays linear.
  std::string_view view = text.view();
  budget.charge(text.size() + separator->size());
  std::string backwards(view.rbegin(), view.rend()), wanted(separator->rbegin(), separator->rend());
  Pieces pieces(budget, text);
  size_t at = 0;
  while (may_cut(pieces, limit)) {
    size_t found = find_first(backwards, wanted, at);
    if (found == kNotFound) break;
    pieces.add(view.size() - found, view.size() - at);
    at = found + wanted.size();
  }
  pieces.add(0, view.size() - at);
  return pieces.take(true);
}

std::vector<Value> split_lines(Budget& budget, const Text& text, bool keep_ends) {
  budget.charge(text.size() / 8);
  Pieces pieces(budget, text);
  std::string_view view = text.view();
  size_t begin = 0;
  for (size_t at = 0; at < view.size();) {
    CodePoint c = code_point_at(view, at);
    size_t next = at + c.length;
    if (is_line_end(c.value)) {
      if (c.value == '\r' && next < view.size() && view[next] == '\n') ++next;
      pieces.add(begin, keep_ends ? next : at);
      begin = next;
    }
    at = next;
  }
  if (begin < view.size()) pieces.add(begin, view.size());
  return pieces.take();
}

Text replace(Budget& budget, const Text& text, std::string_view what, const Text& by, Int limit) {
  budget.charge(text.size() / 8);
  TextBuilder builder(budget);
  std::string_view view = text.view();
  size_t at = 0;
  for (Int n = 0; limit < 0 || n < limit; ++n) {
    if (what.empty()) {  // before every character, and at the end
      builder.append(by);
      budget.charge(Budget::kNode);
      if (at >= view.size()) break;
      size_t next = at + code_point_at(view, at).length;
      builder.append(text.slice(at, next));
      at = next;
      continue;
    }
    size_t found = find_first(view, what, at);
    if (found == kNotFound) break;
    builder.append(text.slice(at, found));
    builder.append(by);
    budget.charge(Budget::kNode);
    at = found + what.size();
  }
  builder.append(text.slice(at, view.size()));
  return builder.finish().as_markup(text.is_markup());
}

Text join(Budget& budget, const Text& separator, const std::vector<Text>& parts) {
  TextBuilder builder(budget);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) builder.append(separator);
    builder.append(parts[i]);
  }
  return builder.finish().as_markup(separator.is_markup());
}

Text padded(Budget& budget, const Text& text, Int width, const Text& fill, Side text_side) {
  budget.charge(text.size() / 8 + fill.size());
  if (count_code_points(fill.view()) != 1) fail("The fill character must be exactly one character long");
  Int length = static_cast<Int>(count_code_points(text.view()));
  if (width <= length) return text;
  if (width > static_cast<Int>(Budget::kMaxText)) fail("A text in the chat template grows beyond 16 MiB.");
  Int missing = width - length;
  Int before = text_side == Side::left ? 0 : text_side == Side::right ? missing : missing / 2 + (missing & width & 1);
  TextBuilder builder(budget);
  for (Int i = 0; i < before; ++i) builder.append(fill);
  builder.append(text);
  for (Int i = before; i < missing; ++i) builder.append(fill);
  return builder.finish().as_markup(text.is_markup());
}

}  // namespace unisono::text::jinja
