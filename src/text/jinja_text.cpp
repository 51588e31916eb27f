#include "text/jinja_text.h"

#include <algorithm>

#include "base/check.h"

namespace unisono::text::jinja {

namespace {

constexpr uint64_t kMarkUnits = sizeof(MarkedText::Span);

void check_length(size_t bytes) {
  if (bytes > Budget::kMaxText) fail("A text in the chat template grows beyond 16 MiB.");
}

}  // namespace

void fail(std::string message) { throw Failure{std::move(message)}; }

void Budget::exhausted() { fail("The chat template takes more steps than a rendering may take."); }

size_t Text::Buffer::append(const Buffer& source, size_t begin, size_t end) {
  size_t base = bytes.size();
  auto span = std::partition_point(source.from_user.begin(), source.from_user.end(),
                                   [&](const MarkedText::Span& s) { return s.end <= begin; });
  std::vector<MarkedText::Span> marks(
      span, std::partition_point(span, source.from_user.end(), [&](const MarkedText::Span& s) { return s.begin < end; }));
  bytes.append(source.bytes, begin, end - begin);
  for (const MarkedText::Span& s : marks)
    mark(base + std::max(s.begin, begin) - begin, base + std::min(s.end, end) - begin);
  return marks.size();
}

void Text::Buffer::mark(size_t begin, size_t end) {
  if (!from_user.empty() && from_user.back().end == begin)
    from_user.back().end = end;
  else
    from_user.push_back({begin, end});
}

Text Text::constant(std::string bytes) {
  Text text;
  text.end_ = bytes.size();
  text.buffer_ = std::make_shared<Buffer>(Buffer{std::move(bytes), {}, true});
  return text;
}

std::string_view Text::view() const {
  if (buffer_ == nullptr) return {};
  return std::string_view(buffer_->bytes).substr(begin_, end_ - begin_);
}

Text Text::slice(size_t begin, size_t end) const {
  check(begin <= end && end <= size(), "Text::slice() outside of the text");
  Text part = *this;
  part.begin_ = begin_ + begin;
  part.end_ = begin_ + end;
  return part;
}

std::vector<MarkedText::Span>::const_iterator Text::first_span() const {
  return std::partition_point(buffer_->from_user.begin(), buffer_->from_user.end(),
                              [&](const MarkedText::Span& s) { return s.end <= begin_; });
}

bool Text::any_from_user() const {
  if (empty()) return false;
  auto span = first_span();
  return span != buffer_->from_user.end() && span->begin < end_;
}

MarkedText Text::marked() const {
  MarkedText result;
  result.text = view();
  size_t at = 0;
  for_each_run([&](std::string_view run, bool from_user) {
    if (from_user) result.from_user.push_back({at, at + run.size()});
    at += run.size();
  });
  return result;
}

Text Text::as_markup(bool markup) const {
  Text text = *this;
  text.markup_ = markup;
  return text;
}

Text concat(Budget& budget, const Text& left, const Text& right) {
  if (right.empty()) return left.as_markup(false);
  if (left.empty()) return right.as_markup(false);
  check_length(left.size() + right.size());
  bool grows = !left.buffer_->constant && left.end_ == left.buffer_->bytes.size();
  if (!grows) {
    TextBuilder builder(budget);
    builder.append(left);
    builder.append(right);
    return builder.finish();
  }
  // Other texts may look at this buffer: they see bytes before its end only.
  budget.charge(right.size());
  budget.charge(kMarkUnits * left.buffer_->append(*right.buffer_, right.begin_, right.end_));
  Text whole = left.as_markup(false);
  whole.end_ += right.size();
  return whole;
}

Text::Buffer& TextBuilder::room_for(size_t bytes) {
  budget_.charge(bytes);
  if (buffer_ == nullptr) {
    budget_.charge(Budget::kObject);
    buffer_ = std::make_shared<Text::Buffer>();
  }
  check_length(buffer_->bytes.size() + bytes);
  return *buffer_;
}

void TextBuilder::append(const Text& piece) {
  if (piece.empty()) return;
  budget_.charge(kMarkUnits * room_for(piece.size()).append(*piece.buffer_, piece.begin_, piece.end_));
}

void TextBuilder::append(std::string_view piece, bool from_user) {
  if (piece.empty()) return;
  Text::Buffer& buffer = room_for(piece.size());
  size_t begin = buffer.bytes.size();
  buffer.bytes.append(piece);
  if (from_user) buffer.mark(begin, buffer.bytes.size());
}

Text TextBuilder::finish() {
  Text text;
  if (buffer_ == nullptr) return text;
  text.end_ = buffer_->bytes.size();
  text.buffer_ = std::move(buffer_);
  buffer_ = nullptr;
  return text;
}

}  // namespace unisono::text::jinja
