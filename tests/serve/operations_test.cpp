// What an operator relies on: TLS, origins, whose request it is, metrics, the log's line, and a health that tells the
// truth.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "serve/api.h"
#include "serve/api_keys.h"
#include "serve/fake_engine.h"
#include "serve/raw_client.h"
#include "serve/request_course.h"
#include "serve/served.h"

namespace unisono::serve {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

// ---- TLS

// A key and a certificate that it signed itself, in files that go with it.
class Identity {
 public:
  Identity() : folder_(std::filesystem::temp_directory_path() / ("unisono-tls-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_sign(certificate, key, EVP_sha256());
    if (FILE* file = std::fopen(files().certificates.c_str(), "w")) {
      PEM_write_X509(file, certificate);
      std::fclose(file);
    }
    if (FILE* file = std::fopen(files().key.c_str(), "w")) {
      PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
      std::fclose(file);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  ~Identity() { std::filesystem::remove_all(folder_); }
  TlsFiles files() const { return {folder_ / "cert.pem", folder_ / "key.pem"}; }

 private:
  std::filesystem::path folder_;
};

// A client that speaks TLS and trusts just this certificate.
class TlsClient {
 public:
  TlsClient(uint16_t port, const TlsFiles& files, int max_version = 0) : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_load_verify_locations(context_, files.certificates.c_str(), nullptr);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    if (max_version != 0) {
      SSL_CTX_set_security_level(context_, 0);
      SSL_CTX_set_max_proto_version(context_, max_version);
    }
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    tls_ = SSL_new(context_);
    SSL_set_fd(tls_, socket_);
    connected_ = connected_ && SSL_connect(tls_) == 1;
  }
  ~TlsClient() {
    SSL_free(tls_);
    SSL_CTX_free(context_);
    ::close(socket_);
  }
  bool connected() const { return connected_; }
  void send(std::string_view bytes) { SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size())); }
  std::string until(std::string_view end) {
    std::string out;
    char bytes[4096];
    while (out.find(end) == std::string::npos) {
      const int n = SSL_read(tls_, bytes, sizeof bytes);
      if (n <= 0) {
        clean_ = SSL_get_error(tls_, n) == SSL_ERROR_ZERO_RETURN;
        break;
      }
      out.append(bytes, static_cast<size_t>(n));
    }
    return out;
  }
  bool ended_cleanly() const { return clean_; }

