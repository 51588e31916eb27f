#include "serve/structural_tag.h"

namespace unisono::serve {

namespace {

using grammar::Shape;

constexpr int kMaxNesting = 32;
constexpr size_t kMaxTags = 256;  // and triggers, of one list

// A text between tags: where free text stands before it, that ends with it.
Shape ending(Shape content, bool free, std::vector<std::string> excludes, std::string end) {
  if (free && !end.empty()) return Shape::until(std::move(end), std::move(excludes));
  if (free) return Shape::free(std::move(excludes));
  if (end.empty()) return content;
  return Shape::sequence(std::move(content), Shape::text(std::move(end)));
}

struct Tag {
  std::string begin{};
  Shape rest{};  // content and end
};

class Reader {
 public:
  explicit Reader(Fields& top) : top_(top) {}

  Shape structures() {
    std::vector<Tag> tags;
    const JsonArray* structures = top_.array("structures");
    if (structures) top_.each_element("structures", *structures, [&](Fields& one) {
      const auto begin = one.needed_string("begin");
      Json schema = JsonObject();
      for (const char* name : {"schema", "structure"})
        if (const Json* given = one.any(name)) schema = *given;
      tags.push_back({begin.value_or(""), ending(Shape::json(std::move(schema), one.full_name("schema")), false, {},
                                                 one.string("end").value_or(""))});
    });
    return triggered(tags, texts(top_, "triggers"), false, false, {}, top_);
  }

  Shape format(const Json& value, const std::string& path, int depth) {
    if (depth > kMaxNesting || !value.is_object()) {
      top_.fail({.message = "'" + path + "' must be an object that has a type, and formats can't be nested deeper than 32.",
                 .param = path,
                 .code = "invalid_value"});
      return {};
    }
    Fields fields(value.get_object(), path + ".");
    Shape out = by_type(fields, depth);
    if (const auto error = fields.finish()) top_.fail(*error);
    return out;
  }

 private:
  static std::vector<std::string> texts(Fields& fields, std::string_view name) {
    std::vector<std::string> out;
    const JsonArray* array = fields.array(name);
    for (size_t i = 0; array && i < array->size(); i++) {
      if (!(*array)[i].is_string() || (*array)[i].get_string().empty()) {
        fields.fail(name, "invalid_type",
                    "'" + fields.full_name(name) + "' must be an array of strings that aren't empty.");
        return {};
      }
      out.emplace_back((*array)[i].get_string());
    }
    return out;
  }

  std::vector<Shape> formats(Fields& fields, std::string_view name, int depth) {
    std::vector<Shape> out;
    fields.required(name);
    const JsonArray* array = fields.array(name);
    for (size_t i = 0; array && i < array->size() && !top_.failed(); i++)
      out.push_back(format((*array)[i], fields.full_name(name) + "[" + std::to_string(i) + "]", depth + 1));
    return out;
  }

  Shape one_format(Fields& fields, std::string_view name, int depth) {
    const Json* value = fields.required(name);
    return value ? format(*value, fields.full_name(name), depth + 1) : Shape{};
  }

  Shape by_type(Fields& fields, int depth) {
    const std::string type = fields.needed_string("type").value_or("");
    if (type == "const_string") return Shape::text(fields.needed_string("value").value_or(""));
    if (type == "json_schema") {
      if (const auto style = fields.string("style"); style && *style != "json")
        fields.fail("style", "unsupported_value", "'" + fields.full_name("style") + "' can only be json.");
      const Json* schema = fields.required("json_schema");
      return schema ? Shape::json(*schema, fields.full_name("json_schema")) : Shape{};
    }
    if (type == "regex") return Shape::written(Shape::Kind::regex, fields.needed_string("pattern").value_or(""));
    if (type == "grammar") return Shape::written(Shape::Kind::gbnf, fields.needed_string("grammar").value_or(""));
    if (type == "any_text") return Shape::free(texts(fields, "excludes"));
    if (type == "sequence") return Shape::sequence(formats(fields, "elements", depth));
    if (type == "or") return Shape::choice(formats(fields, "elements", depth));
    if (type == "optional") return Shape::optional(one_format(fields, "content", depth));
    if (type == "star") return Shape::many(one_format(fields, "content", depth));
    if (type == "plus") return Shape::listed(one_format(fields, "content", depth), Shape::sequence({}));
    if (type == "tag") {
      Tag tag = read_tag(fields, depth);
      if (tag.begin.empty()) return std::move(tag.rest);
      return Shape::sequence(Shape::text(tag.begin), std::move(tag.rest));
    }
    if (type == "triggered_tags") {
      const std::vector<Tag> found = tags(fields, depth);
      const bool at_least_one = fields.boolean("at_least_one").value_or(false);
      const bool stop_after_first = fields.boolean("stop_after_first").value_or(false);
      return triggered(found, texts(fields, "triggers"), at_least_one, stop_after_first, texts(fields, "excludes"), fields);
    }
    if (type == "tags_with_separator") return separated(fields, depth);
    fields.fail(
        "type", "unsupported_value",
        "'" + fields.full_name("type") +
            "' must be const_string, json_schema, regex, grammar, any_text, sequence, or, optional, star, plus, tag, "
            "triggered_tags or tags_with_separator, not " +
            shown(Json(type)) + ".");
    return {};
  }

