// Result<T>: a value, or the sentence that says why there is none. For bad input, files and requests; our own bugs go
// through check(), and no exception crosses a room.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace unisono {

// Why something a user gave us can't be honoured.
struct Error {
  std::string message{};  // one sentence that says what is wrong and, where we know it, what to change
  std::string subject{};  // what it is about: a metadata key, a tensor, a request field, a flag; may be empty
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Only when ok().
  T& value() & {
    check(ok(), "Result::value() of an error");
    return std::get<0>(state_);
  }
  const T& value() const& {
    check(ok(), "Result::value() of an error");
    return std::get<0>(state_);
  }
  T&& value() && {
    check(ok(), "Result::value() of an error");
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Only when !ok().
  const Error& error() const {
    check(!ok(), "Result::error() of a value");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

// Success, or the sentence.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const {
    check(!ok_, "Result::error() of a success");
    return error_;
  }

 private:
  Error error_{};
  bool ok_ = true;
};

}  // namespace unisono
