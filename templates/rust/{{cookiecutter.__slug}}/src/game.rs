//! Chase, the game that your engine replaces. It knows nothing of envpool.
//!
//! On a square field of side 1, players collect coins for a point each and flee from a hunter, who takes a point from whom
//! he touches and puts him out of the game.

pub const PLAYERS: usize = {{ cookiecutter.players }};

#[derive(Clone, Copy, Default)]
pub struct Place {
    pub x: f32,
    pub y: f32,
}

#[derive(Clone, Copy, Default)]
pub struct Player {
    pub at: Place,
    pub points: f32, // of the last step
    pub coins: i32,
    pub in_play: u8, // 0 or 1
}

#[derive(Default)]
pub struct Game {
    pub hunter_speed: f32, // a step
    pub random: u64,       // state of the generator
    pub players: [Player; PLAYERS],
    pub coin: Place,
    pub hunter: Place,
}

impl Game {
    pub fn start(&mut self) {
        for i in 0..PLAYERS {
            let x = if self.uniform() < 0.5 { 0.0 } else { 1.0 };
            let at = Place { x, y: self.uniform() };
            self.players[i] = Player { at, in_play: 1, ..Player::default() };
        }
        self.coin = self.anywhere();
        self.hunter = Place { x: 0.5, y: 0.5 };
    }

    /// Moves a player by a direction whose parts are within [-1, 1]; in force at once.
    pub fn go(&mut self, player: usize, dx: f32, dy: f32) {
        let player = &mut self.players[player];
        if player.in_play != 0 {
            player.at.x = on_field(player.at.x + 0.04 * limited(dx, 1.0));
            player.at.y = on_field(player.at.y + 0.04 * limited(dy, 1.0));
        }
    }

    /// Everyone has moved: the hunter follows, and it is seen who got what.
    pub fn advance(&mut self) {
        let mut prey: Option<(f32, Place)> = None;
        for player in self.players.iter().filter(|player| player.in_play != 0) {
            let (dx, dy) = (player.at.x - self.hunter.x, player.at.y - self.hunter.y);
            let distance = dx.abs() + dy.abs();
            if prey.map_or(true, |(nearest, _)| distance < nearest) {
                prey = Some((distance, player.at));
            }
        }
        let prey = match prey {
            Some((_, at)) => at,
            None => return,
        };
        self.hunter.x += limited(prey.x - self.hunter.x, self.hunter_speed);
        self.hunter.y += limited(prey.y - self.hunter.y, self.hunter_speed);
        for i in 0..PLAYERS {
            let mut player = self.players[i];
            player.points = 0.0;
            if player.in_play != 0 {
                if touching(player.at, self.coin) {
                    player.points += 1.0;
                    player.coins += 1;
                    self.coin = self.anywhere();
                }
                if touching(player.at, self.hunter) {
                    player.points -= 1.0;
                    player.in_play = 0;
                }
            }
            self.players[i] = player;
        }
    }

    pub fn over(&self) -> bool {
        self.players.iter().all(|player| player.in_play == 0)
    }

    /// Draws side x side pixels of red, green and blue, as this player sees the field: he is green.
    pub fn draw(&self, pixels: &mut [u8], row_bytes: usize, side: usize, viewer: usize) {
        for row in pixels.chunks_mut(row_bytes) {
            let width = row.len().min(3 * side);
            row[..width].fill(24);
        }
        let mut square = |at: Place, color: [u8; 3]| {
            let half = (side * 3 / 100).max(1);
            let left = (on_field(at.x) * (side - 2 * half) as f32) as usize;
            let top = (on_field(at.y) * (side - 2 * half) as f32) as usize;
            for y in top..top + 2 * half {
                for x in left..left + 2 * half {
                    pixels[y * row_bytes + 3 * x..][..3].copy_from_slice(&color);
                }
            }
        };
        square(self.coin, [240, 200, 60]);
        for (i, player) in self.players.iter().enumerate() {
            if player.in_play != 0 && i != viewer {
                square(player.at, [70, 130, 230]);
            }
        }
        if self.players[viewer].in_play != 0 {
            square(self.players[viewer].at, [90, 220, 120]);
        }
        square(self.hunter, [230, 70, 70]);
    }

    /// Uniform in [0, 1): Knuth's linear congruential generator (MMIX), its upper 24 bits.
    fn uniform(&mut self) -> f32 {
        let next = self.random.wrapping_mul(6364136223846793005);
        self.random = next.wrapping_add(1442695040888963407);
        (self.random >> 40) as f32 / 16777216.0
    }
    fn anywhere(&mut self) -> Place {
        let x = self.uniform();
        Place { x, y: self.uniform() }
    }
}

/// Not a number counts as 0, so that no action can spoil the game.
fn limited(value: f32, most: f32) -> f32 {
    if value.is_nan() {
        0.0
    } else {
        value.max(-most).min(most)
    }
}
fn on_field(value: f32) -> f32 {
    value.clamp(0.0, 1.0)
}
fn touching(a: Place, b: Place) -> bool {
    (a.x - b.x).abs() < 0.06 && (a.y - b.y).abs() < 0.06
}
