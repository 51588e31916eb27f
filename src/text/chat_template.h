// A model's chat template: messages to the prompt the model was trained on, as Hugging Face renders it, with the origin of
// every character kept. Templates come with the model and are not trusted: limits on depth, steps, output.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "text/tokenizer.h"

namespace unisono::text {

struct ChatInput {
  Json messages{};                     // array of {"role": ..., "content": ...}, as OpenAI has them
  Json tools{};                        // array or null
  JsonObject variables{};              // further template variables (chat_template_kwargs); they count as the user's
  bool add_generation_prompt = true;
  bool continue_final_message = false; // render so that the last message is left open (not with add_generation_prompt)
};

class ChatTemplate {
 public:
  // bos_token, eos_token: their text, for the variables of these names. Refused: syntax errors and what the subset lacks,
  // by name and line.
  static Result<ChatTemplate> parse(std::string source, std::string bos_token, std::string eos_token);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // An error when the template raises one (its own words), or a limit is reached, or it uses what the subset lacks.
  // now: seconds since the epoch, for strftime_now.
  Result<MarkedText> render(const ChatInput& input, int64_t now) const;

  std::string_view source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace unisono::text
