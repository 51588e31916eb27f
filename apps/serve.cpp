// unisono serve: one model behind HTTP until a signal ends it.
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <regex>

#include "commands.h"
#include "fingerprint.h"
#include "serve/api.h"
#include "serve/http_server.h"
#include "session.h"

namespace unisono::apps {

namespace {

constexpr std::chrono::seconds kGrace{30};

struct ServeFlags {
  ModelFlags model{};
  std::string host = "127.0.0.1";
  uint16_t port = 8080;
  std::string name{};
  int token_budget = 512;
  int max_running = 64;
  int max_waiting = 1024;
};

// SIGINT and SIGTERM wait for wait_for_signal(), in this thread and all it will start.
sigset_t hold_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Until the first signal; then until everything has ended, at once after a second one.
void run_until_signal(serve::HttpServer& server, const engine::Engine& engine, const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  const auto state = engine.state();
  std::cout << "Stopping; " << state.running + state.waiting << " requests may finish within " << kGrace.count()
            << " s (again: at once)." << std::endl;
  server.stop(kGrace);
  while (!server.stopped()) {
    const timespec tick{.tv_sec = 0, .tv_nsec = 50'000'000};
    if (sigtimedwait(&signals, nullptr, &tick) > 0) server.stop(std::chrono::milliseconds(0));
  }
}

// The file's name without .gguf and without what it says of its number types: "Qwen2-0.5B-Instruct" of
// "Qwen2-0.5B-Instruct-Q4_K_M.gguf".
std::string name_of(const std::string& path) {
  static const std::regex kTypes("[.-]((UD-)?I?Q[0-9]\\w*|B?F16|F32)$", std::regex::icase);
  return std::regex_replace(std::filesystem::path(path).stem().string(), kTypes, "");
}

serve::ServeContext make_context(const ServeFlags& flags, Session& session, std::string fingerprint) {
  serve::ServeContext context;
  context.engine = serve::door_to(*session.engine);
  context.tokenizer = &session.loaded->tokenizer;
  context.chat_template = session.loaded->chat_template ? &*session.loaded->chat_template : nullptr;
  context.model.name = flags.name.empty() ? name_of(flags.model.model) : flags.name;
  context.model.vocab_size = session.loaded->description.hparams.vocab_size;
  context.model.max_context = session.engine->max_context();
  context.fingerprint = std::move(fingerprint);
  context.version = UNISONO_VERSION;
  context.created = std::time(nullptr);
  return context;
}

int run(const ServeFlags& flags) {
  const sigset_t signals = hold_signals();
  auto session = open_session(flags.model, false);
  if (!session) return complain(session.error());
  engine::EngineOptions& options = (*session)->engine_options;
  options.token_budget = flags.token_budget;
  options.max_running = flags.max_running;
  options.max_waiting = flags.max_waiting;
  auto print = fingerprint(flags.model.model, flags.model.activations + " " + flags.model.kv_type, (*session)->team);
  if (!print) return complain(print.error());
  const engine::Loaded& loaded = *(*session)->loaded;
  (*session)->engine =
      std::make_unique<engine::Engine>((*session)->loaded->model, loaded.tokenizer, (*session)->team, options);

  const serve::ServeContext context = make_context(flags, **session, *std::move(print));
  auto server = serve::HttpServer::start(flags.host, flags.port, serve::make_api(context));
  if (!server) return complain(server.error());
  const auto state = (*session)->engine->state();
  std::cout << "Model " << context.model.name << ": context " << context.model.max_context << " tokens, room for "
            << int64_t{state.blocks_total} * 16 << " in all; " << (*session)->team.size() << " threads, "
            << loaded.model.ops().name << ".\n"
            << "Listening on " << (*server)->address() << " (OpenAI API: " << (*server)->address() << "/v1)" << std::endl;
  run_until_signal(**server, *(*session)->engine, signals);
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand("serve", "Serve a model over HTTP, for any OpenAI client");
  add_model_flags(*command, flags->model);
  command->add_option("--host", flags->host, "Address to listen on; 0.0.0.0: all")->capture_default_str();
  command->add_option("--port", flags->port, "Port to listen on; 0: a free one")->capture_default_str();
  command->add_option("--name", flags->name,
                      "What clients call the model; by default the file's name without .gguf and number type");
  command->add_option("--token-budget", flags->token_budget, "Tokens computed in one step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--max-running", flags->max_running, "Requests computed together")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--max-waiting", flags->max_waiting, "Requests that may wait; more are told to come back (429)")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace unisono::apps
