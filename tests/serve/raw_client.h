// A client that sends exactly the bytes a test wants, over a plain socket.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace unisono::serve {

class RawClient {
 public:
  explicit RawClient(uint16_t port, int receive_buffer = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~RawClient() { leave(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  // Reads until what came contains `end` (and keeps what follows for the next call), the server closes, or time is up.
  std::string until(std::string_view end, std::chrono::milliseconds time = std::chrono::milliseconds(3000)) {
    const auto deadline = std::chrono::steady_clock::now() + time;
    for (;;) {
      if (const size_t at = waiting_.find(end); !end.empty() && at != std::string::npos) {
        const std::string out = waiting_.substr(0, at + end.size());
        waiting_.erase(0, at + end.size());
        return out;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd poll_it{.fd = socket_, .events = POLLIN, .revents = 0};
      if (left.count() <= 0 || ::poll(&poll_it, 1, static_cast<int>(left.count())) <= 0) break;
      char bytes[65536];
      const ssize_t n = ::recv(socket_, bytes, sizeof bytes, 0);
      if (n <= 0) {
        closed_ = true;
        break;
      }
      waiting_.append(bytes, static_cast<size_t>(n));
    }
    std::string out;
    out.swap(waiting_);
    return out;
  }
  // All that comes until the server closes.
  std::string rest(std::chrono::milliseconds time = std::chrono::milliseconds(3000)) { return until("", time); }
  bool closed() const { return closed_; }

  // One whole response with a Content-Length.
  std::string response() {
    std::string out = until("\r\n\r\n");
    const size_t at = out.find("Content-Length: ");
    if (at == std::string::npos) return out;
    size_t left = std::stoul(out.substr(at + 16));
    while (waiting_.size() < left && !closed_) {
      const size_t before = waiting_.size();
      std::string more = until("", std::chrono::milliseconds(50));
      waiting_ = more + waiting_;
      if (waiting_.size() == before) break;
    }
    out += waiting_.substr(0, left);
    waiting_.erase(0, left);
    return out;
  }

  void leave() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
  bool connected_ = false;
  bool closed_ = false;
  std::string waiting_{};
};

inline std::string post(std::string_view path, std::string_view body, std::string_view more_headers = "") {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + std::string(more_headers) + "\r\n" + std::string(body);
}

inline std::string get(std::string_view path) { return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n"; }

}  // namespace unisono::serve
