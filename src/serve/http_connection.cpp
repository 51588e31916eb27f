#include "serve/http_connection.h"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>

#include "text/unicode.h"

namespace unisono::serve {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr size_t kReadBytes = 16 * 1024;
constexpr size_t kPipelinedBytes = 64 * 1024;  // read ahead while a request is answered
constexpr size_t kSmallBody = 32 * 1024;       // larger ones have their own worker
constexpr std::chrono::milliseconds kLinger{2'000};
constexpr int kClientLeft = 499;  // as other servers log it

ApiError parse_error(const error_code& failure, const HttpLimits& limits) {
  if (failure == http::error::body_limit) {
    return {.status = 413,
            .message = "The body is larger than the " + std::to_string(limits.body_bytes) + " bytes this server takes.",
            .code = "body_too_large"};
  }
  if (failure == http::error::header_limit) {
    return {.status = 431,
            .message = "The header is larger than the " + std::to_string(limits.header_bytes) + " bytes this server takes.",
            .code = "header_too_large"};
  }
  return {.status = 400, .message = "Not an HTTP/1.1 request: " + failure.message() + ".", .code = "bad_http"};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// What follows the host of "/path?query" or "http://host/path?query" (RFC 9112, 3.2.1 and 3.2.2); absent: it is neither.
std::optional<std::string_view> path_and_query(std::string_view target) {
  if (target.starts_with('/')) return target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() == scheme.size() || !boost::beast::iequals(target.substr(0, scheme.size()), scheme)) continue;
    const size_t end = target.find_first_of("/?", scheme.size());
    if (end == scheme.size()) return {};
    return end == target.npos ? std::string_view() : target.substr(end);
  }
  return {};
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      out += c;
    } else {
      out += {'%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
    }
  }
  return out;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    if (escape) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

Connection::Connection(tcp::socket socket, std::shared_ptr<HttpCore> core)
    : core_(std::move(core)), stream_(std::move(socket), core_->tls ? &*core_->tls : nullptr), timer_(core_->io) {}

void Connection::start() {
  error_code ignored;
  tcp::socket& socket = stream_.socket();
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);  // to notice clients that vanished
  const auto from = socket.remote_endpoint(ignored);
  if (!ignored) remote_ = from.address().to_string();
  if (stream_.secure()) return greet();
  next_request();
}

void Connection::greet() {
  arm(core_->limits.handshake);
  stream_.handshake([self = shared_from_this()](error_code failure) {
    if (self->state_ == State::closed) return;
    if (failure || self->core_->draining) return self->cut();
    self->next_request();
  });
}

// ---- Reading a request

void Connection::next_request() {
  state_ = State::reading;
  header_accepted_ = false;
  record_ = {.remote = remote_};
  more_headers_.clear();
  begun_ = std::chrono::steady_clock::now();
  parser_.emplace();
  parser_->eager(true);
  parser_->header_limit(static_cast<uint32_t>(core_->limits.header_bytes));
  parser_->body_limit(core_->limits.body_bytes);
  arm(in_.size() > 0 ? core_->limits.header : core_->limits.idle);
  parse();
}

void Connection::parse() {
  size_t used = 1;
  while (in_.size() > 0 && used > 0 && !parser_->is_done()) {
    error_code failure;
    used = parser_->put(in_.data(), failure);
    in_.consume(used);
    if (failure && failure != http::error::need_more) {
      note_head();
      return refuse(parse_error(failure, core_->limits));
    }
    if (parser_->is_header_done() && !header_accepted_ && !accept_header()) return;
    // How long a body of chunks is shows when it comes.
    if (parser_->is_header_done() && parser_->chunked() && !reserve(parser_->get().body().size())) return;
    if (failure) break;
  }
  if (parser_->is_done()) return dispatch();
  read();
}

// For whatever is told of the request and to whom: of a header that is refused, as far as it was understood.
HttpRequest Connection::note_head() {
  HttpRequest head = request_head();
  record_.method = head.method;
  record_.path = head.path;
  more_headers_ = core_->cors.headers(head);
  return head;
}

// Decides by the header alone whether the body is wanted.
bool Connection::accept_header() {
  header_accepted_ = true;
  const HttpRequest head = note_head();
  const auto& header = parser_->get();
  if (header.version() == 11 && header[http::field::host].empty() && header.find(http::field::host) == header.end()) {
    refuse({.status = 400, .message = "The request has no Host header.", .code = "bad_http"});
    return false;
  }
  if (!path_and_query({header.target().data(), header.target().size()})) {
    refuse({.status = 400,
            .message = "The request's target must be a path beginning with '/', or a whole address beginning with 'http'.",
            .code = "bad_http"});
    return false;
  }
  if (parser_->chunked() && !boost::beast::iequals(header[http::field::transfer_encoding], "chunked")) {
    refuse({.status = 501, .message = "Of transfer codings only 'chunked' can be read here.", .code = "bad_http"});
    return false;
  }
  if (core_->guard && !core_->cors.is_question(head)) {
    const Verdict verdict = core_->guard(head);
    if (verdict.refusal) {
      refuse(*verdict.refusal);
      return false;
    }
    record_.owner = verdict.owner;
  }
  if (!reserve(static_cast<size_t>(parser_->content_length().value_or(0)))) return false;
  if (parser_->is_done()) return true;
  arm(core_->limits.body);
  if (header.version() == 11 && boost::beast::iequals(header[http::field::expect], "100-continue")) {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    flush();
  }
  return true;
}

