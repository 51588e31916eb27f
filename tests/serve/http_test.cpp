// The HTTP server against a handler that knows no model, over plain sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "serve/api_keys.h"
#include "serve/raw_client.h"
#include "serve/served.h"

namespace unisono::serve {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

// A server with an echo, a stream that the test feeds, a handler that throws, and one that answers when told.
class HttpTest : public testing::Test {
 protected:
  void serve(HttpLimits limits = {}, Guard guard = {}) {
    Router router;
    router.add("GET", "/ping", Where::io, [](const HttpRequest&, const auto& reply) { reply->send({.body = "pong"}); });
    router.add("POST", "/echo", Where::worker,
               [](const HttpRequest& request, const auto& reply) { reply->send({.body = request.body}); });
    router.add("GET", "/item/*", Where::io,
               [](const HttpRequest& request, const auto& reply) { reply->send({.body = "<" + request.tail + ">"}); });
    router.add("POST", "/throw", Where::worker, [](const HttpRequest&, const auto&) { throw std::runtime_error("boom"); });
    router.add("POST", "/hold", Where::worker, [this](const HttpRequest&, const auto& reply) { hold(reply); });
    router.add("POST", "/stream", Where::worker, [this](const HttpRequest&, const auto& reply) {
      reply->begin_stream({.content_type = "text/event-stream", .body = "first;"});
      hold(reply);
    });
    server_ = served(std::move(router), {.limits = limits, .guard = std::move(guard)}, [this](const AccessRecord& record) {
      const std::lock_guard lock(mutex_);
      records_.push_back(record);
    });
    ASSERT_TRUE(server_);
  }
  void hold(const std::shared_ptr<Reply>& reply) {
    reply->on_cancel([this] { cancels_++; });
    const std::lock_guard lock(mutex_);
    held_.push_back(reply);
    changed_.notify_all();
  }
  std::shared_ptr<Reply> held(size_t i = 0) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 3s, [&] { return held_.size() > i; })) return nullptr;
    return held_[i];
  }
  bool cancelled(int n, std::chrono::milliseconds time = 3000ms) {
    for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
      if (cancels_ >= n) return true;
      std::this_thread::sleep_for(2ms);
    }
    return false;
  }
  uint16_t port() const { return server_->port(); }
  std::string ask(std::string_view bytes) {
    RawClient client(port());
    client.send(bytes);
    return client.response();
  }

  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::vector<std::shared_ptr<Reply>> held_{};
  std::atomic<int> cancels_{0};
  std::vector<AccessRecord> records_{};
  std::unique_ptr<HttpServer> server_{};
};

