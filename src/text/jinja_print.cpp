#include "text/jinja_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja_unicode.h"

namespace unisono::text::jinja {

namespace {

// Walks through a value while printing it. DAGs are walked as trees, as Python does; the budget ends that.
class Printer {
 public:
  Printer(TextBuilder& out, Budget& budget) : out_(out), budget_(budget) {}
  void repr(const Value& value, bool in_user);

 private:
  void text(const Text& text);
  void sequence(const Sequence& sequence);
  void dict(const Dict& dict);

  TextBuilder& out_;
  Budget& budget_;
};

void append_escape(std::string& out, char32_t c) {
  if (c < 0x100)
    out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
  else if (c < 0x10000)
    out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  else
    out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
}

void append_repr(std::string& out, char32_t c, char quote) {
  if (c == static_cast<char32_t>(quote) || c == '\\') {
    out.push_back('\\');
    out.push_back(static_cast<char>(c));
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (is_printable(c)) {
    append_utf8(out, c);
  } else {
    append_escape(out, c);
  }
}

void Printer::text(const Text& text) {
  std::string_view view = text.view();
  bool single = view.find('\'') != std::string_view::npos, twofold = view.find('"') != std::string_view::npos;
  char quote = single && !twofold ? '"' : '\'';
  bool user = text.any_from_user();
  if (text.is_markup()) out_.append("Markup(", user);
  out_.append(std::string_view(&quote, 1), user);
  std::string piece;
  text.for_each_run([&](std::string_view run, bool from_user) {
    piece.clear();
    for (size_t i = 0; i < run.size();) {
      CodePoint c = code_point_at(run, i);
      append_repr(piece, c.value, quote);
      i += c.length;
    }
    out_.append(piece, from_user);
  });
  out_.append(std::string_view(&quote, 1), user);
  if (text.is_markup()) out_.append(")", user);
}

void Printer::sequence(const Sequence& s) {
  bool user = s.from_user;
  switch (s.kind) {
    case SequenceKind::range:
      out_.append("range(" + to_string(s.start) + ", " + to_string(s.stop));
      if (s.step != 1) out_.append(", " + to_string(s.step));
      out_.append(")");
      return;
    case SequenceKind::iterator: fail("An iterator has no text that could be printed; '|list' makes a list of it.");
    case SequenceKind::keys: out_.append("dict_keys("); break;
    case SequenceKind::values: out_.append("dict_values("); break;
    case SequenceKind::items: out_.append("dict_items("); break;
    default: break;
  }
  bool tuple = s.is_tuple();
  out_.append(tuple ? "(" : "[", user);
  for (size_t i = 0; i < s.items.size(); ++i) {
    if (i > 0) out_.append(", ", user);
    repr(s.items[i], user);
  }
  if (tuple && s.items.size() == 1) out_.append(",", user);
  out_.append(tuple ? ")" : "]", user);
  if (s.is_view()) out_.append(")");
}

void Printer::dict(const Dict& dict) {
  bool user = dict.from_user;
  out_.append("{", user);
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!first) out_.append(", ", user);
    first = false;
    repr(key, user);
    out_.append(": ", user);
    repr(value, user);
  }
  out_.append("}", user);
}

void Printer::repr(const Value& value, bool in_user) {
  budget_.charge(Budget::kNode);
  if (const Text* t = value.text()) return text(*t);
  if (const Sequence* s = value.sequence()) return sequence(*s);
  if (const Dict* d = value.dict()) return dict(*d);
  if (const Int* i = value.get<Int>()) return out_.append(to_string(*i), in_user);
  if (const double* d = value.get<double>()) return out_.append(to_string(*d), in_user);
  if (const bool* b = value.get<bool>()) return out_.append(*b ? "True" : "False", in_user);
  if (value.is<None>()) return out_.append("None", in_user);
  if (const Object* object = value.object()) return out_.append(object->print());
  out_.append("Undefined");
}

class JsonPrinter {
 public:
  JsonPrinter(TextBuilder& out, Budget& budget, const JsonStyle& style) : out_(out), budget_(budget), style_(style) {}
  void value(const Value& value, bool in_user);

 private:
  void text(const Text& text);
  void key(const Value& key, bool in_user);
  void sequence(const Sequence& sequence);
  void dict(const Dict& dict);
  void line(bool in_user);
  void separator(const Text& text, bool in_user);
  std::string scalar(const Value& value) const;

