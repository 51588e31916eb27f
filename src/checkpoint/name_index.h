// Finds things by name: sorted names with the places they came from. Keeps views; never looks at what is named.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace unisono::checkpoint {

class NameIndex {
 public:
  NameIndex() = default;

  // name(item) of each item must stay where it is as long as the index lives.
  template <class Items, class Name>
  NameIndex(const Items& items, Name name) {
    places_.reserve(items.size());
    for (const auto& item : items) places_.push_back({name(item), places_.size()});
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.name < b.name; });
  }

  std::optional<size_t> find(std::string_view name) const {
    const auto place = std::lower_bound(places_.begin(), places_.end(), name,
                                        [](const Place& p, std::string_view wanted) { return p.name < wanted; });
    if (place == places_.end() || place->name != name) return {};
    return place->at;
  }

  // The first name in order that more than one item has.
  std::optional<std::string_view> repeated() const {
    const auto place =
        std::adjacent_find(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.name == b.name; });
    if (place == places_.end()) return {};
    return place->name;
  }

 private:
  struct Place {
    std::string_view name{};
    size_t at = 0;
  };
  std::vector<Place> places_{};
};

}  // namespace unisono::checkpoint
