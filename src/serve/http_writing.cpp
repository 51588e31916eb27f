// How a connection's answers become bytes: heads, chunks, and a queue that a slow reader can't grow without end.
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/status.hpp>
#include <ctime>

#include "serve/http_connection.h"

namespace unisono::serve {

namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

// A part of this size tells of a whole prompt or the like: it waits because it is long, not because its reader is slow.
constexpr size_t kLongPart = 64 * 1024;

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 40> text{};
  const size_t n = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), n};
}

std::string hex(size_t n) {
  std::string out;
  do {
    out.insert(out.begin(), "0123456789abcdef"[n % 16]);
    n /= 16;
  } while (n > 0);
  return out;
}

}  // namespace

// An answer from the connection itself, to a request that isn't read to its end.
void Connection::refuse(const ApiError& error) {
  state_ = State::answering;
  timer_.cancel();
  keep_alive_ = false;
  head_only_ = parser_->get().method() == http::verb::head;
  respond(core_->router.error(record_.path, error));
}

void Connection::add_head(const HttpResponse& response, bool stream) {
  record_.status = response.status;
  const auto reason = http::obsolete_reason(static_cast<http::status>(response.status));
  out_ += "HTTP/1.1 " + std::to_string(response.status) + " ";
  out_.append(reason.data(), reason.size());
  out_ += "\r\nDate: " + http_date() + "\r\n";
  if (!response.content_type.empty()) out_ += "Content-Type: " + response.content_type + "\r\n";
  for (const auto& [name, value] : response.headers) out_ += name + ": " + value + "\r\n";
  for (const auto& [name, value] : more_headers_) out_ += name + ": " + value + "\r\n";
  if (!stream && response.status != 204) {
    out_ += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  } else if (stream && chunked_) {
    out_ += "Transfer-Encoding: chunked\r\n";
  }
  out_ += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
}

void Connection::respond(const HttpResponse& response) {
  add_head(response, false);
  if (!head_only_) out_ += response.body;
  complete_ = true;
  flush();
}

void Connection::begin_stream(const HttpResponse& response) {
  if (!chunked_) keep_alive_ = false;
  add_head(response, true);
  add_chunk(response.body);
  flush();
}

void Connection::write_part(const std::string& part) {
  add_chunk(part);
  const size_t waiting = out_.size() + flight_.size() - sent_;
  if (waiting > core_->limits.stream_buffer_bytes + long_parts_) return cut();
  flush();
}

void Connection::add_chunk(const std::string& part) {
  if (part.empty() || head_only_) return;
  if (part.size() >= kLongPart) long_parts_ += part.size();
  if (!chunked_) {
    out_ += part;
  } else {
    out_ += hex(part.size()) + "\r\n" + part + "\r\n";
  }
}

void Connection::end_answer() {
  if (chunked_ && !head_only_) out_ += "0\r\n\r\n";
  complete_ = true;
  flush();
}

void Connection::flush() {
  if (write_pending_ || state_ == State::closed) return;
  if (out_.empty()) {
    long_parts_ = 0;
    if (complete_) answered();
    return;
  }
  flight_.clear();
  flight_.swap(out_);
  sent_ = 0;
  write_some();
}

void Connection::write_some() {
  write_pending_ = true;
  if (state_ == State::answering) arm(core_->limits.write);
  stream_.write_some(boost::asio::buffer(flight_.data() + sent_, flight_.size() - sent_),
                     [self = shared_from_this()](error_code failure, size_t n) {
                       self->write_pending_ = false;
                       if (self->state_ == State::closed) return;
                       if (failure) return self->cut();
                       self->sent_ += n;
                       self->record_.bytes += n;
                       if (self->sent_ < self->flight_.size()) return self->write_some();
                       if (self->state_ == State::answering) self->timer_.cancel();
                       self->flush();
                     });
}

void Connection::answered() {
  complete_ = false;
  exchange_.reset();
  record(true);
  release_body();
  if (keep_alive_ && !core_->draining) {
    next_request();
  } else {
    linger();
  }
}

}  // namespace unisono::serve