// Of the memory for all bodies; small ones need none. False: there isn't so much left, and the client is told.
bool Connection::reserve(size_t body_bytes) {
  if (body_bytes <= std::max(reserved_, kSmallBody)) return true;
  if (core_->bodies_bytes - reserved_ + body_bytes > core_->limits.all_bodies_bytes) {
    refuse({.status = 503, .message = "Too many large requests at once; try again.", .code = "overloaded"});
    return false;
  }
  core_->bodies_bytes += body_bytes - reserved_;
  reserved_ = body_bytes;
  return true;
}

void Connection::read() {
  if (read_pending_ || state_ == State::closed) return;
  if (state_ == State::answering && in_.size() >= kPipelinedBytes) return;
  read_pending_ = true;
  stream_.read_some(in_.prepare(kReadBytes), [self = shared_from_this()](error_code failure, size_t n) {
    self->read_pending_ = false;
    self->in_.commit(n);
    self->on_read(failure);
  });
}

void Connection::on_read(error_code failure) {
  if (state_ == State::closed) return;
  if (failure) return cut();
  switch (state_) {
    case State::reading:
      if (!parser_->got_some()) {
        arm(core_->limits.header);
        begun_ = std::chrono::steady_clock::now();
      }
      return parse();
    case State::answering: return read();
    case State::greeting: return;
    case State::lingering: in_.consume(in_.size()); return read();
    case State::closed: return;
  }
}

HttpRequest Connection::request_head() const {
  const auto& message = parser_->get();
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string_view whole(message.target().data(), message.target().size());
  const std::string_view target = path_and_query(whole).value_or(whole);
  const size_t query = target.find('?');
  request.path = percent_decode(target.substr(0, query));
  if (request.path.empty()) request.path = "/";
  // What is told of a path is told in JSON.
  if (text::valid_prefix(request.path) < request.path.size()) request.path = percent_encode(target.substr(0, query));
  if (query != target.npos) request.query = target.substr(query + 1);
  for (const auto& field : message) request.headers.emplace_back(field.name_string(), field.value());
  return request;
}

void Connection::dispatch() {
  state_ = State::answering;
  timer_.cancel();
  head_only_ = parser_->get().method() == http::verb::head;
  chunked_ = parser_->get().version() >= 11;
  keep_alive_ = parser_->keep_alive() && !core_->draining;
  complete_ = false;
  exchange_ =
      std::make_shared<Exchange>(core_, shared_from_this(), Origin{record_.owner, std::chrono::steady_clock::now()});
  HttpRequest request = request_head();
  request.owner = record_.owner;
  request.body = std::move(parser_->get().body());
  if (core_->cors.is_question(request)) {
    exchange_->send(Cors::answer());
    return read();
  }
  Router::Match match = core_->router.find(request.method, request.path);
  if (match.route) {
    request.tail = std::move(match.tail);
    run_handler(*match.route, std::move(request));
  } else if (match.allow.empty()) {
    exchange_->send(core_->router.error(
        request.path, {.status = 404, .message = "There is nothing at " + request.path + ".", .code = "unknown_url"}));
  } else {
    HttpResponse response = core_->router.error(
        request.path, {.status = 405,
                       .message = request.path + " takes " + match.allow + ", not " + request.method + ".",
                       .code = "method_not_allowed"});
    response.headers.emplace_back("Allow", match.allow);
    exchange_->send(std::move(response));
  }
  read();  // to learn when the client leaves
}

void Connection::run_handler(const Route& route, HttpRequest request) {
  auto run = [&route, exchange = exchange_](const HttpRequest& whole) {
    try {
      route.handler(whole, exchange);
    } catch (const std::exception&) {
      exchange->broken();
    }
  };
  if (route.where == Where::io) return run(request);
  auto& workers = request.body.size() > kSmallBody ? core_->large_bodies : core_->small_bodies;
  asio::post(workers, [run, exchange = exchange_, whole = std::make_shared<HttpRequest>(std::move(request))] {
    if (!exchange->gone()) run(*whole);
  });
}

// ---- The connection's time and end

void Connection::arm(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this()](error_code failure) {
    // A wait that had ended before the timer was set anew arrives without a failure.
    if (!failure && self->timer_.expiry() <= std::chrono::steady_clock::now()) self->on_deadline();
  });
}

void Connection::on_deadline() {
  const bool half_read = state_ == State::reading && parser_->got_some();
  if (!half_read) return cut();
  refuse({.status = 408, .message = "The request took too long to arrive.", .code = "request_timeout"});
}

void Connection::drain() {
  const bool idle = state_ == State::greeting || (state_ == State::reading && !parser_->got_some());
  if (idle) return cut();
  keep_alive_ = false;
}

void Connection::cut() {
  if (state_ == State::closed) return;
  const auto self = shared_from_this();
  const auto exchange = std::move(exchange_);
  exchange_.reset();
  close();
  if (!exchange) return;
  exchange->cancel();
  record(false);
}

// Lets the client read the answer before the connection goes: closing with unread bytes would destroy it.
void Connection::linger() {
  state_ = State::lingering;
  stream_.end_writing(shared_from_this());
  in_.consume(in_.size());
  arm(kLinger);
  read();
}

void Connection::close() {
  state_ = State::closed;
  timer_.cancel();
  stream_.close();
  release_body();
  core_->connections.erase(shared_from_this());
  if (core_->draining && core_->connections.empty() && core_->on_last_closed) core_->on_last_closed();
}

void Connection::record(bool complete) {
  if (!core_->on_answered) return;
  record_.complete = complete;
  if (record_.status == 0) record_.status = kClientLeft;
  record_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  core_->on_answered(record_);
}

void Connection::release_body() {
  core_->bodies_bytes -= reserved_;
  reserved_ = 0;
}

}  // namespace unisono::serve
