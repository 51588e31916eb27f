// unisono run: one prompt, one answer.
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>

#include "base/json.h"
#include "commands.h"
#include "generate.h"
#include "input.h"
#include "serve/constraints.h"

namespace unisono::apps {

namespace {

struct RunFlags {
  ModelFlags model{};
  SamplingFlags sampling{};
  std::optional<std::string> prompt{}, system{};
  std::string file{};
  std::string schema{}, grammar{}, regex{};  // at most one
  bool any_order = false;
  std::string whitespace = "bounded";
  bool raw = false, json = false;
};

Result<std::string> read_prompt(const RunFlags& flags) {
  if (flags.prompt && !flags.file.empty()) return Error{"Give a prompt or --file, not both.", "PROMPT"};
  auto text = flags.prompt ? *flags.prompt : read_text(flags.file.empty() ? "-" : flags.file);
  if (text.ok() && text->empty())
    return Error{"The prompt is empty: give it as an argument, in a file (--file) or on standard input.", "PROMPT"};
  return text;
}

Result<std::vector<text::TokenId>> prompt_tokens(const RunFlags& flags, const Session& session, const std::string& text) {
  const auto& loaded = *session.loaded;
  if (flags.raw || !loaded.chat_template) {
    if (flags.system) return Error{"--system needs a chat template, and this prompt goes without one.", "--system"};
    return loaded.tokenizer.encode(text, true, flags.raw);
  }
  text::ChatInput input;
  JsonArray messages;
  if (flags.system) messages.push_back(JsonObject{{"role", "system"}, {"content", *flags.system}});
  messages.push_back(JsonObject{{"role", "user"}, {"content", text}});
  input.messages = std::move(messages);
  auto rendered = loaded.chat_template->render(input, std::time(nullptr));
  if (!rendered) return rendered.error();
  return loaded.tokenizer.encode(*rendered);
}

// What the answer must belong to, by the flags.
Result<std::optional<grammar::Matcher>> constraint(const RunFlags& flags, const Session& session) {
  serve::ConstraintCall call;
  call.options.any_order = flags.any_order;
  call.options.whitespace = *serve::whitespace_named(flags.whitespace);
  if (!flags.regex.empty()) {
    call.shape = grammar::Shape::written(grammar::Shape::Kind::regex, flags.regex);
    call.field = "--regex";
  } else if (!flags.schema.empty()) {
    call.field = "--json-schema";
    auto json = read_json(flags.schema);
    if (!json) return json.error();
    call.shape = grammar::Shape::json(*std::move(json));
  } else if (!flags.grammar.empty()) {
    call.field = "--grammar";
    auto text = read_text(flags.grammar);
    if (!text) return text.error();
    call.shape = serve::grammar_shape(*text);
  } else {
    return std::optional<grammar::Matcher>();
  }
  serve::Constraints constraints(session.loaded->tokenizer, session.engine_options.end_tokens);
  auto matcher = constraints.matcher(call);
  if (const auto* error = std::get_if<serve::ApiError>(&matcher))
    return Error{call.field + ": " + error->message, call.field};
  return std::optional(std::get<grammar::Matcher>(std::move(matcher)));
}

void print_json(const RunFlags& flags, const Answer& a) {
  JsonArray tokens;
  for (auto id : a.tokens) tokens.push_back(id);
  const JsonObject out{{"model", flags.model.model},
                       {"text", a.text},
                       {"tokens", std::move(tokens)},
                       {"finish", finish_text(a.finish)},
                       {"stop", a.stop_detail},
                       {"prompt_tokens", a.usage.prompt_tokens},
                       {"completion_tokens", a.usage.completion_tokens},
                       {"prefill_s", a.timings.prefill_s},
                       {"decode_s", a.timings.decode_s}};
  fmt::print("{}\n", to_text(out));
}

int run(const RunFlags& flags) {
  auto prompt = read_prompt(flags);
  if (!prompt) return complain(prompt.error());
  auto session = open_session(flags.model, true);
  if (!session) return complain(session.error());
  auto tokens = prompt_tokens(flags, **session, *prompt);
  if (!tokens) return complain(tokens.error());
  auto matcher = constraint(flags, **session);
  if (!matcher) return complain(matcher.error());
  auto answer = generate(
      **session, std::move(*tokens), flags.sampling,
      [&](const std::string& text) {
        if (flags.json) return;
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
      },
      nullptr, *std::move(matcher));
  if (!answer) return complain(answer.error());
  if (flags.json) {
    print_json(flags, *answer);
  } else {
    fmt::print("\n");
    std::fflush(stdout);  // before what follows on the other stream
    remark("{}\n", speed_line(*answer));
  }
  return 0;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "Answer one prompt");
  add_model_flags(*command, flags->model);
  add_context_flags(*command, flags->model);
  command->add_option("PROMPT", flags->prompt, "The prompt; without it: --file or standard input");
  command->add_option("--file", flags->file, "Read the prompt from this file; -: standard input")->check(kNotEmpty);
  command->add_option("--system", flags->system, "A system message before the prompt");
  command->add_flag("--raw", flags->raw,
                    "Continue the prompt as it stands, without the chat template; it may hold control tokens");
  command->add_flag("--json", flags->json,
                    "Print the answer, its token ids, why it ended and how long it took as one JSON object");
  auto* schema = command->add_option("--json-schema", flags->schema, "The answer is JSON of the schema in this file")
                     ->check(kNotEmpty);
  auto* grammar =
      command->add_option("--grammar", flags->grammar, "The answer belongs to the grammar in this file, GBNF or Lark")
          ->check(kNotEmpty);
  auto* regex =
      command->add_option("--regex", flags->regex, "The answer matches this pattern (ECMA-262)")->check(kNotEmpty);
  command->add_flag("--any-order", flags->any_order, "With --json-schema: keys in any order, not as the schema has them")
      ->needs(schema);
  command->add_option("--whitespace", flags->whitespace, "With --json-schema: what may stand between tokens of JSON")
      ->check(CLI::IsMember({"bounded", "compact", "flexible"}))
      ->needs(schema)
      ->capture_default_str();
  schema->excludes(grammar)->excludes(regex);
  grammar->excludes(regex);
  add_sampling_flags(*command, flags->sampling);
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace unisono::apps
