// unisono serve: one model behind HTTP until a signal ends it.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "base/quoted.h"
#include "commands.h"
#include "fingerprint.h"
#include "input.h"
#include "serve/api.h"
#include "serve/api_keys.h"
#include "serve/constraints.h"
#include "serve/http_server.h"
#include "session.h"
#include "text/unicode.h"

namespace unisono::apps {

namespace {

struct ServeFlags {
  ModelFlags model{};
  std::string host = "127.0.0.1";
  uint16_t port = 8080;
  std::string name{};
  int token_budget = 128;
  int max_running = 64;
  int max_waiting = 1024;
  std::string prefix_cache = "on";
  std::string tool_syntax{};  // empty: by the chat template
  std::string key_file{};
  std::string tls_certificates{}, tls_key{};
  std::vector<std::string> cors_origins{};
  int max_connections = 1024;
  int max_body_mb = 16;
  int grace_s = 30;
  int stall_s = 60;
  bool access_log = false;
  bool log_prompts = false;
};

// A key as a header can carry it: without the white space around it, which is never a part of one.
std::string bare_key(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// The keys of the file, one a line, and of the environment; none: everybody may use the server.
Result<std::vector<std::string>> read_keys(const std::string& path) {
  std::vector<std::string> keys;
  if (const char* key = std::getenv("UNISONO_API_KEY")) {
    keys.push_back(bare_key(key));
    if (keys.back().empty())
      return Error{"The environment variable UNISONO_API_KEY is empty: give it a key, or unset it.", "UNISONO_API_KEY"};
  }
  if (path.empty()) return keys;
  auto text = read_text(path);
  if (!text) return text.error();
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::istringstream file(text->starts_with(kByteOrderMark) ? text->substr(kByteOrderMark.size()) : *text);
  for (std::string line; std::getline(file, line);) {
    line = bare_key(line);
    if (!line.empty() && line[0] != '#') keys.push_back(line);
  }
  if (keys.empty()) return Error{"The file of API keys '" + path + "' has none; write one a line.", "--api-key-file"};
  return keys;
}

void log_access(const serve::AccessRecord& record) {
  JsonObject line{{"time", std::time(nullptr)},
                        {"remote", record.remote},
                        {"method", record.method},
                        {"path", record.path},
                        {"status", record.status},
                        {"bytes", record.bytes},
                        {"us", static_cast<int64_t>(record.seconds * 1e6)},
                        {"complete", record.complete}};
  if (!record.owner.empty()) line["owner"] = record.owner;
  for (const auto& [name, value] : record.notes) line[name] = value;
  std::cerr << to_text(line) + "\n";
}

// SIGINT and SIGTERM wait for wait_for_signal(), in this thread and all it will start.
sigset_t hold_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// While it lives, one of the held signals ends the program at once: as long as the model loads there is nothing to drain.
class EndsAtOnce {
 public:
  explicit EndsAtOnce(const sigset_t& signals)
      : watcher_([signals](const std::stop_token& over) {
          while (!over.stop_requested()) {
            const timespec tick{.tv_sec = 0, .tv_nsec = 20'000'000};
            const int signal = sigtimedwait(&signals, nullptr, &tick);
            if (signal <= 0) continue;
            std::signal(signal, SIG_DFL);  // a shell's background jobs are started with SIGINT ignored
            pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
            std::raise(signal);
          }
        }) {}

 private:
  std::jthread watcher_;
};

// Until the first signal; then until everything has ended, at once after a second one.
void run_until_signal(serve::HttpServer& server, const engine::Engine& engine, const sigset_t& signals,
                      std::chrono::seconds grace) {
  int signal = 0;
  sigwait(&signals, &signal);
  const auto state = engine.state();
  std::cout << "Stopping; " << state.running + state.waiting << " requests may finish within " << grace.count()
            << " s (again: at once)." << std::endl;
  server.stop(grace);
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

// What clients call the model: they are told it in JSON.
Result<std::string> model_name(const ServeFlags& flags) {
  std::string name = flags.name.empty() ? name_of(flags.model.model) : flags.name;
  if (text::valid_prefix(name) == name.size()) return name;
  return Error{"The model's name " + unisono::quoted(name) + " isn't UTF-8; give it another with --name.", "--name"};
}

serve::ServeContext make_context(const ServeFlags& flags, Session& session, std::string name, std::string fingerprint) {
  serve::ServeContext context;
  context.engine = serve::door_to(*session.engine);
  context.tokenizer = &session.loaded->tokenizer;
  context.chat_template = session.loaded->chat_template ? &*session.loaded->chat_template : nullptr;
  context.chat = serve::chat_syntax(context.chat_template ? context.chat_template->source() : "", *context.tokenizer,
                                    flags.tool_syntax);
  context.model.name = std::move(name);
  context.model.vocab_size = session.loaded->description.hparams.vocab_size;
  context.model.max_context = session.engine->max_context();
  context.fingerprint = std::move(fingerprint);
  context.version = UNISONO_VERSION;
  context.created = std::time(nullptr);
  context.log_bodies = flags.log_prompts;
  context.longest_step = std::chrono::seconds(flags.stall_s);
  return context;
}

serve::HttpOptions http_options(const ServeFlags& flags, const std::vector<std::string>& keys) {
  serve::HttpOptions http;
  http.limits.connections = flags.max_connections;
  http.limits.body_bytes = static_cast<size_t>(flags.max_body_mb) << 20;
  http.limits.all_bodies_bytes = std::max(http.limits.all_bodies_bytes, http.limits.body_bytes);
  if (!keys.empty()) http.guard = serve::key_guard(keys);
  if (!flags.tls_certificates.empty()) http.tls = serve::TlsFiles{flags.tls_certificates, flags.tls_key};
  http.cors_origins = flags.cors_origins;
  return http;
}

int run(const ServeFlags& flags) {
  const sigset_t signals = hold_signals();
  std::signal(SIGPIPE, SIG_IGN);  // nobody has to read what the server says
  std::optional<EndsAtOnce> loading(signals);
  auto keys = read_keys(flags.key_file);
  if (!keys) return complain(keys.error());
  auto name = model_name(flags);
  if (!name) return complain(name.error());
  auto bound = serve::HttpServer::bind(flags.host, flags.port, http_options(flags, *keys));  // before the long work
  if (!bound) return complain(bound.error());
  auto session = open_session(flags.model, false,
                              {.token_budget = flags.token_budget,
                               .max_running = flags.max_running,
                               .max_waiting = flags.max_waiting,
                               .prefix_cache = flags.prefix_cache == "on"});
  if (!session) return complain(session.error());
  const engine::EngineOptions& options = (*session)->engine_options;
  const std::string numerics = flags.model.activations + " " + kv_type_name(flags.model) + " " + std::to_string(model::kNumericsVersion);
  auto print = fingerprint(flags.model.model, numerics, (*session)->team);
  if (!print) return complain(print.error());
  loading.reset();
  const engine::Loaded& loaded = *(*session)->loaded;
  (*session)->engine =
      std::make_unique<engine::Engine>((*session)->loaded->model, loaded.tokenizer, (*session)->team, options);

  serve::ServeContext context = make_context(flags, **session, *std::move(name), *std::move(print));
  serve::Constraints constraints(loaded.tokenizer, options.end_tokens, context.chat.marks);
  context.constraints = &constraints;
  serve::Metrics metrics(context.model.name, context.engine.state);
  context.metrics = &metrics;
  const std::unique_ptr<serve::HttpServer> server = *std::move(bound);  // ends before what it serves with
  const auto served = server->serve(serve::make_api(context),
                                    [&metrics, log = flags.access_log || flags.log_prompts](const serve::AccessRecord& record) {
                                      metrics.responded(record.status);
                                      if (log) log_access(record);
                                    });
  if (!served) return complain(served.error());
  const auto state = (*session)->engine->state();
  std::cout << "Model " << context.model.name << ": context " << context.model.max_context << " tokens, room for "
            << int64_t{state.blocks_total} * state.block_tokens << " in all; " << (*session)->team.size() << " threads, "
            << loaded.model.ops().name << ".\n"
            << "Listening on " << server->address() << " (OpenAI API: " << server->address() << "/v1)" << std::endl;
  run_until_signal(*server, *(*session)->engine, signals, std::chrono::seconds(flags.grace_s));
  return 0;
}

}  // namespace

void add_http_flags(CLI::App& command, ServeFlags& flags) {
  CLI::Option* certificates = command
                                  .add_option("--tls-cert", flags.tls_certificates,
                                              "PEM file of the server's certificate and what signs it: HTTPS only")
                                  ->check(kNotEmpty);
  CLI::Option* key = command.add_option("--tls-key", flags.tls_key, "PEM file of its private key")->check(kNotEmpty);
  certificates->needs(key);
  key->needs(certificates);
  command
      .add_option("--cors-origin", flags.cors_origins,
                  "Origin whose web pages may use the server, as https://chat.example.org; *: all. May be repeated")
      ->check(kOrigin)
      ->allow_extra_args(false);
  command.add_option("--max-connections", flags.max_connections, "Connections at once")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--max-body-mb", flags.max_body_mb, "Megabytes of a request's body")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--grace", flags.grace_s, "Seconds that requests may finish in after SIGTERM")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  command.add_option("--stall", flags.stall_s, "/health is 503 when one step of the engine takes longer than these seconds")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command.add_flag("--access-log", flags.access_log, "Write a line of JSON to standard error for every request");
  command.add_flag("--log-prompts", flags.log_prompts, "The same, with the requests' bodies");
}

void add_serve(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand("serve", "Serve a model over HTTP, for any OpenAI client");
  add_model_flags(*command, flags->model);
  add_context_flags(*command, flags->model);
  command->add_option("--host", flags->host, "Address to listen on; 0.0.0.0: all")->capture_default_str();
  command->add_option("--port", flags->port, "Port to listen on; 0: a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option("--name", flags->name,
                   "What clients call the model; by default the file's name without .gguf and number type")
      ->check(kNotEmpty);
  command->add_option("--token-budget", flags->token_budget, "Tokens computed in one step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--max-running", flags->max_running, "Requests computed together")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--max-waiting", flags->max_waiting, "Requests that may wait; more are told to come back (429)")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--prefix-cache", flags->prefix_cache,
                   "Requests that begin alike share what was computed; changes speed, never an answer")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  std::vector<std::string> syntaxes;
  for (const auto& syntax : serve::tool_syntaxes()) syntaxes.emplace_back(syntax.name);
  command->add_option("--tool-syntax", flags->tool_syntax, "How the model writes calls of tools; by default as its chat template does")
      ->check(CLI::IsMember(syntaxes));
  command->add_option("--api-key-file", flags->key_file, "File of API keys, one a line; also UNISONO_API_KEY")
      ->check(kNotEmpty);
  add_http_flags(*command, *flags);
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace unisono::apps
