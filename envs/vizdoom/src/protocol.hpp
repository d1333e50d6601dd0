// protocol.hpp - what the engine of the vizdoom 1.3.2 wheel and its controller say to each other:
// codes of messages, and the memory that both see. Written from the observed behaviour of that
// engine; the assertions below and Engine's checks at start hold it to what it was.
#pragma once

#include <cstddef>
#include <cstdint>

namespace doom {

// GameState::version of the only engine whose layout this is.
inline constexpr std::uint32_t kEngineVersion = 132;

// A message is a code and, for some, a text.
inline constexpr std::size_t kMessageText = 128;
enum class Code : std::uint8_t {
  // From the engine.
  kDone = 11,   // the last order is carried out
  kLeft = 12,   // the engine closes itself
  kError = 13,  // with a text
  // To the engine; each is answered by kDone, but kCommand and kLeave are not.
  kTic = 21,           // play one tic (1/35 s)
  kUpdate = 22,        // write buffers and state
  kTicAndUpdate = 23,  // both
  kCommand = 24,       // with the text of a console command
  kLeave = 25
};

// Names: names.hpp.
inline constexpr std::size_t kButtons = 43;
inline constexpr std::size_t kDeltaButtons = 5;  // the last ones: they take any number
inline constexpr std::size_t kFirstDelta = kButtons - kDeltaButtons;

inline constexpr std::size_t kMostPlayers = 16;
inline constexpr std::size_t kUserVariables = 60;
inline constexpr std::size_t kSlots = 10;  // of weapons, and of ammunition

// Parts of the shared memory, in the order of GameState::offset.
enum class Region { kState, kInput, kScreen, kDepth, kLabels, kAutomap, kAudio, kCount };

struct Label {
  std::uint8_t value;
  std::uint32_t position[2], size[2];
  std::uint32_t object;
  double pose[9];
  char name[128], category[128];
};
struct Object {
  std::uint32_t id;
  std::int32_t sector;
  double pose[9];
  char category[128], name[128];
};
struct Sector {
  std::uint32_t id;
  double floor, ceiling;
  std::uint32_t line_count;
  std::uint32_t lines[1024];
};
struct Line {
  double ends[4];
  bool blocking;
};

// Written by the engine; read between its kDone and the next order.
struct GameState {
  std::uint32_t version;
  char version_text[16];
  std::uint64_t memory_size;
  std::uint64_t offset[7], size[7];  // of each Region
  bool writeable[7];

  std::uint32_t game_tic;
  std::int32_t game_state, game_action;
  std::uint32_t seed;
  bool settings_controlled, net_game, multiplayer, deathmatch, demo_recording, demo_playback,
      openal;

  std::uint32_t width, height;
  std::uint64_t pitch, screen_size;
  std::int32_t format;
  bool depth, labels, automap, objects, sectors, audio, notifications;

  std::uint32_t map_start_tic, map_tic, map_tic_limit;
  std::int32_t map_reward;  // 16.16 fixed point
  std::int32_t user[kUserVariables];
  std::int32_t map_kills, map_items, map_secrets;
  bool map_end;

  bool has_actor, dead;
  char player_name[128];
  std::int32_t kills, items, secrets, frags, deaths;
  bool on_ground;
  std::int32_t health, armor;
  bool attack_ready, alt_attack_ready;
  std::int32_t selected_weapon, selected_weapon_ammo, ammo[kSlots], weapon[kSlots];
  double movement[10];  // position, angle, pitch, roll, view height, velocity
  double camera[7];     // position, angle, pitch, roll, field of view
  bool respawn_ready;

  std::uint32_t player_number;
  std::uint32_t player_count;
  bool player_in_game[kMostPlayers];
  char player_names[kMostPlayers][128];
  std::int32_t player_frags[kMostPlayers];
  bool player_away[kMostPlayers];
  std::uint32_t player_last_action[kMostPlayers], player_last_kill[kMostPlayers];

  std::uint32_t label_count;
  Label label[256];
  std::uint32_t object_count;
  Object object[4096];
  std::uint32_t sector_count;
  Sector sector[2048];
  std::uint32_t line_count;
  Line line[16384];

  std::int32_t hits, hits_taken, damage, damage_taken;
  std::uint32_t notifications_size;
  char notifications_text[32768];
};
static_assert(sizeof(GameState) == 10611848);
static_assert(offsetof(GameState, offset) == 32 && offsetof(GameState, size) == 88);
static_assert(offsetof(GameState, game_tic) == 152 && offsetof(GameState, width) == 176);
static_assert(offsetof(GameState, map_tic) == 216 && offsetof(GameState, user) == 228);
static_assert(offsetof(GameState, map_end) == 480 && offsetof(GameState, health) == 636);
static_assert(offsetof(GameState, ammo) == 656 && offsetof(GameState, movement) == 736);
static_assert(offsetof(GameState, camera) == 816 && offsetof(GameState, label) == 3156 + 4);
static_assert(offsetof(GameState, hits) == 10579056);

// Written by the controller; the engine looks at it in each tic.
struct Input {
  double button[kButtons];  // 0 or 1; of a delta button any number
  bool available[kButtons];
  double most[kDeltaButtons];  // limits of delta buttons; 0: none
  double bound_command[kButtons];
};
static_assert(sizeof(Input) == 776);

}  // namespace doom
