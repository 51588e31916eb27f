// unisono chat: a conversation in the terminal.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>

#include "base/json.h"
#include "commands.h"
#include "generate.h"

namespace unisono::apps {

namespace {

std::atomic<bool> interrupted{false};

// Ctrl-C ends the answer; at the prompt it ends the program, as a read that was interrupted returns.
void on_interrupt(int) { interrupted = true; }

struct ChatFlags {
  ModelFlags model{};
  SamplingFlags sampling{.temperature = 0.7f, .top_p = 0.95f};
  std::optional<std::string> system{};
};

constexpr const char* kHelp =
    "  /clear   forget the conversation\n"
    "  /system TEXT   forget it and begin with this system message; without TEXT: with none\n"
    "  /quit    leave (or Ctrl-D)\n"
    "  \"\"\"      begins and ends a message of several lines\n"
    "  Ctrl-C   stops an answer; at the prompt: leave\n";

// One message from the terminal; false: the end of input.
bool read_message(std::string& message, bool terminal) {
  if (terminal) fmt::print("> ");
  std::fflush(stdout);
  if (!std::getline(std::cin, message)) return false;
  if (message.rfind("\"\"\"", 0) != 0) return true;
  message.erase(0, 3);
  size_t end = 0;
  for (std::string line;
       (end = message.find("\"\"\"")) == std::string::npos && !interrupted && std::getline(std::cin, line);) {
    if (!message.empty()) message += "\n";
    message += line;
  }
  if (end != std::string::npos) message.erase(end, 3);
  if (end == message.size() && message.ends_with('\n')) message.pop_back();  // the closing marks had a line of their own
  return !interrupted;
}

class Chat {
 public:
  Chat(Session& session, const ChatFlags& flags) : session_(session), flags_(flags) { forget(); }

  // Does what a line beginning with '/' says; false: leave.
  bool command(const std::string& line) {
    if (line == "/quit" || line == "/exit") return false;
    if (line == "/clear") {
      forget();
    } else if (line == "/system") {
      flags_.system.reset();
      forget();
    } else if (line.starts_with("/system ")) {
      flags_.system = line.substr(8);
      forget();
    } else {
      fmt::print("{}", kHelp);
    }
    return true;
  }

  void say(const std::string& message) {
    messages_.push_back(JsonObject{{"role", "user"}, {"content", message}});
    text::ChatInput input;
    input.messages = messages_;
    auto rendered = session_.loaded->chat_template->render(input, std::time(nullptr));
    if (!rendered) return take_back(rendered.error());
    interrupted = false;
    auto answer = generate(
        session_, session_.loaded->tokenizer.encode(*rendered), flags_.sampling,
        [](const std::string& text) {
          std::fwrite(text.data(), 1, text.size(), stdout);
          std::fflush(stdout);
        },
        &interrupted);
    interrupted = false;
    if (!answer) return take_back(answer.error());
    fmt::print("\n");
    std::fflush(stdout);
    remark("[{}]\n", speed_line(*answer));
    messages_.push_back(JsonObject{{"role", "assistant"}, {"content", answer->text}});
    if (flags_.sampling.temperature > 0) flags_.sampling.seed++;  // the same question again may get another answer
  }

 private:
  void forget() {
    messages_.clear();
    if (flags_.system) messages_.push_back(JsonObject{{"role", "system"}, {"content", *flags_.system}});
  }
  void take_back(const Error& error) {
    complain(error);
    remark("The message was taken back; /clear begins anew.\n");
    messages_.pop_back();
  }

  Session& session_;
  ChatFlags flags_;
  JsonArray messages_{};
};

int chat(const ChatFlags& flags) {
  auto session = open_session(flags.model, true);
  if (!session) return complain(session.error());
  const auto& description = (*session)->loaded->description;
  if (!(*session)->loaded->chat_template)
    return complain(
        {"'" + description.name + "' has no chat template, so it can't chat; 'unisono run' continues a text with it."});
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);  // without SA_RESTART: a read at the prompt ends

  const bool terminal = isatty(0) != 0;
  if (terminal) fmt::print("{}. /help says what else there is.\n", description.name);
  Chat talk(**session, flags);
  std::string message;
  while (read_message(message, terminal)) {
    if (message.empty()) continue;
    if (message[0] == '/' && message.find('\n') == std::string::npos) {
      if (!talk.command(message)) break;
    } else {
      talk.say(message);
    }
  }
  if (terminal) fmt::print("\n");
  return 0;
}

}  // namespace

void add_chat(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* command = app.add_subcommand("chat", "Talk with a model in the terminal");
  add_model_flags(*command, flags->model);
  add_context_flags(*command, flags->model);
  command->add_option("--system", flags->system, "A system message");
  add_sampling_flags(*command, flags->sampling);
  command->footer(kHelp);
  command->callback([flags, &exit_code] { exit_code = chat(*flags); });
}

}  // namespace unisono::apps