  TextBuilder& out_;
  Budget& budget_;
  const JsonStyle& style_;
  int level_ = 0;
};

void append_json_escape(std::string& out, char32_t c, bool ensure_ascii) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (c < 0x20) {
    out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  } else if (c < 0x80 || !ensure_ascii) {
    append_utf8(out, c);
  } else if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  } else {
    uint32_t offset = static_cast<uint32_t>(c) - 0x10000;
    out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
  }
}

void JsonPrinter::text(const Text& text) {
  bool user = text.any_from_user();
  out_.append("\"", user);
  std::string piece;
  text.for_each_run([&](std::string_view run, bool from_user) {
    piece.clear();
    for (size_t i = 0; i < run.size();) {
      CodePoint c = code_point_at(run, i);
      append_json_escape(piece, c.value, style_.ensure_ascii);
      i += c.length;
    }
    out_.append(piece, from_user);
  });
  out_.append("\"", user);
}

// None, bools and numbers; empty for others.
std::string JsonPrinter::scalar(const Value& value) const {
  if (value.is<None>()) return "null";
  if (const bool* b = value.get<bool>()) return *b ? "true" : "false";
  if (const Int* i = value.get<Int>()) return to_string(*i);
  const double* d = value.get<double>();
  if (d == nullptr) return {};
  if (std::isnan(*d)) return "NaN";
  return std::isinf(*d) ? (*d > 0 ? "Infinity" : "-Infinity") : to_string(*d);
}

void JsonPrinter::key(const Value& key, bool in_user) {
  if (const Text* t = key.text()) return text(*t);
  std::string plain = scalar(key);
  if (plain.empty()) fail("keys of JSON must be str, int, float, bool or None, not " + std::string(type_name(key)));
  out_.append("\"" + plain + "\"", in_user);
}

void JsonPrinter::line(bool in_user) {
  if (!style_.indent) return;
  out_.append("\n", in_user);
  for (int i = 0; i < level_; ++i) separator(*style_.indent, in_user);
}

void JsonPrinter::separator(const Text& text, bool in_user) {
  if (in_user)
    out_.append(text.view(), true);
  else
    out_.append(text);
}

void JsonPrinter::sequence(const Sequence& s) {
  bool user = s.from_user;
  if (s.items.empty()) return out_.append("[]", user);
  out_.append("[", user);
  ++level_;
  for (size_t i = 0; i < s.items.size(); ++i) {
    if (i > 0) separator(style_.item_separator, user);
    line(user);
    value(s.items[i], user);
  }
  --level_;
  line(user);
  out_.append("]", user);
}

void JsonPrinter::dict(const Dict& dict) {
  bool user = dict.from_user;
  if (dict.entries.empty()) return out_.append("{}", user);
  std::vector<const std::pair<Value, Value>*> entries;
  budget_.charge(dict.entries.size() * sizeof(void*));
  for (const auto& entry : dict.entries) entries.push_back(&entry);
  if (style_.sort_keys)
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const auto* a, const auto* b) { return less(budget_, a->first, b->first); });
  out_.append("{", user);
  ++level_;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) separator(style_.item_separator, user);
    line(user);
    key(entries[i]->first, user);
    separator(style_.key_separator, user);
    value(entries[i]->second, user);
  }
  --level_;
  line(user);
  out_.append("}", user);
}

void JsonPrinter::value(const Value& value, bool in_user) {
  budget_.charge(Budget::kNode);
  if (const Text* t = value.text()) return text(*t);
  const Sequence* s = value.sequence();
  if (s != nullptr && (s->kind == SequenceKind::list || s->is_tuple())) return sequence(*s);
  if (const Dict* d = value.dict()) return dict(*d);
  std::string plain = scalar(value);
  if (plain.empty()) fail("a value of type '" + std::string(type_name(value)) + "' can't be written as JSON");
  out_.append(plain, in_user);
}

}  // namespace

void print_to(TextBuilder& out, Budget& budget, const Value& value) {
  if (const Text* text = value.text()) return out.append(*text);
  if (value.is<Undefined>()) return;
  Printer(out, budget).repr(value, false);
}

void repr_to(TextBuilder& out, Budget& budget, const Value& value) { Printer(out, budget).repr(value, false); }

std::string to_string(Int value) { return fmt::format("{}", value); }

std::string to_string(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(result.ptr - buffer));
  size_t mark = text.find('e');
  int exponent = std::stoi(std::string(text.substr(mark + 1)));
  if (exponent < -4 || exponent >= 16) return std::string(text);
  result = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string plain(buffer, result.ptr);
  return plain.find('.') == std::string::npos ? plain + ".0" : plain;
}

Value to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  TextBuilder builder(budget);
  JsonPrinter(builder, budget, style).value(value, false);
  return builder.finish();
}

}  // namespace unisono::text::jinja