  Tag read_tag(Fields& fields, int depth) {
    std::string begin = fields.needed_string("begin").value_or(""), end;
    if (const Json* given = fields.any("end"); given && given->is_array()) {
      fields.fail("end", "unsupported_value", "'" + fields.full_name("end") + "' must be one string.");
    } else {
      end = fields.string("end").value_or("");
    }
    Shape content = one_format(fields, "content", depth);
    const bool free = content.kind == Shape::Kind::free;
    std::vector<std::string> excludes = free ? content.texts : std::vector<std::string>();
    return {std::move(begin), ending(std::move(content), free, std::move(excludes), std::move(end))};
  }

  std::vector<Tag> tags(Fields& fields, int depth) {
    std::vector<Tag> out;
    fields.required("tags");
    if (const JsonArray* array = fields.array("tags"))
      fields.each_element("tags", *array, [&](Fields& one) {
        if (const auto type = one.string("type"); type && *type != "tag")
          one.fail("type", "invalid_value", "'" + one.full_name("type") + "' can only be tag.");
        out.push_back(read_tag(one, depth + 1));
      });
    return out;
  }

  // Free text in which each trigger must be followed by the rest of one of its tags.
  static Shape triggered(const std::vector<Tag>& tags, const std::vector<std::string>& triggers, bool at_least_one,
                         bool stop_after_first, const std::vector<std::string>& excludes, Fields& fields) {
    if (fields.failed()) return {};
    if (triggers.empty() || tags.empty()) {
      fields.fail("triggers", "invalid_value", "A structural tag needs at least one trigger and one tag.");
      return {};
    }
    if (triggers.size() > kMaxTags || tags.size() > kMaxTags) {
      fields.fail("triggers", "invalid_value", "A structural tag can have at most 256 triggers and 256 tags.");
      return {};
    }
    // Else a tag might belong to both.
    for (size_t i = 0; i < triggers.size(); i++)
      for (size_t j = 0; j < triggers.size(); j++)
        if (i != j && triggers[i].starts_with(triggers[j])) {
          fields.fail("triggers", "invalid_value",
                      "The trigger " + shown(Json(triggers[i])) + " begins with another one, " + shown(Json(triggers[j])) + ": give only one of them.");
          return {};
        }
    std::vector<std::string> kept_out = triggers;
    kept_out.insert(kept_out.end(), excludes.begin(), excludes.end());
    std::vector<Shape> ways;
    size_t used = 0;
    for (const std::string& trigger : triggers) {
      std::vector<Shape> rests;
      for (const Tag& tag : tags) {
        if (!tag.begin.starts_with(trigger)) continue;
        used++;
        const std::string begin = tag.begin.substr(trigger.size());
        rests.push_back(begin.empty() ? tag.rest : Shape::sequence(Shape::text(begin), tag.rest));
      }
      if (rests.empty()) {
        fields.fail("triggers", "invalid_value", "No tag begins with the trigger " + shown(Json(trigger)) + ".");
        return {};
      }
      ways.push_back(Shape::sequence(Shape::until(trigger, kept_out), Shape::choice(std::move(rests))));
    }
    if (used < tags.size()) {
      fields.fail("triggers", "invalid_value", "Every tag must begin with one of the triggers.");
      return {};
    }
    const Shape tag = Shape::choice(std::move(ways)), rest = Shape::free(kept_out);
    if (stop_after_first) return at_least_one ? tag : Shape::choice(rest, tag);
    if (at_least_one) return Shape::sequence(Shape::listed(tag, Shape::sequence({})), rest);
    return Shape::sequence(Shape::many(tag), rest);
  }

  Shape separated(Fields& fields, int depth) {
    std::vector<Shape> ways;
    for (Tag& tag : tags(fields, depth)) ways.push_back(Shape::sequence(Shape::text(tag.begin), std::move(tag.rest)));
    const std::string separator = fields.string("separator").value_or("");
    const bool at_least_one = fields.boolean("at_least_one").value_or(false);
    const bool stop_after_first = fields.boolean("stop_after_first").value_or(false);
    if (ways.empty()) {
      fields.fail("tags", "invalid_value", "'" + fields.full_name("tags") + "' must have at least one tag.");
      return {};
    }
    const Shape tag = Shape::choice(std::move(ways));
    const Shape between = separator.empty() ? Shape::sequence({}) : Shape::text(separator);
    Shape some = stop_after_first ? tag : Shape::listed(tag, between);
    return at_least_one ? some : Shape::optional(std::move(some));
  }

  Fields& top_;
};

}  // namespace

Shape read_structural_tag(Fields& fields) {
  Reader reader(fields);
  const Json* format = fields.any("format");
  if (!format && !fields.any("structures")) {
    fields.required("format");
    return {};
  }
  return format ? reader.format(*format, fields.full_name("format"), 0) : reader.structures();
}

}  // namespace unisono::serve
