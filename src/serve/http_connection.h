// One client's connection: reads requests one after another, hands each to its handler, writes the answers, watches
// whether the client is still there. Everything here happens on the I/O thread, except what Exchange says.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "serve/api_error.h"
#include "serve/http_cors.h"
#include "serve/http_message.h"
#include "serve/http_stream.h"
#include "serve/reply.h"
#include "serve/router.h"

namespace unisono::serve {

class Connection;

// What the connections of a server share.
struct HttpCore {
  boost::asio::io_context io{1};
  boost::asio::thread_pool small_bodies{1};
  boost::asio::thread_pool large_bodies{1};
  Router router{};
  HttpLimits limits{};
  Guard guard{};
  Cors cors{};
  std::optional<boost::asio::ssl::context> tls{};
  OnAnswered on_answered{};
  std::atomic<bool> stopped{false};  // the I/O thread has ended or is about to

  // Of the I/O thread only.
  std::unordered_set<std::shared_ptr<Connection>> connections{};
  size_t bodies_bytes = 0;  // reserved by requests in flight
  bool draining = false;
  std::function<void()> on_last_closed{};  // while draining
};

// A request's Reply. It outlives its connection when the handler keeps it, and then does nothing.
class Exchange final : public Reply, public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(std::shared_ptr<HttpCore> core, std::shared_ptr<Connection> connection, Origin origin);

  void send(HttpResponse response) override;
  void begin_stream(HttpResponse response) override;
  void write(std::string part) override;
  void finish() override;
  void on_cancel(std::function<void()> call) override;
  void post(std::function<void()> call) override;
  bool gone() const override { return gone_.load(std::memory_order_relaxed); }
  const Origin& origin() const override { return origin_; }
  void note(JsonObject facts) override;

  // For the connection: the client has left.
  void cancel();
  // For whoever runs a handler: it threw. Answers 500, or cuts a stream that has begun.
  void broken();

 private:
  void on_io(std::function<void()> call);
  void complete();

  std::shared_ptr<HttpCore> core_;
  std::shared_ptr<Connection> connection_;  // until the answer is complete or the client has left
  const Origin origin_;
  std::function<void()> on_cancel_{};
  bool streaming_ = false;
  std::atomic<bool> gone_{false};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, std::shared_ptr<HttpCore> core);

  void start();
  // Ends the connection: at once when no request is being read or answered, else after the answer.
  void drain();
  // Ends it now; a running request is cancelled.
  void cut();

 private:
  friend class Exchange;
  enum class State : uint8_t { greeting, reading, answering, lingering, closed };
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void greet();
  void next_request();
  void parse();
  void read();
  void on_read(boost::system::error_code failure);
  bool accept_header();
  bool reserve(size_t body_bytes);
  void dispatch();
  void run_handler(const Route& route, HttpRequest request);
  HttpRequest request_head() const;
  HttpRequest note_head();

  void refuse(const ApiError& error);
  void respond(const HttpResponse& response);
  void begin_stream(const HttpResponse& response);
  void write_part(const std::string& part);
  void end_answer();
  void add_head(const HttpResponse& response, bool stream);
  void add_chunk(const std::string& part);
  void flush();
  void write_some();
  void answered();

  void arm(std::chrono::milliseconds time);
  void on_deadline();
  void linger();
  void close();
  void release_body();
  void record(bool complete);

  std::shared_ptr<HttpCore> core_;
  Stream stream_;
  boost::asio::steady_timer timer_;
  State state_ = State::greeting;

  boost::beast::flat_buffer in_{};
  std::optional<Parser> parser_{};
  bool read_pending_ = false;
  bool header_accepted_ = false;
  size_t reserved_ = 0;  // of HttpCore::bodies_bytes
  std::chrono::steady_clock::time_point begun_{};
  AccessRecord record_{};
  std::string remote_{};
  Headers more_headers_{};  // of the answer, CORS's

  std::shared_ptr<Exchange> exchange_{};
  bool head_only_ = false;  // HEAD: no body
  bool keep_alive_ = false;
  bool chunked_ = false;   // false: the end of a stream is the end of the connection
  bool complete_ = false;  // the whole answer is in out_ and flight_
  std::string out_{};      // to be written
  std::string flight_{};   // being written
  size_t sent_ = 0;        // of flight_
  size_t long_parts_ = 0;  // bytes of long parts since everything was taken: no sign of a slow reader
  bool write_pending_ = false;
};

}  // namespace unisono::serve
