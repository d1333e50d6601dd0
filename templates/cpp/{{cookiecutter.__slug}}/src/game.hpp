// game.hpp - Chase, the game that your engine replaces. It knows nothing of envpool.
//
// On a square field of side 1, players collect coins for a point each and flee from a hunter, who
// takes a point from whom he touches and puts him out of the game.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

struct Place {
  float x = 0, y = 0;

  bool touches(const Place& other) const {
    return std::abs(x - other.x) < 0.06f && std::abs(y - other.y) < 0.06f;
  }
  template <class Archive>
  void state(Archive& a) {
    a(x, y);
  }
};

struct Player {
  Place at;
  float points = 0;  // of the last step
  std::int32_t coins = 0;
  std::uint8_t in_play = 1;

  template <class Archive>
  void state(Archive& a) {
    a(at, points, coins, in_play);
  }
};

struct Game {
  static constexpr int player_count = {{ cookiecutter.players }};

  float hunter_speed = 0.02f;  // a step
  std::uint64_t random = 0;    // state of the generator
  std::array<Player, player_count> players;
  Place coin, hunter;

  void start() {
    for (Player& p : players) p = {.at = {uniform() < 0.5f ? 0.f : 1.f, uniform()}};
    coin = {uniform(), uniform()};
    hunter = {0.5f, 0.5f};
  }

  // Moves a player by a direction whose parts are within [-1, 1]; in force at once.
  void move(int player, float dx, float dy) {
    Player& p = players[player];
    if (!p.in_play) return;
    p.at.x = on_field(p.at.x + 0.04f * limited(dx, 1));
    p.at.y = on_field(p.at.y + 0.04f * limited(dy, 1));
  }

  // Everyone has moved: the hunter follows, and it is seen who got what.
  void advance() {
    const Player* prey = nullptr;
    for (const Player& p : players)
      if (p.in_play && (prey == nullptr || distance(p) < distance(*prey))) prey = &p;
    if (prey == nullptr) return;
    hunter.x += limited(prey->at.x - hunter.x, hunter_speed);
    hunter.y += limited(prey->at.y - hunter.y, hunter_speed);
    for (Player& p : players) {
      p.points = 0;
      if (!p.in_play) continue;
      if (p.at.touches(coin)) {
        p.points += 1;
        ++p.coins;
        coin = {uniform(), uniform()};
      }
      if (p.at.touches(hunter)) {
        p.points -= 1;
        p.in_play = 0;
      }
    }
  }

  bool over() const {
    return std::ranges::none_of(players, [](const Player& p) { return p.in_play != 0; });
  }

  // Draws side x side pixels of red, green and blue, as this player sees the field: he is green.
  void draw(std::uint8_t* pixels, std::uint64_t row_bytes, int side, int viewer) const {
    for (int y = 0; y < side; ++y) std::fill_n(pixels + y * row_bytes, 3 * side, std::uint8_t{24});
    const auto square = [&](const Place& at, const std::array<std::uint8_t, 3>& color) {
      const int half = std::max(1, side * 3 / 100);
      const int left = static_cast<int>(on_field(at.x) * static_cast<float>(side - 2 * half));
      const int top = static_cast<int>(on_field(at.y) * static_cast<float>(side - 2 * half));
      for (int y = top; y < top + 2 * half; ++y)
        for (int x = left; x < left + 2 * half; ++x)
          std::ranges::copy(color, pixels + y * row_bytes + 3 * x);
    };
    square(coin, {240, 200, 60});
    for (int i = 0; i < player_count; ++i)
      if (players[i].in_play && i != viewer) square(players[i].at, {70, 130, 230});
    if (players[viewer].in_play) square(players[viewer].at, {90, 220, 120});
    square(hunter, {230, 70, 70});
  }

  template <class Archive>
  void state(Archive& a) {
    a(random, players, coin, hunter);
  }

 private:
  // Not a number counts as 0, so that no action can spoil the game.
  static float limited(float value, float most) {
    return value >= most ? most : value <= -most ? -most : value == value ? value : 0;
  }
  static float on_field(float value) { return value > 1 ? 1 : value > 0 ? value : 0; }
  float distance(const Player& p) const {
    return std::abs(p.at.x - hunter.x) + std::abs(p.at.y - hunter.y);
  }
  // Uniform in [0, 1): Knuth's linear congruential generator (MMIX), its upper 24 bits.
  float uniform() {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(random >> 40) / 16777216.f;
  }
};