TEST_F(HttpTest, AnswersAndKeepsTheConnection) {
  serve();
  RawClient client(port());
  for (int i = 0; i < 3; i++) {
    client.send(post("/echo", "hello"));
    const std::string answer = client.response();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("Connection: keep-alive\r\n"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\nhello"));
  }
}

TEST_F(HttpTest, ClosesWhenAsked) {
  serve();
  RawClient client(port());
  client.send("GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.rest(), EndsWith("pong"));
  EXPECT_TRUE(client.closed());
  RawClient old(port());
  old.send("GET /ping HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.rest(), EndsWith("pong"));
  EXPECT_TRUE(old.closed());
}

// As a client that takes the server for a proxy does.
TEST_F(HttpTest, TakesWholeAddresses) {
  serve();
  RawClient client(port());
  const auto ask = [&](const std::string& target) {
    client.send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n");
    return client.response();
  };
  EXPECT_THAT(ask("http://127.0.0.1:8080/ping"), EndsWith("pong"));
  EXPECT_THAT(ask("HTTPS://x.example/item/a%20b?c=/d"), EndsWith("<a b>"));
  for (const char* root : {"http://x", "http://x?a=/ping", "http://x/"})
    EXPECT_THAT(ask(root), StartsWith("HTTP/1.1 404 ")) << root;
  for (const char* other : {"http://", "http:///ping", "http://?ping", "ftp://x/ping", "x/ping", "?ping", "*"}) {
    RawClient wrong(port());
    wrong.send(std::string("GET ") + other + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(wrong.rest(), StartsWith("HTTP/1.1 400 ")) << other;
  }
}

TEST_F(HttpTest, AnswersPipelinedRequestsInOrder) {
  serve();
  RawClient client(port());
  std::string all;
  for (int i = 0; i < 20; i++) all += post("/echo", "body " + std::to_string(i)) + get("/item/" + std::to_string(i));
  client.send(all);
  for (int i = 0; i < 20; i++) {
    EXPECT_THAT(client.response(), EndsWith("body " + std::to_string(i)));
    EXPECT_THAT(client.response(), EndsWith(std::string("<").append(std::to_string(i)).append(">")));
  }
}

TEST_F(HttpTest, ReadsARequestThatComesByteByByte) {
  serve();
  RawClient client(port());
  for (const char byte : post("/echo", "slowly")) client.send({&byte, 1});
  EXPECT_THAT(client.response(), EndsWith("slowly"));
}

TEST_F(HttpTest, ReadsChunkedBodies) {
  serve();
  RawClient client(port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
  EXPECT_THAT(client.response(), EndsWith("hello world"));
}

TEST_F(HttpTest, SaysContinue) {
  serve();
  RawClient client(port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  EXPECT_THAT(client.response(), EndsWith("body"));
  // In whatever case (RFC 9110, 10.1.1), and not to clients of HTTP/1.0, who don't know it.
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  EXPECT_THAT(client.response(), EndsWith("body"));
  RawClient old(port());
  old.send("POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(old.until("\r\n\r\n", 100ms), "");
  old.send("body");
  EXPECT_THAT(old.rest(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpTest, HeadHasNoBody) {
  serve();
  RawClient client(port());
  client.send("HEAD /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = client.rest();
  EXPECT_THAT(answer, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
  RawClient refused(port());
  refused.send("HEAD ping HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string refusal = refused.rest();
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(refusal, EndsWith("\r\n\r\n"));
}

TEST_F(HttpTest, WhatIsToldOfAPathIsUtf8) {
  serve();
  EXPECT_THAT(ask(get("/caf%C3%A9")), HasSubstr("nothing at /caf\u00e9."));
  EXPECT_THAT(ask(get("/%ff%41")), HasSubstr("nothing at /%ff%41."));
  EXPECT_THAT(ask(get("/\xff")), HasSubstr("nothing at /%FF."));
  ask(get("/ping"));  // the records before it are written
  const std::lock_guard lock(mutex_);
  ASSERT_GE(records_.size(), 3u);
  EXPECT_EQ(records_[2].path, "/%FF");
}

TEST_F(HttpTest, RefusesCodingsItCannotRead) {
  serve();
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 501 "));
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"),
              EndsWith("body"));
}

TEST_F(HttpTest, RefusesWhatIsNotThere) {
  serve();
  EXPECT_THAT(ask(get("/nothing")), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(get("/item/")), StartsWith("HTTP/1.1 404 "));
  const std::string wrong = ask(get("/echo"));
  EXPECT_THAT(wrong, StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(wrong, HasSubstr("\r\nAllow: POST\r\n"));
  EXPECT_THAT(wrong, HasSubstr("invalid_request_error"));
  EXPECT_THAT(ask(post("/ping", "")), HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_THAT(ask("GET /item/a%2Fb?x=1 HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("<a/b>"));
}

TEST_F(HttpTest, RefusesWhatIsNotHttp) {
  serve();
  for (const char* bytes :
       {"hello\r\n\r\n", "GET /ping HTTP/3.0\r\nHost: x\r\n\r\n", "GET ping HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /ping HTTP/1.1\r\n\r\n", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    RawClient client(port());
    client.send(bytes);
    EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 400 ")) << bytes;
    EXPECT_TRUE(client.closed());
  }
  EXPECT_THAT(ask(get("/ping")), EndsWith("pong"));
}

TEST_F(HttpTest, RefusesWhatIsTooLarge) {
  serve({.header_bytes = 1024, .body_bytes = 100'000});
  EXPECT_THAT(ask("GET /ping HTTP/1.1\r\nHost: x\r\nLong: " + std::string(5000, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask(post("/echo", std::string(100'000, 'a'))), StartsWith("HTTP/1.1 200 "));
  // The whole body is sent before the answer is read: it must arrive all the same.
  EXPECT_THAT(ask(post("/echo", std::string(3'000'000, 'a'))), StartsWith("HTTP/1.1 413 "));
  std::string chunks = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 200; i++) chunks += "400\r\n" + std::string(1024, 'a') + "\r\n";
  EXPECT_THAT(ask(chunks), StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpTest, BoundsTheBodiesOfAllConnections) {
  serve({.body_bytes = 1'000'000, .all_bodies_bytes = 1'500'000});
  RawClient first(port());
  first.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nxx");
  std::this_thread::sleep_for(50ms);
  RawClient second(port());
  second.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nxx");
  EXPECT_THAT(second.response(), StartsWith("HTTP/1.1 503 "));
  first.leave();
  std::this_thread::sleep_for(50ms);
  EXPECT_THAT(ask(post("/echo", std::string(1'000'000, 'a'))), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpTest, BodiesInChunksCountAsTheyCome) {
  serve({.body_bytes = 1'000'000, .all_bodies_bytes = 1'500'000});
  const auto begin = [](size_t bytes) {
    std::string text = "POST /hold HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (size_t i = 0; i < bytes; i += 1000) text += "3e8\r\n" + std::string(1000, 'a') + "\r\n";
    return text;
  };
  // However many small ones are answered and read at once.
  std::vector<std::unique_ptr<RawClient>> small;
  for (int i = 0; i < 8; i++) {
    small.push_back(std::make_unique<RawClient>(port()));
    small.back()->send(begin(1000) + (i % 2 == 0 ? "0\r\n\r\n" : ""));
  }
  ASSERT_TRUE(held(3));
  EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
              EndsWith("hello"));
  RawClient first(port()), second(port());
  first.send(begin(900'000));
  std::this_thread::sleep_for(50ms);
  second.send(begin(900'000));
  EXPECT_THAT(second.response(), StartsWith("HTTP/1.1 503 "));
  first.leave();
  std::this_thread::sleep_for(50ms);
  EXPECT_THAT(ask(post("/echo", std::string(1'000'000, 'a'))), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpTest, EndsSlowRequests) {
  serve({.idle = 150ms, .header = 300ms, .body = 300ms});
  RawClient idle(port());
  EXPECT_EQ(idle.rest(2000ms), "");
  EXPECT_TRUE(idle.closed());

  // A byte now and then doesn't extend the time.
  RawClient slow(port());
  const auto begin = std::chrono::steady_clock::now();
  std::string answer;
  const std::string header = "GET /ping HTTP/1.1\r\nHost: x\r\n" + std::string(1000, 'X');
  for (size_t i = 0; i < header.size() && answer.empty(); i++) {
    slow.send(header.substr(i, 1));
    answer = slow.rest(20ms);
  }
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 408 "));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1500ms);

  RawClient half(port());
  half.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_THAT(half.response(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpTest, SaysWhenAllConnectionsAreTaken) {
  serve({.connections = 4});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 4; i++) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->send(get("/ping"));
    EXPECT_THAT(clients.back()->response(), EndsWith("pong"));
  }
  RawClient more(port());
  EXPECT_THAT(more.rest(), StartsWith("HTTP/1.1 503 "));
  clients.clear();
  std::this_thread::sleep_for(50ms);
  EXPECT_THAT(ask(get("/ping")), EndsWith("pong"));
}

TEST_F(HttpTest, AHandlerThatThrowsCostsOneRequest) {
  serve();
  RawClient client(port());
  client.send(post("/throw", "{}"));
  EXPECT_THAT(client.response(), StartsWith("HTTP/1.1 500 "));
  client.send(get("/ping"));
  EXPECT_THAT(client.response(), EndsWith("pong"));
}

TEST_F(HttpTest, StreamsInChunks) {
  serve();
  RawClient client(port());
  client.send(post("/stream", "{}"));
  EXPECT_THAT(client.until("first;\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  const auto reply = held();
  ASSERT_TRUE(reply);
  reply->write("second");
  EXPECT_EQ(client.until("second\r\n"), "6\r\nsecond\r\n");
  reply->write(std::string(300, 'x'));
  reply->finish();
  reply->write("too late");
  EXPECT_THAT(client.until("\r\n0\r\n\r\n"), StartsWith("12c\r\nxxx"));
  client.send(get("/ping"));
  EXPECT_THAT(client.response(), EndsWith("pong"));
  EXPECT_EQ(cancels_, 0);
}

TEST_F(HttpTest, StreamsToAnHttp10Client) {
  serve();
  RawClient client(port());
  client.send("POST /stream HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}");
  ASSERT_TRUE(held());
  held()->write("second;");
  held()->finish();
  const std::string answer = client.rest();
  EXPECT_THAT(answer, EndsWith("\r\n\r\nfirst;second;"));
  EXPECT_THAT(answer, Not(HasSubstr("chunked")));
}

TEST_F(HttpTest, NoticesAClientThatLeavesWhileWaiting) {
  serve();
  RawClient client(port());
  client.send(post("/hold", "{}"));
  ASSERT_TRUE(held());
  EXPECT_FALSE(held()->gone());
  client.leave();
  EXPECT_TRUE(cancelled(1));
  EXPECT_TRUE(held()->gone());
  held()->send({.body = "nobody"});  // no effect
}

TEST_F(HttpTest, NoticesAClientThatLeavesWhileStreaming) {
  serve();
  RawClient client(port());
  client.send(post("/stream", "{}"));
  client.until("first;");
  ASSERT_TRUE(held());
  client.leave();
  EXPECT_TRUE(cancelled(1));
  held()->write("nobody");
  held()->finish();
}

TEST_F(HttpTest, CutsOffASlowReader) {
  serve({.stream_buffer_bytes = 100'000});
  RawClient client(port(), 4096);
  client.send(post("/stream", "{}"));
  client.until("first;");
  ASSERT_TRUE(held());
  const std::string part(10'000, 'x');
  int written = 0;
  while (!held()->gone() && written < 5000) {
    held()->write(part);
    written++;
    if (written % 10 == 0) std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(cancelled(1));
  EXPECT_LT(written, 5000);  // 50 MB would have been buffered
  EXPECT_THAT(ask(get("/ping")), EndsWith("pong"));
}

TEST_F(HttpTest, ALongPartIsNoSlowReader) {
  serve({.stream_buffer_bytes = 100'000});
  RawClient client(port());
  client.send(post("/stream", "{}"));
  client.until("first;");
  ASSERT_TRUE(held());
  held()->write(std::string(5'000'000, 'x'));
  for (int i = 0; i < 5; i++) held()->write("token;");
  held()->finish();
  EXPECT_THAT(client.until("\r\n0\r\n\r\n"), EndsWith("token;\r\n0\r\n\r\n"));
  EXPECT_EQ(cancels_, 0);
}

TEST_F(HttpTest, CutsOffAReaderThatTakesNothing) {
  serve({.write = 200ms});
  RawClient client(port(), 4096);
  client.send(post("/stream", "{}"));
  client.until("first;");
  ASSERT_TRUE(held());
  for (int i = 0; i < 90; i++) held()->write(std::string(100'000, 'x'));
  EXPECT_TRUE(cancelled(1));
}

TEST_F(HttpTest, ALongHandlerDoesNotHoldUpTheQuickOnes) {
  serve();
  RawClient client(port());
  client.send(post("/hold", "{}"));
  ASSERT_TRUE(held());
  EXPECT_THAT(ask(get("/ping")), EndsWith("pong"));
  held()->send({.body = "done"});
  EXPECT_THAT(client.response(), EndsWith("done"));
}

TEST_F(HttpTest, StopsGracefully) {
  serve();
  RawClient idle(port());
  idle.send(get("/ping"));
  idle.response();
  RawClient client(port());
  client.send(post("/hold", "{}"));
  ASSERT_TRUE(held());
  server_->stop(5s);
  EXPECT_EQ(idle.rest(), "");
  EXPECT_TRUE(idle.closed());
  EXPECT_FALSE(server_->stopped());
  held()->send({.body = "last"});
  const std::string answer = client.rest();
  EXPECT_THAT(answer, EndsWith("last"));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  client.leave();
  for (int i = 0; i < 1000 && !server_->stopped(); i++) std::this_thread::sleep_for(2ms);
  EXPECT_TRUE(server_->stopped());
  EXPECT_FALSE(RawClient(port()).connected());
}

TEST_F(HttpTest, CutsWhatOutlivesTheGrace) {
  serve();
  RawClient client(port());
  client.send(post("/stream", "{}"));
  client.until("first;");
  ASSERT_TRUE(held());
  server_->stop(100ms);
  EXPECT_TRUE(cancelled(1));
  for (int i = 0; i < 1000 && !server_->stopped(); i++) std::this_thread::sleep_for(2ms);
  EXPECT_TRUE(server_->stopped());
  held()->write("late");  // no effect, no crash
  held()->post([] { FAIL(); });
}

TEST_F(HttpTest, AsksTheGuardBeforeItReadsTheBody) {
  serve({}, key_guard({"secret", "other key"}));
  EXPECT_THAT(ask(get("/health")), StartsWith("HTTP/1.1 404 "));  // needs no key, though it isn't there
  const std::string refused = ask(post("/echo", "body"));
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(refused, HasSubstr("WWW-Authenticate: Bearer\r\n"));
  EXPECT_THAT(refused, HasSubstr("invalid_api_key"));
  RawClient unread(port());
  unread.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_THAT(unread.response(), StartsWith("HTTP/1.1 401 "));
  for (const char* wrong : {"Bearer ", "Bearer secre", "Bearer secrets", "Bearer secretsecret", "Bearer Secret", "secret",
                            "Basic secret", "Bearer  secret"}) {
    EXPECT_THAT(ask(post("/echo", "body", "Authorization: " + std::string(wrong) + "\r\n")), StartsWith("HTTP/1.1 401 "))
        << wrong;
  }
  EXPECT_THAT(ask(get("/nothing")), StartsWith("HTTP/1.1 401 "));
  for (const char* right :
       {"Authorization: Bearer secret\r\n", "authorization: bearer other key\r\n", "X-Api-Key: secret\r\n"}) {
    EXPECT_THAT(ask(post("/echo", "body", right)), EndsWith("body")) << right;
  }
}

TEST_F(HttpTest, RecordsWhatBecameOfEachRequest) {
  serve();
  ask(get("/ping"));
  ask(get("/nothing"));
  {
    RawClient client(port());
    client.send(post("/hold", "{}"));
    ASSERT_TRUE(held());
  }
  EXPECT_TRUE(cancelled(1));
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(records_.size(), 3u);
  EXPECT_EQ(records_[0].method, "GET");
  EXPECT_EQ(records_[0].path, "/ping");
  EXPECT_EQ(records_[0].status, 200);
  EXPECT_EQ(records_[0].remote, "127.0.0.1");
  EXPECT_GT(records_[0].bytes, 50u);
  EXPECT_TRUE(records_[0].complete);
  EXPECT_EQ(records_[1].status, 404);
  EXPECT_EQ(records_[2].path, "/hold");
  EXPECT_EQ(records_[2].status, 499);
  EXPECT_FALSE(records_[2].complete);
}

TEST(HttpServer, SaysWhyItCannotListen) {
  const auto first = served(Router());
  ASSERT_TRUE(first);
  const std::string in_use = "Can't listen on 127.0.0.1 port " + std::to_string(first->port()) +
                             ": Address already in use. Choose another port, or 0 for a free one.";
  const auto second = HttpServer::bind("127.0.0.1", first->port());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message, in_use);
  const auto elsewhere = HttpServer::bind("192.0.2.1", 0);  // an address for documentation, of no machine
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_THAT(elsewhere.error().message, HasSubstr("No such address to listen on: 192.0.2.1 port 0"));
  EXPECT_FALSE(HttpServer::bind("no such host", 0).ok());
}

TEST(HttpServer, LetsNobodyInBeforeItServes) {
  Router router;
  router.add("GET", "/ping", Where::io, [](const HttpRequest&, const auto& reply) { reply->send({.body = "pong"}); });
  const auto server = HttpServer::bind("127.0.0.1", 0);
  ASSERT_TRUE(server.ok());
  EXPECT_FALSE(RawClient((*server)->port()).connected());
  const auto other = HttpServer::bind("127.0.0.1", (*server)->port());  // both may hope for it while neither listens
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE((*server)->serve(std::move(router)).ok());
  RawClient client((*server)->port());
  client.send("GET /ping HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.until("pong"), HasSubstr("pong"));
  const auto late = (*other)->serve(Router());
  ASSERT_FALSE(late.ok());
  EXPECT_THAT(late.error().message, HasSubstr("Address already in use"));
}

}  // namespace
}  // namespace unisono::serve