 private:
  SSL_CTX* context_;
  SSL* tls_ = nullptr;
  int socket_ = -1;
  bool connected_ = false, clean_ = false;
};

Router small_router() {
  Router router;
  router.add("GET", "/ping", Where::io, [](const HttpRequest&, const auto& reply) { reply->send({.body = "pong"}); });
  router.add("POST", "/echo", Where::worker,
             [](const HttpRequest& request, const auto& reply) { reply->send({.body = request.body}); });
  router.add("GET", "/owner", Where::io, [](const HttpRequest& request, const auto& reply) {
    reply->send({.body = request.owner + "," + reply->origin().owner + ";"});
  });
  return router;
}

TEST(Tls, AnswersOverTlsAndKeepsTheConnection) {
  const Identity identity;
  const auto server = served(small_router(), {.tls = identity.files()});
  ASSERT_TRUE(server);
  EXPECT_THAT(server->address(), StartsWith("https://127.0.0.1:"));
  TlsClient client(server->port(), identity.files());
  ASSERT_TRUE(client.connected());
  for (int i = 0; i < 3; i++) {
    client.send(get("/ping"));
    EXPECT_THAT(client.until("pong"), StartsWith("HTTP/1.1 200 OK\r\n"));
  }
  const std::string large(300'000, 'x');  // many records
  client.send(post("/echo", large + "end"));
  EXPECT_THAT(client.until("end"), EndsWith(large + "end"));
  client.send("GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  client.until("never");
  EXPECT_TRUE(client.ended_cleanly()) << "the end is announced, so that nobody can cut an answer unnoticed";
}

TEST(Tls, PlainClientsOldVersionsAndHalfHandshakesGetNothing) {
  const Identity identity;
  const auto server = served(small_router(), {.limits = {.handshake = 200ms}, .tls = identity.files()});
  ASSERT_TRUE(server);
  RawClient plain(server->port()), silent(server->port());
  plain.send(get("/ping"));
  EXPECT_THAT(plain.rest(), Not(HasSubstr("pong")));
  EXPECT_FALSE(TlsClient(server->port(), identity.files(), TLS1_1_VERSION).connected());
  silent.rest(2000ms);
  EXPECT_TRUE(silent.closed());
  EXPECT_TRUE(TlsClient(server->port(), identity.files()).connected());
}

TEST(Tls, SaysWhichFileIsWrong) {
  const Identity identity;
  const auto bind = [](TlsFiles files) { return HttpServer::bind("127.0.0.1", 0, {.tls = std::move(files)}); };
  const auto no_file = bind({"/nowhere/cert.pem", identity.files().key});
  ASSERT_FALSE(no_file.ok());
  EXPECT_THAT(no_file.error().message, HasSubstr("/nowhere/cert.pem"));
  const auto no_key = bind({identity.files().certificates, identity.files().certificates});
  ASSERT_FALSE(no_key.ok());
  EXPECT_EQ(no_key.error().subject, "--tls-key");
}

// ---- Origins and owners

std::string ask(const HttpServer& server, std::string_view bytes) {
  RawClient client(server.port());
  client.send(bytes);
  return client.until("never", 300ms);
}

std::string from(std::string_view method, std::string_view origin, std::string_view more = "") {
  return std::string(method) + " /ping HTTP/1.1\r\nHost: x\r\nOrigin: " + std::string(origin) + "\r\n" + std::string(more) +
         "\r\n";
}

TEST(Cors, IsOffUnlessAsked) {
  const auto server = served(small_router());
  ASSERT_TRUE(server);
  EXPECT_THAT(ask(*server, from("GET", "https://a.example")), Not(HasSubstr("Access-Control")));
  EXPECT_THAT(ask(*server, from("OPTIONS", "https://a.example", "Access-Control-Request-Method: POST\r\n")),
              StartsWith("HTTP/1.1 405 "));
}

TEST(Cors, LetsTheChosenOriginsInAndNoOthers) {
  const auto server = served(small_router(), {.guard = key_guard({"secret"}), .cors_origins = {"https://a.example"}});
  ASSERT_TRUE(server);
  const std::string question = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n";
  const std::string allowed = ask(*server, from("OPTIONS", "https://a.example", question));
  EXPECT_THAT(allowed, StartsWith("HTTP/1.1 204 ")) << "the question carries no key";
  EXPECT_THAT(allowed, HasSubstr("Access-Control-Allow-Origin: https://a.example\r\n"));
  EXPECT_THAT(allowed, HasSubstr("Authorization"));
  EXPECT_THAT(ask(*server, from("OPTIONS", "https://b.example", question)), StartsWith("HTTP/1.1 401 "));
  const std::string read = ask(*server, from("GET", "https://a.example", "Authorization: Bearer secret\r\n"));
  EXPECT_THAT(read, HasSubstr("Access-Control-Allow-Origin: https://a.example\r\n"));
  EXPECT_THAT(read, HasSubstr("Vary: Origin\r\n"));
  EXPECT_THAT(ask(*server, from("GET", "https://a.example")), HasSubstr("Access-Control-Allow-Origin"))
      << "a page may read why it was refused";
  EXPECT_THAT(ask(*server, from("GET", "https://a.example.org", "Authorization: Bearer secret\r\n")),
              Not(HasSubstr("Access-Control-Allow-Origin")));
}

TEST(Keys, TellWhoseRequestItIs) {
  const auto server = served(small_router(), {.guard = key_guard({"first", "second"})});
  ASSERT_TRUE(server);
  const auto owner = [&](const std::string& header) {
    return ask(*server, "GET /owner HTTP/1.1\r\nHost: x\r\n" + header + "\r\n");
  };
  EXPECT_THAT(owner("Authorization: Bearer first\r\n"), EndsWith("key 1,key 1;"));
  EXPECT_THAT(owner("x-api-key: second\r\n"), EndsWith("key 2,key 2;"));
}

// ---- Metrics, log, health

class OperationsTest : public testing::Test {
 protected:
  OperationsTest() : metrics_("tiny", engine_.door().state) {
    context_.engine = engine_.door();
    context_.tokenizer = &byte_tokenizer();
    context_.metrics = &metrics_;
    context_.model = {.name = "tiny", .vocab_size = 258, .max_context = 2048};
  }
  void serve(Guard guard = {}) {
    HttpOptions options;
    options.guard = std::move(guard);
    server_ = served(make_api(context_), std::move(options), [this](const AccessRecord& record) {
      metrics_.responded(record.status);
      const std::lock_guard lock(mutex_);
      records_.push_back(record);
      recorded_.notify_all();
    });
    ASSERT_TRUE(server_);
  }
  // The server's record comes after the answer: what is counted then is there on return.
  std::string ask(std::string_view bytes) {
    std::unique_lock lock(mutex_);
    const size_t before = records_.size();
    lock.unlock();
    RawClient client(server_->port());
    client.send(bytes);
    std::string answer = client.response();
    lock.lock();
    EXPECT_TRUE(recorded_.wait_for(lock, 3s, [&] { return records_.size() > before; }));
    return answer;
  }
  // The value of a sample, by its name and one of its labels.
  double metric(const std::string& name, const std::string& label = "") {
    std::istringstream lines(metrics_.text());
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(name + "{") && line.find(label) != std::string::npos)
        return std::stod(line.substr(line.rfind(' ') + 1));
    return -1;
  }

  FakeEngine engine_{};
  Metrics metrics_;
  ServeContext context_{};
  std::mutex mutex_{};
  std::condition_variable recorded_{};
  std::vector<AccessRecord> records_{};
  std::unique_ptr<HttpServer> server_{};
};

TEST_F(OperationsTest, CountsWhatHappened) {
  serve();
  ask(post("/v1/completions", R"({"prompt":"ab","max_tokens":100})"));  // 3 tokens; 9 and the end token
  ask(post("/v1/completions", R"({"prompt":"abc","max_tokens":4})"));
  ask(post("/v1/completions", R"({"prompt":"abc","max_tokens":4,"n":2})"));
  ask(post("/v1/completions", R"({"prompt":1})"));
  EXPECT_EQ(metric("vllm:prompt_tokens_total"), 3 + 4 + 2 * 4);
  EXPECT_EQ(metric("vllm:generation_tokens_total"), 10 + 4 + 8);
  EXPECT_EQ(metric("unisono:cached_prompt_tokens_total"), 4 * 2);
  EXPECT_EQ(metric("vllm:request_success_total", "stop"), 1);
  EXPECT_EQ(metric("vllm:request_success_total", "length"), 3);
  EXPECT_EQ(metric("unisono:answers_total", "stop_token"), 1);
  EXPECT_EQ(metric("vllm:e2e_request_latency_seconds_count"), 4);
  EXPECT_EQ(metric("vllm:time_to_first_token_seconds_count"), 4);
  for (const char* part : {"\"text\"", "\"queue\"", "\"prefill\"", "\"write\""})
    EXPECT_EQ(metric("unisono:first_token_part_seconds_count", part), 4) << part;
  EXPECT_EQ(metric("vllm:inter_token_latency_seconds_count"), 9 + 3 + 6);
  EXPECT_EQ(metric("vllm:request_generation_tokens_sum"), 22);
  EXPECT_EQ(metric("vllm:request_generation_tokens_bucket", "le=\"4\""), 3);
  EXPECT_EQ(metric("unisono:responses_total", "200"), 3);
  EXPECT_EQ(metric("unisono:responses_total", "400"), 1);
  EXPECT_EQ(metric("vllm:kv_cache_usage_perc"), 0);
  EXPECT_EQ(metric("vllm:cache_config_info", "num_gpu_blocks=\"10\""), 1);
}

TEST_F(OperationsTest, BlocksOfWindowsAreToldApart) {
  engine::EngineState state{.blocks_free = 80, .blocks_total = 100, .block_tokens = 16};
  const Metrics metrics("tiny", [&] { return state; });
  context_.engine.state = [&] { return state; };
  serve();
  EXPECT_THAT(ask(get("/health")), Not(HasSubstr("window")));
  EXPECT_THAT(metrics.text(), HasSubstr(R"(unisono:kv_blocks_free{layers="all",model_name="tiny"} 80)"));
  EXPECT_THAT(metrics.text(), Not(HasSubstr("window")));
  EXPECT_THAT(metrics.text(), HasSubstr(R"(vllm:kv_cache_usage_perc{model_name="tiny"} 0.2)"));
  state.window_blocks_total = 40;
  state.window_blocks_free = 10;
  EXPECT_THAT(ask(get("/health")), HasSubstr(R"("blocks_total":100,"window_blocks_free":10,"window_blocks_total":40,)"));
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr(R"(num_gpu_blocks="100",num_window_blocks="40")"));
  EXPECT_THAT(text, HasSubstr(R"(unisono:kv_blocks{layers="full",model_name="tiny"} 100)"));
  EXPECT_THAT(text, HasSubstr(R"(unisono:kv_blocks{layers="window",model_name="tiny"} 40)"));
  EXPECT_THAT(text, HasSubstr(R"(unisono:kv_blocks_free{layers="window",model_name="tiny"} 10)"));
  EXPECT_THAT(text, HasSubstr(R"(vllm:kv_cache_usage_perc{model_name="tiny"} 0.75)")) << "of the fuller kind";
}

TEST_F(OperationsTest, TheMetricsAreBehindTheKeys) {
  serve(key_guard({"secret"}));
  EXPECT_THAT(ask(get("/metrics")), StartsWith("HTTP/1.1 401 "));
  const std::string text = ask("GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n");
  EXPECT_THAT(text, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(text, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  // Each sample of a family stands with the others, below its one TYPE line.
  std::set<std::string> types;
  std::istringstream lines(text.substr(text.find("\r\n\r\n") + 4));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# TYPE ")) continue;
    EXPECT_TRUE(types.insert(line).second) << line;
  }
  EXPECT_GT(types.size(), 20u);
}

TEST_F(OperationsTest, TheLogHasFactsAndNoPromptUnlessAsked) {
  serve();
  const std::string request = post("/v1/completions", R"({"prompt":"a secret","max_tokens":4})");
  ask(request);
  context_.log_bodies = true;
  ask(request);
  const std::lock_guard lock(mutex_);
  ASSERT_GE(records_.size(), 2u);
  const JsonObject& notes = records_[0].notes;
  EXPECT_EQ(notes.at("prompt_tokens"), 9);
  EXPECT_EQ(notes.at("completion_tokens"), 4);
  EXPECT_EQ(notes.at("cached_tokens"), 2);
  EXPECT_EQ(notes.at("finish"), Json(JsonArray{"length"}));
  EXPECT_THAT(to_text(notes), Not(HasSubstr("secret")));
  EXPECT_THAT(to_text(records_[1].notes), HasSubstr("a secret"));
}

TEST_F(OperationsTest, TheLogIsJsonWhateverTheBodyIs) {
  context_.log_bodies = true;
  serve();
  ask(post("/v1/completions", "a\xff\xc3(\xc3"));
  const std::lock_guard lock(mutex_);
  ASSERT_GE(records_.size(), 1u);
  EXPECT_EQ(records_[0].notes.at("body"), "a\uFFFD\uFFFD(\uFFFD");
}

TEST_F(OperationsTest, PromptsThatWereNeverComputedAreNotCounted) {
  RequestCourse course(&metrics_, Origin{}, 2);
  engine::Delta left{.finish = engine::FinishReason::cancelled, .usage = {.prompt_tokens = 5}};
  course.came(0, left);
  EXPECT_EQ(metric("vllm:prompt_tokens_total"), 0);
  EXPECT_EQ(metric("unisono:answers_total", "cancelled"), 1);
  engine::Delta first{.text = "a", .usage = {.prompt_tokens = 5, .completion_tokens = 1, .cached_tokens = 2}};
  course.came(1, first);
  EXPECT_EQ(metric("vllm:prompt_tokens_total"), 5);
  EXPECT_EQ(metric("unisono:cached_prompt_tokens_total"), 2);
}

TEST_F(OperationsTest, WhoLeftIsLoggedAndCountedToo) {
  engine_.hold = true;
  serve();
  {
    RawClient client(server_->port());
    client.send(post("/v1/completions", R"({"prompt":"ab","max_tokens":100,"stream":true})"));
    client.until("data: ");
  }
  for (int i = 0; i < 1000 && metric("unisono:answers_total", "cancelled") != 1; i++) std::this_thread::sleep_for(2ms);
  EXPECT_EQ(metric("unisono:answers_total", "cancelled"), 1);
  EXPECT_EQ(metric("vllm:request_success_total", "abort"), 1);
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_FALSE(records_[0].complete);
  EXPECT_EQ(records_[0].notes.at("prompt_tokens"), 3);
}

TEST_F(OperationsTest, RequestsCarryTheirOwner) {
  serve(key_guard({"one", "two"}));
  ask(post("/v1/completions", R"({"prompt":"ab","max_tokens":1})", "Authorization: Bearer two\r\n"));
  ASSERT_EQ(engine_.requests().size(), 1u);
  EXPECT_EQ(engine_.requests()[0].owner, "key 2");
}

TEST_F(OperationsTest, HealthSeesALoopThatStandsStill) {
  std::atomic<double> busy{0};
  context_.engine.state = [&] { return engine::EngineState{.running = 1, .steps = 7, .busy_s = busy}; };
  context_.longest_step = 5'000ms;
  serve();
  EXPECT_THAT(ask(get("/health")), StartsWith("HTTP/1.1 200 "));
  busy = 4.9;
  EXPECT_THAT(ask(get("/health")), StartsWith("HTTP/1.1 200 "));
  busy = 5.1;
  const std::string stalled = ask(get("/health"));
  EXPECT_THAT(stalled, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(stalled, HasSubstr(R"("status":"stalled")"));
  busy = 0.1;
  EXPECT_THAT(ask(get("/health")), StartsWith("HTTP/1.1 200 ")) << "it goes on";
}

}  // namespace
}  // namespace unisono::serve
