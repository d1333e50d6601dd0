{% set many = cookiecutter.players | int > 1 %}
{% set each = ".per_agent()" if many else "" %}
{% set sharing = {"free": "EP_FREE", "one thread": "EP_THREAD_BOUND", "own process": "EP_ONE_PER_PROCESS"}[cookiecutter.sharing] %}
//! What envpool has to know of the engine. To wrap your own, rewrite the members of `Chase`; the trait `envpool::Env` tells
//! all that there may be.

mod envpool;
mod game;

use envpool::abi::*;
use envpool::{Archive, Env, Error, Field, Input, Opt, Spec, StepResult, Values, View};
use game::{Game, PLAYERS};

{% if cookiecutter.observation != "vector" %}
const SIGHT: usize = {{ 64 if cookiecutter.observation == "image" else 32 }}; // pixels a side

{% endif %}
struct Fields {
{% if cookiecutter.observation == "vector" %}
    places: Field<f32>,
{% elif cookiecutter.observation == "image" %}
    sight: Field<u8>,
{% else %}
    own: Field<f32>,
    coin: Field<f32>,
    hunter: Field<f32>,
    sight: Field<u8>,
{% endif %}
    way: Field<{{ "f32" if cookiecutter.action == "continuous" else "i64" }}>,
    coins: Field<i32>,
}

struct Chase {
    fields: Fields,
    game: Game,
}

impl Env for Chase {
    type Fields = Fields;

    const ID: &'static str = "{{ cookiecutter.env_id }}";
    const DOC: &'static str = "{{ cookiecutter.description }}";
    const SHARING: ep_sharing = {{ sharing }};
    const PICTURE: Option<(u32, u32)> = Some((256, 256));
    const STATE_VERSION: Option<u32> = Some(1);

    fn options() -> Vec<Opt> {
        let doc = "how far the hunter goes in a step; a player goes 0.04";
        vec![Opt::float("hunter_speed", 0.02).range(0.0, 0.1).doc(doc)]
    }

    fn describe(s: &mut Spec, _: &Values) -> Fields {
        s.max_agents = PLAYERS as u32;
        s.max_episode_steps = 500;
        s.fps = 30.0;
{% if cookiecutter.observation == "vector" %}
        let of_each = "x, y of self, coin, hunter";
{% else %}
        let image = [SIGHT as i64, SIGHT as i64, 3];
{% endif %}
{% if cookiecutter.action == "discrete" %}
        let ways = ["STAY", "UP", "DOWN", "LEFT", "RIGHT"];
{% endif %}
        Fields {
{% if cookiecutter.observation == "vector" %}
            places: s.obs("", &[6]).within(0.0, 1.0).doc(of_each){{ each }}.add(),
{% elif cookiecutter.observation == "image" %}
            sight: s.obs("", &image).image(EP_HWC){{ each }}.add(),
{% else %}
            own: s.obs("self", &[2]).within(0.0, 1.0).doc("x, y"){{ each }}.add(),
            coin: s.obs("coin", &[2]).within(0.0, 1.0).doc("x, y"){{ each }}.add(),
            hunter: s.obs("hunter", &[2]).within(0.0, 1.0).doc("x, y"){{ each }}.add(),
            sight: s.obs("sight", &image).image(EP_HWC){{ each }}.add(),
{% endif %}
{% if cookiecutter.action == "continuous" %}
            way: s.action("", &[2]).within(-1.0, 1.0).doc("right, down"){{ each }}.add(),
{% elif cookiecutter.action == "multi-discrete" %}
            way: s.action("", &[2]).discrete(&[3]).doc("to the right, down"){{ each }}.add(),
{% else %}
            way: s.action("", &[]).discrete(&[5]).labels(&ways){{ each }}.add(),
{% endif %}
            coins: s.info("coins", &[]).doc("collected so far"){{ each }}.add(),
        }
    }

    fn new(options: &Values, fields: Fields) -> Result<Self, Error> {
        let hunter_speed = options.float("hunter_speed") as f32;
        Ok(Chase { fields, game: Game { hunter_speed, ..Game::default() } })
    }

    fn seed(&mut self, seed: u64) {
        self.game.random = seed;
    }

    fn reset(&mut self, _: &Values) -> Result<(), Error> {
        self.game.start();
        Ok(())
    }

    fn step(&mut self, input: &Input, result: &mut StepResult) -> Result<(), Error> {
        for i in 0..PLAYERS {
            result.alive(i, self.game.players[i].in_play != 0);
            // An action becomes a move of a player.
{% if cookiecutter.action == "continuous" %}
            let way = input.get(&self.fields.way, i);
            self.game.go(i, way[0], way[1]);
{% elif cookiecutter.action == "multi-discrete" %}
            let way = input.get(&self.fields.way, i);
            self.game.go(i, way[0] as f32 - 1.0, way[1] as f32 - 1.0);
{% else %}
            let (dx, dy) = match input.get(&self.fields.way, i)[0] {
                1 => (0.0, -1.0),
                2 => (0.0, 1.0),
                3 => (-1.0, 0.0),
                4 => (1.0, 0.0),
                _ => (0.0, 0.0),
            };
            self.game.go(i, dx, dy);
{% endif %}
        }
        self.game.advance();
        for (i, player) in self.game.players.iter().enumerate() {
            result.reward[i] = player.points.into();
            result.terminated[i] = 1 - player.in_play;
        }
        result.end_episode(self.game.over());
        Ok(())
    }

    fn observe(&self, view: &mut View) {
        let (fields, game) = (&self.fields, &self.game);
        for (i, player) in game.players.iter().enumerate() {
{% if cookiecutter.observation == "vector" %}
            let (at, coin, hunter) = (player.at, game.coin, game.hunter);
            view.put(&fields.places, i, &[at.x, at.y, coin.x, coin.y, hunter.x, hunter.y]);
{% else %}
{% if cookiecutter.observation == "dict" %}
            view.put(&fields.own, i, &[player.at.x, player.at.y]);
            view.put(&fields.coin, i, &[game.coin.x, game.coin.y]);
            view.put(&fields.hunter, i, &[game.hunter.x, game.hunter.y]);
{% endif %}
            if let Some(pixels) = view.get(&fields.sight, i) {
                game.draw(pixels, SIGHT * 3, SIGHT, i);
            }
{% endif %}
            view.put(&fields.coins, i, &[player.coins]);
        }
    }

    fn draw(&self, pixels: &mut [u8], row_bytes: usize) {
        self.game.draw(pixels, row_bytes, 256, 0);
    }

    // All that a step depends on: makes envs savable, for search and checkpoints.
    fn state(&mut self, archive: &mut Archive) {
        archive.visit(&mut self.game.random);
        for place in [&mut self.game.coin, &mut self.game.hunter] {
            archive.visit(&mut place.x);
            archive.visit(&mut place.y);
        }
        for player in &mut self.game.players {
            archive.visit(&mut player.at.x);
            archive.visit(&mut player.at.y);
            archive.visit(&mut player.points);
            archive.visit(&mut player.coins);
            archive.visit(&mut player.in_play);
        }
    }
}

plugin!("{{ cookiecutter.package_name }}", env!("CARGO_PKG_VERSION"), Chase);
