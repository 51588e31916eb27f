// What an answer is made of: texts, constrained parts, and free text between them, one after another, as alternatives or
// repeated. Plain data that serving builds from requests; Grammar::from_shape compiles it.
#pragma once

#include <cstdint>
#include <concepts>
#include <string>
#include <vector>

#include "base/json.h"

namespace unisono::grammar {

struct Shape {
  enum class Kind : uint8_t {
    texts,     // one of `texts`
    schema,    // JSON of `schema`
    regex,     // `source` is the notation of the next three
    gbnf,      //
    lark,      //
    free,      // any text in which none of `texts` occurs and that doesn't begin as the pattern `source` says
    until,     // any text that ends with `source`, before which neither it nor any of `texts` occurs
    sequence,  // all of `parts`
    choice,    // one of `parts`
    many,      // `parts[0]`, any number of times, also never
    listed,    // `parts[0]`, once or more, with `parts[1]` between
  };

  Kind kind = Kind::sequence;
  std::string source{};
  std::vector<std::string> texts{};
  Json schema{};
  std::string where{};  // schema: what it is called in refusals; their `subject` begins with it
  std::vector<Shape> parts{};

  static Shape text(std::string text) { return {.kind = Kind::texts, .texts = {std::move(text)}}; }
  static Shape one_of(std::vector<std::string> texts) { return {.kind = Kind::texts, .texts = std::move(texts)}; }
  static Shape json(Json schema, std::string where = "") {
    return {.kind = Kind::schema, .schema = std::move(schema), .where = std::move(where)};
  }
  static Shape written(Kind notation, std::string source) { return {.kind = notation, .source = std::move(source)}; }
  static Shape free(std::vector<std::string> without, std::string not_beginning = "") {
    return {.kind = Kind::free, .source = std::move(not_beginning), .texts = std::move(without)};
  }
  static Shape until(std::string end, std::vector<std::string> without) {
    return {.kind = Kind::until, .source = std::move(end), .texts = std::move(without)};
  }
  static Shape sequence(std::vector<Shape> parts) { return {.kind = Kind::sequence, .parts = std::move(parts)}; }
  static Shape choice(std::vector<Shape> parts) { return {.kind = Kind::choice, .parts = std::move(parts)}; }
  // Parts one by one are moved; a braced list of them would be copied.
  template <std::same_as<Shape>... Parts>
  static Shape sequence(Shape first, Parts... more) {
    return of(Kind::sequence, std::move(first), std::move(more)...);
  }
  template <std::same_as<Shape>... Parts>
  static Shape choice(Shape first, Parts... more) {
    return of(Kind::choice, std::move(first), std::move(more)...);
  }
  static Shape many(Shape part) { return of(Kind::many, std::move(part)); }
  static Shape listed(Shape part, Shape between) { return of(Kind::listed, std::move(part), std::move(between)); }
  static Shape optional(Shape part) { return choice(sequence({}), std::move(part)); }

  // Equal shapes, and no others, have equal keys.
  std::string key() const;

 private:
  template <class... Parts>
  static Shape of(Kind kind, Parts... parts) {
    Shape out{.kind = kind};
    (out.parts.push_back(std::move(parts)), ...);
    return out;
  }
};

}  // namespace unisono::grammar
