#include "serve/argument_reader.h"

#include "serve/answer_parser.h"
#include "serve/argument_shapes.h"

namespace unisono::serve {

namespace {

// As the inside of a JSON string.
std::string escaped(std::string_view text) {
  const std::string quoted = to_text(Json(text));
  return quoted.substr(1, quoted.size() - 2);
}

// JSON as it stands, to the end of the first value.
class JsonArguments final : public ArgumentReader {
 public:
  bool read(std::string_view& rest, std::string& json) override {
    size_t at = 0;
    bool done = false;
    while (at < rest.size() && !done) {
      const char c = rest[at++];
      if (escape_) {
        escape_ = false;
      } else if (in_string_) {
        escape_ = c == '\\';
        in_string_ = c != '"';
      } else if (c == '"') {
        in_string_ = true;
      } else if (c == '{' || c == '[') {
        depth_++;
      } else if (c == '}' || c == ']') {
        done = --depth_ == 0;
      }
    }
    json += rest.substr(0, at);
    rest.remove_prefix(at);
    return done;
  }

 private:
  int depth_ = 0;
  bool in_string_ = false, escape_ = false;
};

// {key:<q>text<q>,other:[1,2]}
class BareArguments final : public ArgumentReader {
 public:
  explicit BareArguments(std::string_view quote) : quote_(quote) {}

  bool read(std::string_view& rest, std::string& json) override {
    while (!rest.empty()) {
      if (in_string_) {
        const auto [text, ended] = take_until(rest, quote_, false);
        json += escaped(text);
        if (!ended) return false;
        json += '"';
        in_string_ = false;
      } else if (in_key_ && rest.front() != '}') {
        const size_t colon = rest.find(':');
        if (colon == rest.npos) return false;
        json += "\"" + escaped(rest.substr(0, colon)) + "\":";
        rest.remove_prefix(colon + 1);
        in_key_ = false;
      } else if (rest.starts_with(quote_)) {
        json += '"';
        rest.remove_prefix(quote_.size());
        in_string_ = true;
      } else if (quote_.starts_with(rest)) {
        return false;
      } else {
        json += rest.front();
        const bool done = mark(rest.front());
        rest.remove_prefix(1);
        if (done) return true;
      }
    }
    return false;
  }

 private:
  // Outside of strings and keys. True: the outermost object is closed.
  bool mark(char c) {
    const bool closes = (c == '}' || c == ']') && !open_.empty();
    if (c == '{' || c == '[') open_ += c;
    if (closes) open_.pop_back();
    const bool in_object = !open_.empty() && open_.back() == '{';
    in_key_ = in_object && (c == '{' || c == ',');
    return closes && open_.empty();
  }

  std::string_view quote_;
  std::string open_{};
  bool in_string_ = false, in_key_ = false;
};

// <parameter=KEY>\nVALUE\n</parameter>\n ..., up to what follows the arguments, which is left.
class ParameterArguments final : public ArgumentReader {
 public:
  ParameterArguments(const ToolSyntax& syntax, const JsonObject& schema) : syntax_(syntax), schema_(schema) {}

  bool read(std::string_view& rest, std::string& json) override {
    if (keys_ == 0 && !begun_) json += "{";
    begun_ = true;
    for (;;) {
      if (in_value_) {
        const auto [text, ended] = take_until(rest, syntax_.parameter_end, false);
        json += bare_ ? escaped(text) : std::string(text);
        if (!ended) return false;
        if (bare_) json += '"';
        in_value_ = false;
      } else if (rest.starts_with(syntax_.parameter_begin)) {
        const size_t name = syntax_.parameter_begin.size();
        const size_t end = rest.find(syntax_.parameter_middle, name);
        if (end == rest.npos) return false;
        const std::string key(rest.substr(name, end - name));
        rest.remove_prefix(end + syntax_.parameter_middle.size());
        bare_ = is_bare_text(schema_, key);
        json += std::string(keys_++ > 0 ? "," : "") + "\"" + escaped(key) + "\":" + (bare_ ? "\"" : "");
        in_value_ = true;
      } else if (syntax_.parameter_begin.starts_with(rest)) {
        return false;
      } else {
        json += "}";
        return true;
      }
    }
  }

 private:
  const ToolSyntax& syntax_;
  const JsonObject& schema_;
  int keys_ = 0;
  bool begun_ = false, in_value_ = false, bare_ = false;
};

}  // namespace

std::unique_ptr<ArgumentReader> make_argument_reader(const ToolSyntax& syntax, const Tool& tool) {
  switch (syntax.values) {
    case ToolSyntax::Values::bare: return std::make_unique<BareArguments>(syntax.quote);
    case ToolSyntax::Values::parameters: return std::make_unique<ParameterArguments>(syntax, tool.parameters);
    default: return std::make_unique<JsonArguments>();
  }
}

}  // namespace unisono::serve
