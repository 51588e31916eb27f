// Which handler answers a method and a path.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api_error.h"
#include "serve/http_message.h"
#include "serve/reply.h"

namespace unisono::serve {

// The request is valid during the call only.
using Handler = std::function<void(const HttpRequest&, const std::shared_ptr<Reply>&)>;

// Where a handler runs: on the I/O thread, where it must be done within microseconds, or on a worker.
enum class Where : uint8_t { io, worker };

// Decides by a request without its body whether it may go on, and whose it is.
struct Verdict {
  std::optional<ApiError> refusal{};  // its answer
  std::string owner{};                // a name that is no secret; empty: nobody's in particular
};
using Guard = std::function<Verdict(const HttpRequest&)>;

struct Route {
  std::string method{};
  std::string path{};  // a trailing '*' stands for one or more characters
  Where where = Where::worker;
  Handler handler{};
};

class Router {
 public:
  void add(std::string method, std::string path, Where where, Handler handler);

  struct Match {
    const Route* route = nullptr;  // null: no such path, or the path hasn't this method
    std::string tail{};            // what '*' stands for
    std::string allow{};           // the methods of a path that hasn't this one, "GET, HEAD"; empty: no such path
  };
  // A GET route answers HEAD too.
  Match find(std::string_view method, std::string_view path) const;

  // How an error that no handler tells is told, by the request's path, which is empty when it couldn't be read.
  using ErrorShape = std::function<HttpResponse(std::string_view path, const ApiError& error)>;
  void tell_errors_as(ErrorShape shape) { error_shape_ = std::move(shape); }
  // As error_response() has it unless another shape was given.
  HttpResponse error(std::string_view path, const ApiError& error) const {
    return error_shape_ ? error_shape_(path, error) : error_response(error);
  }

 private:
  ErrorShape error_shape_{};
  std::vector<Route> routes_{};
};

}  // namespace unisono::serve
