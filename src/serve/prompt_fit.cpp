#include "serve/prompt_fit.h"

#include <algorithm>

#include "serve/chat_prompt.h"

namespace unisono::serve {

namespace {

// Tokens a prompt may have before it is cut, and those that are left of it then. An answer gets the tokens it asks for, up
// to half of the context; one that asks for none is happy with one, but when there is something to cut it gets a quarter.
struct Room {
  int until_cut = 0, after_cut = 0;
};
Room room_for(const GenerationCall& call, int context) {
  const auto answer = [context](int wanted) { return std::clamp(wanted, 1, std::max(context / 2, 1)); };
  return {.until_cut = context - answer(call.max_tokens.value_or(1)),
          .after_cut = context - answer(call.max_tokens.value_or(context / 4))};
}

std::optional<ApiError> check_length(const ServeContext& context, size_t prompt_size, const std::string& field) {
  const auto room = static_cast<size_t>(context.model.max_context);
  if (prompt_size < room) return {};
  return ApiError{.message = "The prompt has " + std::to_string(prompt_size) + " tokens, but the context holds " +
                             std::to_string(room) + ", the answer included; shorten the prompt.",
                  .param = field,
                  .code = "context_length_exceeded"};
}

void keep_last(Tokens& tokens, int keep, bool keep_first) {
  const auto n = static_cast<size_t>(std::max(keep, 1));
  if (tokens.size() <= n) return;
  const auto first = keep_first ? 1 : 0;
  tokens.erase(tokens.begin() + first, tokens.end() - (static_cast<int64_t>(n) - first));
}

std::string_view role_of(const Json& message) {
  const Json* role = message.get_object().if_contains("role");
  return role && role->is_string() ? std::string_view(role->get_string()) : std::string_view();
}

// The messages of the system at the beginning, and all from message `start` on.
text::ChatInput from_turn(const text::ChatInput& input, size_t n_system, size_t start) {
  text::ChatInput shorter = input;
  JsonArray& messages = shorter.messages.get_array();
  messages.erase(messages.begin() + static_cast<int64_t>(n_system), messages.begin() + static_cast<int64_t>(start));
  return shorter;
}

// The prompt of as many of the last turns as have at most `room` tokens together, at least of the last one.
Parsed<Tokens> drop_turns(const ServeContext& context, const text::ChatInput& input, size_t room) {
  const JsonArray& messages = input.messages.get_array();
  size_t n_system = 0;
  while (n_system < messages.size() &&
         (role_of(messages[n_system]) == "system" || role_of(messages[n_system]) == "developer"))
    n_system++;
  std::vector<size_t> starts;
  for (size_t i = n_system + 1; i < messages.size(); i++)
    if (role_of(messages[i]) == "user") starts.push_back(i);
  const auto prompt_from = [&](size_t start) { return chat_prompt(context, from_turn(input, n_system, start)); };
  // Fewer turns are fewer tokens: the first start that fits is searched for by halves.
  size_t low = 0, high = starts.empty() ? 0 : starts.size() - 1;
  std::optional<Tokens> kept;  // the prompt from starts[high], where that was tried
  while (low < high) {
    const size_t middle = (low + high) / 2;
    auto prompt = prompt_from(starts[middle]);
    if (std::holds_alternative<ApiError>(prompt)) return prompt;
    if (std::get<Tokens>(prompt).size() <= room) {
      kept = std::get<Tokens>(std::move(prompt));
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (kept) return *std::move(kept);
  return prompt_from(starts.empty() ? n_system : starts[low]);
}

}  // namespace

Parsed<Tokens> fit_chat(const ServeContext& context, text::ChatInput input, const GenerationCall& call,
                        const std::string& field) {
  auto prompt = call.truncation.automatic ? chat_prompt(context, input) : chat_prompt(context, std::move(input));
  if (std::holds_alternative<ApiError>(prompt)) return prompt;
  const Room room = room_for(call, context.model.max_context);
  if (call.truncation.automatic && std::get<Tokens>(prompt).size() > static_cast<size_t>(room.until_cut)) {
    prompt = drop_turns(context, input, static_cast<size_t>(room.after_cut));
    if (std::holds_alternative<ApiError>(prompt)) return prompt;
  }
  auto& tokens = std::get<Tokens>(prompt);
  if (const auto keep = call.truncation.keep_tokens) keep_last(tokens, *keep > 0 ? *keep : room.until_cut, false);
  if (auto error = check_length(context, tokens.size(), field)) return *std::move(error);
  return prompt;
}

std::optional<ApiError> fit_tokens(const ServeContext& context, Tokens& tokens, bool has_bos, const GenerationCall& call,
                                   const std::string& field) {
  const Room room = room_for(call, context.model.max_context);
  const int keep = call.truncation.automatic ? 0 : call.truncation.keep_tokens.value_or(-1);
  if (keep >= 0) keep_last(tokens, keep > 0 ? keep : room.until_cut, has_bos);
  return check_length(context, tokens.size(), field);
}

}  // namespace unisono::serve
