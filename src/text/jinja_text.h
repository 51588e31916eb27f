// Strings as templates handle them: UTF-8 that knows, byte by byte, what a user wrote. Every operation on strings is made
// of slices and appends, so that the origin of characters survives all of them. Never decides what origin means.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace unisono::text::jinja {

// Why a template can't be parsed or rendered: one sentence. Thrown inside this room; chat_template.cpp makes an Error of
// it.
struct Failure {
  std::string message{};
  bool own_words = false;  // the template's own, by raise_exception
};
[[noreturn]] void fail(std::string message);

// How much one rendering may still do. Templates aren't trusted: whatever takes time or memory is charged before it is
// done.
class Budget {
 public:
  static constexpr uint64_t kUnits = 512'000'000;       // a byte copied is one, which bounds the memory too
  static constexpr uint64_t kNode = 8;                  // a node evaluated: so some 64 million, half a second
  static constexpr uint64_t kElement = 64;              // an element of a list or dict
  static constexpr uint64_t kObject = 128;              // anything that is allocated on its own
  static constexpr size_t kMaxText = size_t(16) << 20;  // bytes in one string, and in the whole output

  void charge(uint64_t units) {
    if (units > left_) exhausted();
    left_ -= units;
  }

 private:
  [[noreturn]] static void exhausted();
  uint64_t left_ = kUnits;
};

// An immutable string: a window on a buffer that only grows. Copies and slices cost nothing, and adding to the end of the
// text that ends its buffer costs what is added, so that building a text piece by piece is linear.
class Text {
 public:
  Text() = default;
  // The template's own, part of the parsed template: shared by renderings on any thread, so never grown.
  static Text constant(std::string bytes);

  std::string_view view() const;
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  Text slice(size_t begin, size_t end) const;  // bytes, half open
  bool any_from_user() const;
  // Calls run(std::string_view, bool from_user) for the maximal parts of one origin, in order.
  template <class Run>
  void for_each_run(Run&& run) const;
  MarkedText marked() const;

  // Set by the filters `safe` and `escape`: then `+` and some methods escape HTML in what is added, as MarkupSafe does.
  bool is_markup() const { return markup_; }
  Text as_markup(bool markup = true) const;

 private:
  friend class TextBuilder;
  friend Text concat(Budget& budget, const Text& left, const Text& right);
  struct Buffer {
    std::string bytes{};
    std::vector<MarkedText::Span> from_user{};  // in order, apart from each other
    bool constant = false;

    // Gives the number of marks that came along. source may be this buffer.
    size_t append(const Buffer& source, size_t begin, size_t end);
    void mark(size_t begin, size_t end);  // end of bytes only
  };
  std::vector<MarkedText::Span>::const_iterator first_span() const;

  std::shared_ptr<Buffer> buffer_{};
  size_t begin_ = 0, end_ = 0;
  bool markup_ = false;
};

// left and right, one after the other; plain, whatever they were.
Text concat(Budget& budget, const Text& left, const Text& right);

// Builds a text from pieces. Refused: more than Budget::kMaxText bytes.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(budget) {}
  void append(const Text& piece);
  void append(std::string_view piece, bool from_user = false);  // piece isn't part of this builder
  size_t size() const { return buffer_ == nullptr ? 0 : buffer_->bytes.size(); }
  Text finish();  // leaves the builder empty

 private:
  Text::Buffer& room_for(size_t bytes);
  Budget& budget_;
  std::shared_ptr<Text::Buffer> buffer_{};
};

template <class Run>
void Text::for_each_run(Run&& run) const {
  if (empty()) return;
  std::string_view bytes = buffer_->bytes;
  size_t at = begin_;
  for (auto span = first_span(); span != buffer_->from_user.end() && span->begin < end_; ++span) {
    size_t begin = std::max(span->begin, begin_), end = std::min(span->end, end_);
    if (at < begin) run(bytes.substr(at, begin - at), false);
    run(bytes.substr(begin, end - begin), true);
    at = end;
  }
  if (at < end_) run(bytes.substr(at, end_ - at), false);
}

}  // namespace unisono::text::jinja
